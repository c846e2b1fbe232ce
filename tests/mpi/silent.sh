# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Sourced: what a rank of another host that is never talked to costs, by what tests/libmrmpi/footprint has said in $tmp/out of
# two jobs, a small one and a large one.

declare -A heap
footprint_of() { # few|many
  local owner
  for owner in ours libpmix simulator others; do
    heap[$1 $owner]=$(sed -n "s/^[0-9]* ranks:.* $owner \([0-9]*\)[ ,].*/\1/p" "$tmp/out")
  done
}
silent_within() { # BYTES RANKS: so many more in the large job; each library's part, and all of them
  local owner more all=0 parts=
  for owner in ours libpmix simulator others; do
    more=$((${heap[many $owner]:-999999999} - ${heap[few $owner]:-0}))
    all=$((all + more)) parts+=", $owner $(awk -v n="$more" -v r="$2" 'BEGIN {printf "%.1f", n / r}')"
  done
  ok "a rank on another host that says nothing costs $((all / $2)) bytes of the heap${parts} (at most $1)" \
    test "${heap[few ours]:-0}" -gt 0 -a $all -le $(($1 * $2))
}
