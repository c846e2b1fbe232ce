#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A second opensm stands by on another host: its configuration gets the policy, too, so that tables stay when it takes
# over; and who applies a policy there is told where the master is. --all: also a master that dies during an apply.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" --standby-sm h2 -- \
    bash "$here/standby.sh" "$@"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
hosts="h1 h2"
shipped "s/timeout: 20/timeout: 4/; s|/opensm-2/|/opensm-standby/|"

ok "the subnet is up" simfab opensm wait
daemons_up
cp "$top/etc/policies/simple.yaml" policy.yaml
cp policy.yaml "$policy"
ok "a policy is applied where the master is" on h1 policy apply "$policy"
ok "and in force on both" wait_for 10 verified 1
ok "who is master is told where one manages" wait_for 5 seen h1 '^  - .device: mlx5_0, port: 1, ports_here: 2, .*master: "0x[0-9a-f]{16}", .*here: true.'
ok "and where one stands by" wait_for 5 seen h2 '^  - .device: mlx5_0, port: 1, ports_here: 2, .*master: "0x[0-9a-f]{16}", .*here: false.'
ok "the one that stands by has it in its file" wait_for 5 grep -q '^qos_vlarb_low 0:192' "$SIMFAB_DIR/opensm-standby/opensm.conf"
sed 's/share: 60/share: 50/' policy.yaml >"$policy"
ok "it cannot be applied where the master is not" exits 3 on h2 policy apply "$policy"
on h2 policy apply "$policy" >q 2>&1
like "which is told" '^the subnet has another master, at LID [0-9]+: opensm .pid [0-9]+. only stands by; apply on the host of the master' q
cp policy.yaml "$policy"
kill "$(simfab opensm pid)"
ok "when it takes over" wait_for 20 sh -c "grep -q 'Entering MASTER state' $SIMFAB_DIR/opensm-standby/opensm.log"
ok "the tables stay" wait_for 10 verified 1
sed 's/share: 60/share: 40/' policy.yaml >"$policy"
ok "and the next policy is applied there" on h2 policy apply "$policy"
ok "for both, with a number that no attempt had" wait_for 10 verified 4
[ "${1:-}" = --all ] || done_testing

# the master dies in the middle of an apply
simfab opensm restart >restart 2>&1
ok "the first one is back, as master by its priority" wait_for 30 seen h1 '^  - .device: mlx5_0, .*master: .*, here: true.'
ok "with the policy" wait_for 20 verified 4
ports() { for p in 1 2 3 4; do simfab exec h2 -- smpquery -D VLArb 0,1 $p; done 2>&1; }
ports >before.ports
master=$(simfab opensm pid)
kill -STOP "$master"
sed 's/share: 60/share: 30/' policy.yaml >"$policy"
on h1 policy apply "$policy" >q 2>&1 &
apply=$!
ok "an apply has written the file" wait_for 10 grep -q '^wrote' q
kill -KILL "$master"
rc=0
wait $apply || rc=$?
cat q
is "without the master it is rolled back" $rc 3
ok "the other one takes over" wait_for 30 seen h2 '^  - .device: mlx5_0, .*master: .*, here: true.'
ok "with the policy of before on both hosts" wait_for 20 verified 4
is "and its tables" "$(ports)" "$(cat before.ports)"
ok "the next apply is made there" on h2 policy apply "$policy"
ok "and is in force on both" wait_for 20 verified 5
done_testing
