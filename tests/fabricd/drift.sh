#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What ports or opensm's file have lost is written again within an interval, on the host that manages; or only reported.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" -- bash "$here/drift.sh"
fi
. "$(dirname "$0")/lib.sh"
tool=$BUILD/tests/fabricd/fabric_tool
conf=$SIMFAB_DIR/opensm/opensm.conf
cat >fabricd.yaml <<END
state: $tmp/state
socket: $FABRICD_SOCKET
opensm: {config: \$SIMFAB_DIR/opensm/opensm.conf, restart: simfab opensm restart}
verify: {timeout: 8, interval: 1}
rails: {interval_ms: 100}
END
simfab opensm wait
cp "$conf" first.conf
simfab exec --real-clock h1 -- fabricd --config "$tmp/fabricd.yaml" >fabricd.log 2>&1 &
started
wait_for 10 fabricctl status
{ cat "$top/etc/policies/simple.yaml"; echo 'repair_pause: 1'; } >simple.yaml
ok "a policy is in force" fabricctl policy apply simple.yaml
cp "$conf" good.conf
low() { simfab exec h2 -- smpquery -D VLArb 0,1 2 | sed -n 's/^WEIGHT: //p' | head -n 1; }
good=$(low)
repairs() { status_has "^policy: .*state: verified, .*repairs: $1,"; }

simfab exec h2 -- "$tool" vlarb 1 0x10002 0:1,1:200
ok "a table that somebody has changed is mended" wait_for 10 repairs 1
is "as the port says" "$(low)" "$good"
like "what was found is said, and where" 'leaf1 .0x[0-9a-f]{16}. port 2: VLArb low: expected .* found 0:1,1:200$' fabricd.log
like "and what was done" 'had opensm write all tables again: the ports have it$' fabricd.log
ok "with opensm's file as it was" cmp "$conf" good.conf

cp first.conf "$conf"
kill -HUP "$(simfab opensm pid)"
ok "a file of before that comes back is mended" wait_for 15 repairs 2
ok "as it was" cmp "$conf" good.conf
is "and so are the ports" "$(low)" "$good"
like "which is said" "opensm.conf is not what the policy makes of it" fabricd.log
cp first.conf "$conf"
simfab opensm restart >restart 2>&1
ok "also if a subnet manager is started with it" wait_for 20 repairs 3
ok "as it was" cmp "$conf" good.conf
is "and the ports" "$(low)" "$good"
is "nothing is left to be done" "$(ls state/intent 2>&1 | grep -c 'No such')" 1

# at most so often as the policy says
sed 's/repair_pause: .*/repair_pause: 600/' simple.yaml >rarely.yaml
ok "a policy that has it mended rarely" fabricctl policy apply rarely.yaml
simfab exec h2 -- "$tool" vlarb 1 0x10002 0:1,1:200
ok "the difference is reported" wait_for 10 status_has '^policy: .*state: differs, .*differences: 1, .*repairs: 3,'
sleep 3
ok "and not mended again so soon" status_has '^policy: .*state: differs, .*differences: 1, .*repairs: 3,'
sed 's/repair_pause: .*/repair: report/' simple.yaml >report.yaml
ok "a policy that has it reported" fabricctl policy apply report.yaml
simfab exec h2 -- "$tool" vlarb 1 0x10002 0:1,1:200
cp first.conf "$conf"
ok "is obeyed: table and file are told" wait_for 10 status_has '^policy: .*state: differs, .*differences: 2, .*repairs: 3,'
sleep 2
ok "and left alone" cmp first.conf "$conf"
ok "for programs, too" answers look 1 policy verify
ok "apply mends both" fabricctl policy apply report.yaml
is "in the ports" "$(low)" "$good"
done_testing
