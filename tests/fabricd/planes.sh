#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two planes, which are two subnets, and one host that has the opensm of both: both get the policy, all hosts look at
# their ports in both, and a plane that is not set up is not passed over.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/eight-hosts-two-planes.net" -- bash "$here/planes.sh"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
hosts="h1 h2 h3"
{ cat "$top/etc/policies/simple.yaml"; echo 'repair: report'; } >"$policy"
tables() { grep -c '^qos_vlarb_low 0:192' "$1"; } # opensm's file

# a configuration of one of them
printf 'state: %s\nsocket: %s\nopensm: {config: %s, restart: simfab opensm restart}\nverify: {timeout: 6, interval: 1, device: mlx5_1}\n' \
  "$tmp/state" "$tmp/one.sock" "$SIMFAB_DIR/opensm/opensm.conf" >one.yaml
sed 's/, device: mlx5_1//' one.yaml >other.yaml
ok "both subnets are up" simfab opensm wait
simfab exec --real-clock h1 -- fabricd --config "$tmp/one.yaml" 2>one.log &
one=$!
started
export FABRICD_SOCKET=$tmp/one.sock
wait_for 10 fabricctl status
ok "a port in the other plane does not make the wrong plane looked at" fabricctl policy apply "$policy"
is "the plane of this opensm is set up" "$(tables "$SIMFAB_DIR/opensm/opensm.conf")" 1
is "and not the other" "$(tables "$SIMFAB_DIR/opensm-2/opensm.conf")" 0
stop $one
simfab exec --real-clock h1 -- fabricd --config "$tmp/other.yaml" 2>other.log &
one=$!
started
ok "a host's port in a plane that is not set up is seen" wait_for 10 status_has 'state: differs'
like "and told" 'h1 mlx5_1 .*port 1: ' status
stop $one

for h in $hosts; do start $h; done
for h in $hosts; do wait_for 20 on $h status; done
ok "both planes get the policy" on h1 policy apply "$policy"
is "the second too" "$(tables "$SIMFAB_DIR/opensm-2/opensm.conf")" 1
ok "and all hosts verify it" wait_for 5 verified 1
seen h1 .
like "the manager at all ports of both" '^policy: .*nodes: 18, ports: 32,' status
seen h3 .
like "another host at its two, and those across their cables" '^policy: .*nodes: 4, ports: 4,' status
ok "a table in the second plane that is changed" simfab exec h1 -- env FABRIC_TOOL_DEVICE=mlx5_1 "$tool" vlarb - 0x10000 0:1
ok "is no secret" wait_for 10 seen h1 '^policy: .*state: differs'
ok "and is mended" on h1 policy apply "$policy"
ok "for all" wait_for 8 verified 1

# a plane without a subnet manager
kill -9 "$(cat "$SIMFAB_DIR/opensm-2/opensm.pid")"
sed -i 's/share: 60/share: 55/' "$policy"
ok "a policy is not applied to one plane alone" exits 1 on h1 policy apply "$policy"
on h1 policy apply "$policy" >q 2>&1
like "which is named, with what to do" '^the plane at mlx5_1 port 1 has no subnet manager: of the configured opensm the one that reads .*/opensm-2/opensm.conf does not run$' q
is "nor written for it" "$(tables "$SIMFAB_DIR/opensm/opensm.conf")" 1
ok "status tells of the plane" wait_for 10 seen h1 '^policy: .*generation: 1, state: differs'
like "which has no master" '^  - .device: mlx5_1, port: 1, ports_here: 1, opensm: .?elsewhere.?, master: none.$' status
like "as the other has" '^  - .device: mlx5_0, port: 1, ports_here: 1, opensm: "?/.*/opensm/opensm.conf"?, master: "0x[0-9a-f]{16}", master_lid: 1, priority: [0-9]+, here: true, nodes: 9, ports: 16, can_vls: 8, vls: 8, differences: 0, state: verified.$' status
like "by name" 'plane: the plane at mlx5_1 port 1 has no subnet manager' status
ok "by order it is, which the exit status tells" exits 5 on h1 policy apply "$policy" --partial
is "in the plane that is there" "$(tables "$SIMFAB_DIR/opensm/opensm.conf")" 0
ok "status goes on telling of the other" wait_for 10 seen h1 '^policy: .*generation: 2, state: differs'
sed -i 's/share: 55/share: 50/' "$policy"
simfab opensm restart >restart 2>&1
ok "with the opensm of both" wait_for 20 on h1 policy apply "$policy"
ok "it is applied" wait_for 30 verified 3
sed -i 's/lmc: 0 /lmc: 1 /' "$policy"
ok "two LIDs a port need both to be started anew" on h1 policy apply "$policy"
ok "which all have then" wait_for 10 verified 4
is "in both planes" "$(grep -c 'lmc: 1' <(on h2 rail list))" 2
done_testing
