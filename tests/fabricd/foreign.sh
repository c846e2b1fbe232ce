#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Another host has an opensm that stands by, and no fabricd: its configuration is not known here. The status names it,
# and after a handover to it, who it is, and what its ports lack; when this host is master again, what it did, also to a
# daemon that is started anew.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" --standby-sm h2 -- \
    bash "$here/foreign.sh" "$@"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
shipped 's/timeout: 20/timeout: 4/; s/interval: 5/interval: 1/'
hosts=h1
export FABRICD_SOCKET=$SIMFAB_DIR/fabricd-h1.sock
cp "$top/etc/policies/simple.yaml" "$policy"
others='others: \[.guid: "0x[0-9a-f]{16}", node: "?h2 mlx5_[01]"?, priority: [0-9]+, state: standby'

ok "the subnet is up" simfab opensm wait
daemons_up
ok "a policy is in force" wait_for 20 verified 1
ok "who stands by is told, and that nobody knows what it has" wait_for 10 seen h1 "here: true, .*$others, as_master: never seen"
cat >>"$SIMFAB_DIR/opensm-standby/opensm.conf" <<'END'
qos TRUE
qos_max_vls 8
qos_high_limit 3
qos_vlarb_high 0:7,1:0,2:0,3:0,4:0,5:0,6:0,7:0
qos_vlarb_low 0:9,1:9,2:9,3:9,4:9,5:9,6:9,7:9
qos_sl2vl 0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7
END
simfab opensm restart standby >restart 2>&1
ok "with tables of its own it stands by again" wait_for 20 seen h1 "here: true, .*$others, as_master: never seen"
ok "which changes nothing yet" seen h1 '^policy: .*generation: 1, state: verified'
kill "$(simfab opensm pid)"
ok "it takes over" wait_for 30 sh -c "grep -q 'Entering MASTER state' $SIMFAB_DIR/opensm-standby/opensm.log"
ok "its ports lack the policy, and it is named" wait_for 20 seen h1 '^ +- .plane: its master is the subnet manager at LID [0-9]+, port 0x[0-9a-f]{16}, which does not give ports the policy: give its opensm the policy .fabricd there., or make an opensm with the policy master .priority above [0-9]+.'
ok "in the log, too" grep -q "plane: its master is the subnet manager at LID .*which does not give" h1.log
not_ok "and the policy is not verified" seen h1 '^policy: .*state: verified'
simfab opensm restart >restart 2>&1
ok "the first one is master again, and the ports have the policy" wait_for 60 seen h1 'here: true, .*state: verified'
ok "what the other one did is remembered" wait_for 10 seen h1 "here: true, .*$others, as_master: .at: \"20[0-9TZ:-]+\", differences: [1-9]"
had=$(grep -o 'as_master: {[^}]*}' status)
stop "${daemon_of[1]}"
start h1
ok "by a daemon that is started anew, too" wait_for 20 seen h1 "here: true, .*$others, $had"
done_testing
