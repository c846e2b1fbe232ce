#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On the system bus of a simulated host: a job whose class the rules give it has another one by another policy, and that is
# told.

if [ -z "${SIMFAB_DIR:-}" ]; then
    here=$(cd "$(dirname "$0")" && pwd)
    exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" -- bash "$here/dbus_policy.sh"
fi
. "$(dirname "$0")/lib.sh"
cp "$top/etc/policies/simple.yaml" .
cat >fabricd.yaml <<END
state: $tmp/state
socket: $FABRICD_SOCKET
opensm:
  config: \$SIMFAB_DIR/opensm/opensm.conf
  pid_file: \${SIMFAB_DIR}/opensm/opensm.pid
  restart: simfab opensm restart
verify: {timeout: 6}
END
ok "opensm has the subnet up" simfab opensm wait
bus_conf "$SIMFAB_DIR/bus-h1" >bus.conf
dbus-daemon --config-file=bus.conf --nofork --nopidfile 2>bus.log &
started
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$SIMFAB_DIR/bus-h1
ok "the host has a bus" wait_for 10 test -S "$SIMFAB_DIR/bus-h1"
simfab exec --real-clock h1 -- fabricd --config "$tmp/fabricd.yaml" 2>fabricd.log &
started
ok "fabricd serves its socket" wait_for 10 fabricctl status
class_of() { busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" get-property org.mrmpi.Fabric1 "/org/mrmpi/Fabric1/job/$1" org.mrmpi.Fabric1.Job Class; }
sed 's/{account: students, class: batch}/{account: students, class: urgent}/' simple.yaml >rules.yaml
ok "a policy is in force" fabricctl policy apply simple.yaml
ok "a job whose class the rules decide" fabricctl job set ruled - --account students --user "$(id -u)"
ok "fabricd joins the host's bus" wait_for 70 class_of ruled
is "the job has the rules' class" "$(class_of ruled)" 's "batch"'
"$top/tests/fabricd/bus_peer.py" jobs ruled >signals 2>&1 &
started
ok "somebody listens" wait_for 10 grep -q ready signals
ok "a policy with other rules is applied" fabricctl policy apply rules.yaml
is "the job's class is another" "$(class_of ruled)" 's "urgent"'
ok "of which the bus tells" wait_for 5 grep -q "^PropertiesChanged /org/mrmpi/Fabric1/job/ruled .*'Class'" signals
like "and of the policy" "^PropertiesChanged /org/mrmpi/Fabric1 .*'Classes', 'Generation'" signals

done_testing
