#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts that are not alike: other numbers of rails, a plane that one of them lacks, planes in another order. Results are
# right, and all rails that something connects carry bytes. --all: cables are pulled under reads
# and under writes everywhere.
# timeout: 400
# timeout --all: 900
. "$(dirname "$0")/../tap.sh"
probe=$BUILD/tests/libmrmpi/vc_probe
all=${1:-}

# netlist PLANES...: a word for each host; its i-th letter is the switch that its mlx5_i is on, a capital if its cable is SDR
netlist() {
  local h=0 d host switch speed
  declare -A cables port
  local nodes=''
  for host in "$@"; do
    h=$((h + 1))
    for ((d = 0; d < ${#host}; d++)); do
      switch=${host:d:1}
      speed=4xHDR
      [ "$switch" = "${switch,,}" ] || speed=4xSDR
      switch=${switch,,}
      port[$switch]=$((${port[$switch]:-0} + 1))
      cables[$switch]+="[${port[$switch]}] \"H-$h-$d\"[1](5b00${h}${d}01)  # \"h$h mlx5_$d\" lid 0 $speed"$'\n'
      nodes+=$'\n'"caguid=0x5b00${h}${d}00"$'\n'"Ca 1 \"H-$h-$d\"  # \"h$h mlx5_$d\""$'\n'
    done
  done
  for switch in "${!cables[@]}"; do
    printf 'switchguid=0x5b0000%02x\nSwitch 24 "S-%s"  # "%s" base port 0 lid 0 lmc 0\n%s\n' "$((10#$(printf %d "'$switch")))" \
      "$switch" "$switch" "${cables[$switch]}"
  done
  printf %s "$nodes"
}

# run PLANES... -- COMMAND: in a fabric of such hosts; what each port sent is in $tmp/counters, the output in $tmp/out
run() {
  local hosts=()
  while [ "$1" != -- ]; do hosts+=("$1"); shift; done
  shift
  netlist "${hosts[@]}" >"$tmp/hosts.net"
  timeout -k 5 100 simfab run --topology "$tmp/hosts.net" -- bash -c "$* || exit; simfab status --counters >$tmp/counters" \
    >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  grep -v ' info: ' "$tmp/out" | sed 's/^/# /' | tail -n 20
  return $rc
}
sent() { awk -v h="$1" -v d="mlx5_$2" '$1 == h && $2 == d {s += $7} END {print s + 0}' "$tmp/counters"; } # HOST NUMBER
share() { awk -v a="$(sent "$1" "$2")" -v all="$(awk -v h="$1" '$1 == h {s += $7} END {print s + 0}' "$tmp/counters")" \
  'BEGIN {print int(100 * a / all + 0.5)}'; } # HOST NUMBER: its part of what the host sent, in hundredths
around() { test "$(share "$1" "$2")" -ge $(($3 - 6)) -a "$(share "$1" "$2")" -le $(($3 + 6)) || { echo "$(share "$1" "$2") %"; return 1; }; }
carries() { test "$(sent "$1" "$2")" -gt 400000; }

# like the papers' figures: large messages, small ones, the order and every byte
job="mrrun -n 2 $probe 400"
ok "one rail against two" run a aa -- "$job"
ok "both of the one host carry half" around h2 0 50
ok "and the other way round" run aa a -- "$job"
ok "here too" around h1 1 50
ok "two rails against three" run aa aaa -- "$job"
for d in 0 1; do ok "each port of the one carries half" around h1 $d 50; done
ok "the port that is alone carries half, two share the other half" around h2 1 50
for d in 0 2; do ok "a quarter for each" around h2 $d 25; done
ok "a fast and a slow rail, on the other host a slow and a fast one" run aA Aa -- "$job"
for at in "h1 0" "h2 1"; do ok "the fast ones carry all but some" test "$(share $at)" -ge 90; done
ok "weights that do not adapt know it too" run aa aaa -- "MRMPI_POLICY_LARGE=even $job"
ok "half" around h2 1 50

ok "two planes" run ab ab -- "$job"
for d in 0 1; do ok "both carry half" around h1 $d 50; done
ok "one host lacks the first plane" run ab b -- "$job"
ok "the second one carries all" carries h1 1
is "the first one nothing" "$(sent h1 0 | awk '{print ($1 < 10000)}')" 1
ok "the other host lacks it" run b ab -- "$job"
ok "the second one carries all" carries h2 1
ok "ports in the other order" run ab ba -- "$job"
for h in h1 h2; do for d in 0 1; do ok "$h, adapter $d carries half" around $h $d 50; done; done
ok "a plane of two ports against one of one, in the other order" run aab ba -- "$job"
for h in "h1 0" "h1 1" "h1 2" "h2 0" "h2 1"; do ok "$h carries its part" carries $h; done
not_ok "no plane in common" run a b -- "$job"
no_subnet() { echo "no rail leads to rank $1: no subnet is common .*Here: mlx5_0 port 1 \\(subnet $2\\). There: mlx5_0 port 1 \\(subnet $3\\)"; }
one=fe80:: other=fe80:0:0:1::
like "is told with both prefixes, by the rank that finds out first" "$(no_subnet '1 on h2' $one $other)|$(no_subnet '0 on h1' $other $one)" "$tmp/out"
ok "four hosts, none like another" run aab ba bbb ab -- "mrrun -n 8 $probe 40"

# both ends say by other numbers which path broke
# (a path is opened again after 10 ms at the earliest: the rounds after take longer than that)
pull="simfab fault link 'h2 mlx5_0' 1 down" put="simfab fault link 'h2 mlx5_0' 1 up; sleep 0.3"
then="true true true true true true true true true true true true true true true true true true true true"
while IFS=: read -r hosts ways; do
  [ "$all" ] && ways="read write"
  [ -z "$ways" ] && continue
  for way in $ways; do
    ok "a cable is pulled and put back, hosts $hosts, large messages by $way" run $hosts -- \
      "MRMPI_LOG_LEVEL=2 MRMPI_RNDV=$way mrrun -n 2 --stats $BUILD/tests/mpi/failover 66 \"$pull\" \"$put\" $then"
    like "nothing is lost" '^66 rounds, 0 errors' "$tmp/out"
  done
  ok "paths were opened again" grep -q 'reopened=[1-9]' "$tmp/out"
done <<'EOF'
ab ba:
aa aaa:
aab ba:write
ab bab:
EOF

ok "all pairs" run aa aa -- "MRMPI_PAIRS=all MRMPI_LOG_LEVEL=3 $job"
ok "make four subchannels" grep -q 'connected to rank . on h.*: 4 subchannels' "$tmp/out"
ok "both carry half" around h1 1 50
ok "one rank alone does not choose" run aa aa -- \
  "MRMPI_LOG_LEVEL=3 mrrun -n 2 bash -c 'test \$PMIX_RANK -gt 0 || export MRMPI_PAIRS=all; exec $probe 200'"
ok "two subchannels" grep -q 'connected to rank . on h.*: 2 subchannels' "$tmp/out"
ok "another word is refused" run aa aa -- "MRMPI_PAIRS=some $job"
like "by name" 'MRMPI_PAIRS=some: must be matched or all' "$tmp/out"
done_testing
