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
verify: {timeout: 4}
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
sed "s/{account: students, class: batch}/{account: students, class: urgent}/; s/share: 60/share: 50/" simple.yaml >rules.yaml
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

# ---- generations ----
manager() { busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" --timeout=120 call -- org.mrmpi.Fabric1 /org/mrmpi/Fabric1 org.mrmpi.Fabric1.Manager "$@"; }
refused() { # NAME REGEX METHOD SIGNATURE ARG...
  "$top/tests/fabricd/bus_peer.py" error "${@:3}" >refused 2>&1
  tr '\n' ' ' <refused | grep -Eq -- "^org.mrmpi.Fabric1.Error.$1 .*$2" || { cat refused; return 1; }
}
manager ListGenerations >q
like "the bus has the history" "^a\(ttsussb\) 2 1 [0-9]{16} \"apply\" $(id -u) \"[^ ]*simple.yaml\" \"in force\" false 2 [0-9]{16} \"apply\" $(id -u) \"[^ ]*rules.yaml\" \"in force\" true$" q
manager ShowGeneration t 1 >q
like "and each with its policy" 's "generation: 1.nat: .*class: batch' q
is "as the socket has it" "$(busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" --json=short call org.mrmpi.Fabric1 /org/mrmpi/Fabric1 \
  org.mrmpi.Fabric1.Manager ShowGeneration t 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][0])')" "$(fabricctl policy show 1)"
ok "one that is not kept" refused NoSuchGeneration 'generation 9 is not kept' ShowGeneration t 9
manager RollbackPolicy xb -1 false >q
like "a rollback over the bus is verified" '^ts 3 ".*policy in force: generation 3"$' q
is "and in force" "$(class_of ruled)" 's "batch"'
ok "with a number of its own" status_has '^policy: .*generation: 3, state: verified'
like "by rollback" 'generation: 3, .* by: rollback, policy: .*, uid: '"$(id -u)"', result: in force, current: true' <(fabricctl policy history)
ok "not to one that is not kept" refused PolicyRefused 'generation 77 is not kept' RollbackPolicy xb 77 false
sm=$(simfab opensm pid)
kill -STOP "$sm"
"$top/tests/fabricd/bus_peer.py" error RollbackPolicy xb 2 false >first 2>&1 &
first=$!
ok "while one is at work" wait_for 10 status_has ' applying: '
ok "another one is refused" refused AtWork 'is being put in force, as uid' RollbackPolicy xb 1 false
wait $first
like "which opensm does not take" '^org.mrmpi.Fabric1.Error.RolledBack ' first
like "and the reason is told" 'has not given the ports the tables within 4 s' first
kill -CONT "$sm"
ok "the policy is as before" wait_for 20 status_has '^policy: .*generation: 3, state: verified'
"$top/tests/fabricd/bus_peer.py" error RollbackPolicy xb -2 false >q
like "a generation that is none" '^org.freedesktop.DBus.Error.InvalidArgs generation is -2; allowed: a number of ListGenerations' q
like "back to what was there before the first policy" '^ts 5 ' <(manager RollbackPolicy xb 0 false)
ok "nothing is in force" wait_for 10 status_has '^policy: .*generation: 5, state: none'

done_testing
