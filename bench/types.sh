#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Datatypes inside one host: packing, unpacking and half a round trip of ten types (bench/types.c), the same binary under mrrun and
# under Debian's MPICH (mpiexec.hydra), turn by turn, each rank bound to a core of its own where there are two. The least of $RUNS
# runs; ratio > 1: mrmpi is better. TYPES_BYTES: how large a type is.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=5}"
: "${TYPES_BYTES:=8192 1048576}"
PATH=$BUILD/bin:$PATH
for program in mpicc.mpich mpiexec.hydra taskset; do
  command -v "$program" >/dev/null || { echo "bench/types.sh: $program is not installed (packaging/install-deps)"; exit 1; }
done
cd "$(dirname "$0")" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mpicc.mpich -O2 -Wall -o "$tmp/types" types.c || exit 1

# shellcheck disable=SC2016  # the inner shell expands it
if [ "$(nproc)" -ge 2 ]; then
  bind='exec taskset -c ${PMIX_RANK:-${PMI_RANK:-0}} "$@"'
else
  bind='exec "$@"'
fi
once() { # mrmpi|mpich bytes
  local start=(mrrun)
  [ "$1" = mpich ] && start=(mpiexec.hydra)
  timeout 300 "${start[@]}" -n 2 sh -c "$bind" sh "$tmp/types" "$2" >>"$tmp/$1.$2" 2>"$tmp/err" ||
    { echo "bench/types.sh: failed under ${start[0]}:" >&2; tail -n 5 "$tmp/err" >&2; return 1; }
}
least() { # FILE: each type's least figures, in the order of the first run
  awk '!($1 in n) { order[++k] = $1; n[$1] = $2; p[$1] = $3; u[$1] = $4; r[$1] = $5 }
    { if ($3 < p[$1]) p[$1] = $3; if ($4 < u[$1]) u[$1] = $4; if ($5 < r[$1]) r[$1] = $5 }
    END { for (i = 1; i <= k; i++) print order[i], n[order[i]], p[order[i]], u[order[i]], r[order[i]] }' "$1"
}

for bytes in $TYPES_BYTES; do
  for ((i = 0; i < RUNS; i++)); do
    once mrmpi "$bytes" && once mpich "$bytes" || exit 1
  done
  printf '%-18s %9s  %26s  %26s  %26s\n' type bytes 'pack us: mrmpi MPICH ratio' unpack 'half a round trip'
  paste -d' ' <(least "$tmp/mrmpi.$bytes") <(least "$tmp/mpich.$bytes") | awk '{
    printf "%-18s %9d  %9.2f %9.2f %6.2f  %9.2f %9.2f %6.2f  %9.2f %9.2f %6.2f\n",
      $1, $2, $3, $8, $8 / $3, $4, $9, $9 / $4, $5, $10, $10 / $5 }'
done
