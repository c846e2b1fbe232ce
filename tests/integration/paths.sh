#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A fat tree with two LIDs per host: fabricd names the LID paths without a common cable, large messages use both, small
# messages and peers on the same leaf are as with one path, a class's limit holds, a path with a pulled cable is left,
# and an unused path takes over where the first leads nowhere any more. Simulated: figures repeat to the digit.
# timeout: 300
hosts="h1 h2 h3 h4 h5 h6" topology=${TMPDIR:-/tmp}/mrmpi-paths-$PPID.net
[ -n "${SIMFAB_DIR:-}" ] || { "$BUILD/bin/simfab" topology fat-tree --hosts 6 --radix 4 --levels 2 >"$topology" || exit 2; }
. "$(dirname "$0")/lib.sh"
fabricds_with_paths
like "the plan has the limit" 'name: single.*paths: 1}' <(fabricctl policy plan "$tmp/wanted.yaml" 2>&1)

# ---- what fabricd knows
ctl h1 paths h1 h3 >"$tmp/far"
ctl h3 paths h1 h2 >"$tmp/near"
is "hosts on different leaves have two disjoint paths" "$(grep '^disjoint' "$tmp/far")" "disjoint: 2"
is "over different spines" "$(grep -o 'spine[12]' <(grep there "$tmp/far") | sort | xargs)" "spine1 spine2"
is "hosts on the same leaf have one" "$(grep '^disjoint' "$tmp/near")" "disjoint: 1"
is "whoever is asked" "$(ctl h5 paths h1 h3)" "$(cat "$tmp/far")"
is "as JSON, too" "$(ctl h1 --json paths h1 h3 | python3 -c 'import json, sys; print(json.load(sys.stdin)["disjoint"])')" 2
ctl h1 paths h1 h7 >"$tmp/out" 2>&1
is "a host that is not there is no host" $? 1
like "and is named" "'h7'" "$tmp/out"

# ---- two pairs from one leaf whose path 0 takes the same cable to a spine
first_port() { ctl h1 paths "$1" "$2" | sed -n '/path: 0/,/there/s/.*there: .{switch: leaf1, port: \([0-9]*\)}.*/\1/p'; } # FROM TO
pick() {
  local a b
  for a in h3 h4; do
    for b in h5 h6; do [ "$(first_port h1 $a)" = "$(first_port h2 $b)" ] && echo "h1,h2,$a,$b" && return; done
  done
  echo "h1,h2,h3,h4"
}
four=$(pick)
echo "# $four"
# A rank whose fabricd answers too late opens its subchannels a second time, on the levels of its class: begun anew.
run() { # HOSTS JOB WANTED [SETTING]
  local tries
  for tries in {1..5}; do
    MRMPI_LOG_LEVEL=1 timeout 90 env "${4:-A=}" mrrun -n "$(tr , '\n' <<<"$1" | wc -l)" --hosts "$1" --job-id "$2" --stats "$BUILD/tests/mpi/paths" $3 </dev/null 2>&1 | tee "$tmp/said" >&2
    one_class "$tmp/said" && break
  done
  cat "$tmp/said"
}
field() { sed -n "s/.*$2 \([0-9.]*\).*/\1/p" <<<"$1"; } # LINE NAME
ratio() { awk -v a="$1" -v b="$2" -v least="$3" -v most="$4" 'BEGIN {r = b ? a / b : 0; print r; exit !(r >= least && r <= most)}'; }
one=$(run "$four" limited "0 40") two=$(run "$four" free 1) said=$(run "$four" free "0 40" MRMPI_PATHS=1)
is "a class of one path has one" "$(field "$one" opened)" 0
is "and so has MRMPI_PATHS=1" "$(field "$said" opened)" 0
is "by default there is one more to the peer of large messages" "$(field "$two" opened)" 1
ok "where a cable is shared, two paths carry 1.8 times as much" ratio "$(field "$two" rate)" "$(field "$one" rate)" 1.8 2.05
ok "small messages take as long" ratio "$(field "$two" latency)" "$(field "$one" latency)" 0.98 1.02
said=$(run h1,h2 free "0 40")
is "no queue pair is made for a path that shares all cables" "$(field "$said" opened)" 0
lone=$(run h1,h3 limited "0 40") said=$(run h1,h3 free 1)
ok "where none is shared, two carry as much as one" ratio "$(field "$said" rate)" "$(field "$lone" rate)" 0.99 1.01

# ---- mrrun --explain
explain() { mrrun --explain -n 2 --hosts "$1" --job-id "$2" 2>&1; } # HOSTS JOB
like "mrrun --explain prints them" '    h1 to h3, mlx5_0:1 - mlx5_0:1: paths 0, 1 share no cable: large messages use all after 1M' <(explain h1,h3 free)
like "and that there is one" '    h1 to h2, mlx5_0:1 - mlx5_0:1: path 0; no other is allowed and shares no cable' <(explain h1,h2 free)
like "or may be" '    h1 to h3, mlx5_0:1 - mlx5_0:1: path 0; no other is allowed and shares no cable' <(explain h1,h3 limited)

# ---- cables break: first with the subnet manager, which finds other ways, then without
far() { ctl h1 paths h1 h3 >"$tmp/far" && grep -q 'disjoint: 2' "$tmp/far"; }
cable() { sed -n "/path: $1/,/there/s/.*switch: \(spine.\), port: \([0-9]*\)}.*/\1 \2/p" "$tmp/far"; } # PATH: that to h3's leaf
hosts="h1 h3" job=free limit=60
ok "the cable of the second path is pulled, and nothing is lost" exchange 6 true "simfab fault link $(cable 1) down"
one_way() { ! far; }
ok "there are no two paths then, once fabricd has read the tables again" wait_for 20 one_way
simfab fault clear
ok "and again two when it is back" wait_for 20 far
simfab fault sm kill
first=$(cable 0)
ok "that of the first is pulled, without a subnet manager: the second takes over" exchange 6 true "simfab fault link $first down"
MRMPI_FABRICD_SOCKET='' ok "also where no fabricd has told of it" exchange 3 true
done_testing
