#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two planes, of which one has links with fewer lanes: each gets tables of its own by the same service levels. And one
# whose opensm is killed in the middle of an apply: both end with the tables of before, and the history tells why.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  model=$(mktemp) || exit 1
  printf 'ports:\n- {node: "h? mlx5_1", vls: 4}\n- {node: "p2-*", vls: 4}\n' >"$model"
  "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/eight-hosts-two-planes.net" --model "$model" -- \
    bash "$here/planes_differ.sh"
  rc=$?
  rm -f "$model"
  exit $rc
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
hosts="h1 h3"
export FABRICD_SOCKET=$SIMFAB_DIR/fabricd-h1.sock
osm=("$SIMFAB_DIR/opensm" "$SIMFAB_DIR/opensm-2")
shipped 's/timeout: 20/timeout: 8/; s/interval: 5/interval: 1/'
table() { simfab exec h3 -- smpquery -C "mlx5_$1" -D "$2" 0,1 3 2>&1; } # PLANE TABLE: of a port of its switch
tables() { table "$1" VLArb; table "$1" SL2VL; }                        # PLANE
is_new() { tables "$1" >now.$1 && ! cmp -s before.$1 now.$1; }           # PLANE

ok "both subnets are up" simfab opensm wait
{ cat "$top/etc/policies/simple.yaml"; echo 'repair: report'; } >"$policy"
daemons_up
ok "a policy with more lanes than one of two planes has" on h1 policy apply "$policy"
on h1 policy check "$policy" >q 2>&1
on h1 policy apply "$policy" >q 2>&1
like "is said to have fewer there" 'warning: vls is 8, and links of the plane of port 0x0253460101000101 can have only 4' q
ok "it is in force on all hosts" wait_for 10 verified 1
like "one plane has all its lanes" '^  - .device: mlx5_0, .* can_vls: 8, vls: 8, differences: 0, state: verified.$' <(on h1 status)
like "the other those that it can have" '^  - .device: mlx5_1, .* can_vls: 4, vls: 4, differences: 0, state: verified.$' <(on h1 status)
like "which opensm is told" '^max_op_vls 4$' "${osm[0]}/opensm.conf"
like "each its own" '^max_op_vls 3$' "${osm[1]}/opensm.conf"
like "and the lock keeps" '^plane 0x0253460101000101 vls=4 ' "$SIMFAB_DIR/policy.lock"
not_ok "so the tables are not the same" cmp -s <(tables 0) <(tables 1)
is "no service level goes to a lane that is not there" "$(table 1 SL2VL | grep '^ports' | grep -Ec '\| *([4-9]|1[0-4])\|')" 0
like "the generation has both" '^  - .port: "0x0253460101000101", vls: 4,' "$SIMFAB_DIR/fabricd-h1/current/tables.yaml"
like "and what became of each" '^planes: .*port: "mlx5_0/1".* vls: 8, .*result: in force.*port: "mlx5_1/1".* vls: 4, .*result: in force' \
  "$SIMFAB_DIR/fabricd-h1/current/result"

# a manager that is started anew knows the planes; a difference is found in each
kill -9 "${daemon_of[1]}"
wait "${daemon_of[1]}" 2>/dev/null
start h1
ok "after a restart all is verified" wait_for 20 verified 1
ok "a table of the plane with fewer lanes that is changed" simfab exec h1 -- env FABRIC_TOOL_DEVICE=mlx5_1 "$tool" vlarb - 0x10000 0:1
ok "is a difference there" wait_for 10 seen h1 '^  - .device: mlx5_1, .* differences: 1, state: differs.$'
like "and none elsewhere" '^  - .device: mlx5_0, .* differences: 0, state: verified.$' status
ok "which an apply mends" on h1 policy apply "$policy"
ok "on all" wait_for 10 verified 1

# an opensm that is killed when its ports have the new tables, and those of the other plane have not
for p in 0 1; do
  tables $p >before.$p
  cp "${osm[$p]}/opensm.conf" before.$p.conf
done
kill -STOP "$(cat "${osm[0]}/opensm.pid")"
sed -i 's/share: 60/share: 50/; s/share: 30/share: 40/' "$policy"
on h1 policy apply "$policy" >q 2>&1 &
apply=$!
ok "a plane has the new tables" wait_for 10 is_new 1
kill -9 "$(cat "${osm[1]}/opensm.pid")"
kill -CONT "$(cat "${osm[0]}/opensm.pid")"
rc=0
wait $apply || rc=$?
is "and loses its opensm: the change is rolled back" $rc 3
cat q
for p in 0 1; do
  ok "plane $p has the tables of before" cmp before.$p <(tables $p)
  ok "plane $p has the file of before" cmp before.$p.conf "${osm[$p]}/opensm.conf"
done
not_ok "nothing is left to be done" test -e "$SIMFAB_DIR/fabricd-h1/intent"
on h1 policy history >history
like "the history tells which plane it was" '^- .generation: 2, .*result: rolled back, current: false, planes: .*port: "mlx5_1/1".*why: "?its opensm does not run any more' history
like "and that the other was rolled back with it" '^- .generation: 2, .*planes: .*port: "mlx5_0/1", opensm: [^}]*result: rolled back' history
ok "for programs" answers "policy history" 0 policy history
ok "status tells of the plane without a master" wait_for 10 seen h1 '^  - .device: mlx5_1, .*master: none'
simfab opensm restart >restart 2>&1
ok "with its opensm" wait_for 20 seen h1 '^policy: .*generation: 1, state: verified'
ok "the policy is applied" on h1 policy apply "$policy"
ok "to both" wait_for 10 verified 3
done_testing
