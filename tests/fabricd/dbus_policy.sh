#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# On the system bus of a simulated host: a job whose class the rules give it has another one by another policy, and that is
# told; generations; hosts of jobs in partitions; subnet managers.

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
echo $! >listener
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

# ---- hosts of jobs in partitions, subnet managers ----
property() { busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" get-property org.mrmpi.Fabric1 /org/mrmpi/Fabric1 org.mrmpi.Fabric1.Manager "$@"; }
keys() { simfab exec "$1" -- sh -c 'cat /sys/class/infiniband/mlx5_[01]/ports/1/pkeys/?' | grep -c 0x8011; } # HOST
join() { manager JoinPartition 'ssasua{sv}' "$@"; }
sed 's/- name: urgent/&\n    pkey: 0x0011\n    job members: yes/' simple.yaml >keys.yaml
ok "a policy with a partition is in force" fabricctl policy apply keys.yaml
stop "$(cat listener)"
"$top/tests/fabricd/bus_peer.py" jobs 7 >joined 2>&1 &
started
ok "somebody listens" wait_for 10 grep -q ready joined
is "the reply to a join has its P_Key" "$(join 7 urgent 1 h2 "$(id -u)" 2 lease u 3600 run u 3)" 'qs 17 ""'
is "when all ports have it" "$(keys h1) $(keys h2)" "0 2"
ok "of which the bus tells" wait_for 5 grep -q "^JobJoined /org/mrmpi/Fabric1 7 17 \['h2'\]" joined
is "and counts it" "$(property NumJoined)" "u 1"
manager ListJoined >q
like "it is listed" '^a\(siqtas\) 1 "7" 3 17 [0-9]{16} 1 "h2"$' q
like "as over the socket" '^- \{job: "7", run: 3, pkey: "0x0011", until: [0-9]+, hosts: h2\}$' <(fabricctl job joined)
is "ranges are hosts" "$(join 8 urgent 1 'h[1-2]' "$(id -u)" 0)" 'qs 17 ""'
is "whose ports have it, too" "$(keys h1) $(keys h2)" "2 2"
like "a class without a partition" '^qs 0 "job 9 has class .+batch.+, which has no pkey: nothing to do"$' <(join 9 batch 1 h2 "$(id -u)" 0)
ok "a class that there is not" refused NoPartition "the policy in force has no class 'gold'" JoinPartition 'ssasua{sv}' 9 gold h2 0 ''
ok "a host that there is not" refused NotJoined 'no active port in a subnet of this host: h9' JoinPartition 'ssasua{sv}' 9 urgent h2,h9 0 ''
not_ok "is told nobody as joined" grep '^JobJoined .* 9 ' joined
waits=()
for j in 21 22 23; do
  join $j urgent 1 h1 65534 0 >joined-$j &
  waits+=($!)
done
wait "${waits[@]}"
is "of several at once, of a user whose groups are looked up first, each is answered" "$(cat joined-*)" "$(printf 'qs 17 ""\n%.0s' 1 2 3)"
for j in 21 22 23; do manager LeavePartition si $j -1; done
ok "a job leaves" manager LeavePartition si 8 -1
is "and its hosts lose what no other job has" "$(keys h1) $(keys h2)" "0 2"
ok "not a run that has ended long ago" refused NoSuchJob 'no such job has joined' LeavePartition si 7 2
ok "the socket's orders, too" fabricctl job leave 7
ok "are told" wait_for 5 grep -q '^JobLeft /org/mrmpi/Fabric1 7' joined
ok "with their number" wait_for 5 grep -q "^PropertiesChanged /org/mrmpi/Fabric1 .*'NumJoined'" joined
is "none is there" "$(property NumJoined) $(keys h2)" "u 0 0"
like "the subnet manager" '^a\(sytsysbtu\) 1 "mlx5_[01]" 1 [0-9]+ "h1 mlx5_[01]" [0-9]+ "master" true [0-9]{16} 0$' <(property SubnetManagers)
like "back to what was there before the first policy" '^ts 6 ' <(manager RollbackPolicy xb 0 false)
ok "nothing is in force" wait_for 10 status_has '^policy: .*generation: 6, state: none'

done_testing
