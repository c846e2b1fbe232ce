#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 1800
# Learning costs nothing between hosts: the first 60 operations of a process take at most 1.1 times as long as later ones, and
# not longer than over the fastest rail alone (1.1 times, too: short messages both ways have rhythms of their own, some percent
# slower or faster); and after other loads a load takes as long as in a fresh process, within 3 %. Simulated: times repeat to the
# digit. --all: more loads, kinds of links, and adapters.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
all=${1:-}

# uneven: two rails, of which the second one's cables have one lane
simfab topology star --hosts 2 --rails 2 | awk '
  /^Ca/ {own = index($0, "mlx5_1\"") > 0}
  /^Switch/ {own = 0}
  /^\[/ && (own || index($0, "mlx5_1\"")) {$0 = $0 " lid 0 1xHDR"}
  {print}' >"$tmp/uneven.net"
cp "$root/etc/topologies/two-hosts-two-rails.net" "$tmp/even.net"

# In the fabric: each load in a process of its own, over all rails and over the first; and all of them, each after each.
cat >"$tmp/measure" <<'EOF'
job() { timeout 300 mrrun -n 2 --ppn 1 "$BUILD/tests/mpi/cold" "$@" </dev/null; }
for load in $1; do
  job "$load" | sed 's/^/fresh /'
  MRMPI_RAILS_MAX=1 job "$load" | sed 's/^/fast /'
done
set -- $1
for ((i = 1; i <= $#; i++)); do # a row of loads in which every two follow each other
  for ((k = i + 1; k <= $#; k++)); do row+=" ${!i} ${!k}"; done
  row+=" ${!i}"
done
job $row | sed 's/^/used /'
EOF

cold() { # TOPOLOGY MODEL LOADS [SETTING...]
  local what="$1 rails, $2${4:+, ${*:4}}"
  MRMPI_LOG_LEVEL=0 env "${@:4}" simfab run --topology "$tmp/$1.net" --model "$2" -- bash "$tmp/measure" "$3" >"$tmp/got" 2>"$tmp/err"
  awk -v loads="$3" '
    function say(what, load, x, than) {printf "%s: %s %.3f us, %.3f times %.3f\n", what, load, x, x / than, than}
    $1 == "fresh" {first[$2] = $3; later[$2] = $4; if ($3 > 1.1 * $4) say("later", $2, $3, $4)}
    $1 == "fast" && first[$2] > 1.1 * $3 {say("fast", $2, first[$2], $3)}
    $1 == "used" {seen[$2]++; if ($3 > 1.03 * first[$2]) say("used", $2, $3, first[$2]); if ($4 > 1.03 * later[$2]) say("used", $2, $4, later[$2])}
    END {
      for (n = split(loads, l); n; n--) if (!(l[n] in first) || !seen[l[n]]) print "missing: " l[n]
    }' "$tmp/got" >"$tmp/verdict"
  is "$what: not slower at first than later" "$(grep -E '^(later|missing)' "$tmp/verdict" || head -c 300 "$tmp/err")" ""
  is "$what: nor than over the fastest rail alone" "$(grep ^fast "$tmp/verdict")" ""
  is "$what: after others as fast as in a fresh process" "$(grep ^used "$tmp/verdict")" ""
}

cold uneven hdr "both:65536 one:16384 trip:262144"
cold even hdr "both:8 allreduce:65536" MRMPI_LINKS=ud
if [ "$all" = --all ]; then
  for bytes in 8 4096 16384 65536 262144 1048576; do
    for kind in trip both one allgather alltoall allreduce; do loads+=" $kind:$bytes"; done
  done
  cold uneven hdr "$loads"
  for links in rc uc ud ring; do cold even hdr "$loads" MRMPI_LINKS=$links; done
  cold uneven hdr "$loads" MRMPI_LINKS=uc
  cold even sdr-pcix "$loads"
  cold even ddr-connectx "$loads"
fi
done_testing
