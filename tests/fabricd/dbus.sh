#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fabricd on a system bus of the test's own: orders, questions, signals; who may do what; a bus that comes, goes and comes back.

. "$(dirname "$0")/lib.sh"
tool=$BUILD/tests/fabricd/fabric_tool
peer=$top/tests/fabricd/bus_peer.py
xml=$top/etc/dbus/org.mrmpi.Fabric1.xml
unset SIMFAB_DIR SIM_HOST LD_PRELOAD
me=$(id -u)
if compgen -G '/sys/class/infiniband/*' >/dev/null; then
  skip_all "this host has an adapter"
fi

bus_conf "$tmp/bus" >bus.conf
start_bus() {
  rm -f bus
  dbus-daemon --config-file=bus.conf --nofork --nopidfile 2>>bus.log &
  bus=$!
  started
  wait_for 10 test -S bus
}
all() { busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" "$@"; }
manager() { all call -- org.mrmpi.Fabric1 /org/mrmpi/Fabric1 org.mrmpi.Fabric1.Manager "$@"; }
property() { all get-property org.mrmpi.Fabric1 /org/mrmpi/Fabric1 org.mrmpi.Fabric1.Manager "$@"; }
refused() { # REGEX COMMAND...
  local want=$1
  shift
  "$@" >refused 2>&1 && { cat refused; return 1; }
  grep -Eq -- "$want" refused || { cat refused; return 1; }
}

cat >fabricd.yaml <<END
state: $tmp/state
socket: $tmp/fabricd.sock
END
sed 's/- name: \(urgent\|batch\)/&\n    choose: [{qos: high}]/' "$top/etc/policies/simple.yaml" >simple.yaml
mkdir state # of a daemon that ended
cp simple.yaml state/policy.yaml
printf 'lock 1\nclass %s\nclass %s\nclass %s\n' 'urgent small=1 bulk=2,3' 'normal small=4 bulk=5' 'batch small=6 bulk=7' \
  >state/policy.lock
fabricd --config fabricd.yaml 2>log &
daemon=$!
started
ok "without a bus the socket is served" wait_for 10 fabricctl status
like "and it is said that there is none" 'not on the system bus: No such file or directory' log
ok "a bus" start_bus
ok "fabricd joins it" wait_for 10 property NumJobs

# ---- what it has --------------------------------------------------------------------------------------------------
ok "the interfaces are those that are shipped" "$peer" same "$xml"
ok "the manual describes every member" "$peer" members "$xml" "$top/man/org.mrmpi.Fabric1.5"
is "generation" "$(property Generation)" "t 1"
is "state" "$(property State)" 's "the fabric cannot be looked at"'
is "classes, shares, levels" "$(property Classes)" 'a(sdyay) 3 "urgent" 60 1 2 2 3 "normal" 30 4 1 5 "batch" 10 7 1 7'
is "rails" "$(property Rails)" "a(syysqu) 0"
is "and their health" "$(property RailHealth)" "a(sysdus) 0"
is "role" "$(property Role)" 's "server"'
is "no hosts of jobs in partitions" "$(property NumJoined)" "u 0"
is "nor subnet managers, which another node knows" "$(property SubnetManagers)" "a(sytsysbtu) 0"

# ---- orders and signals -------------------------------------------------------------------------------------------
"$top/tests/fabricd/bus_jobs.py" >seen 2>&1 &
started
"$peer" jobs x >signals 2>&1 &
started
ok "somebody listens" wait_for 10 grep -q ready signals
"$tool" watch "$FABRICD_SOCKET" 4711 >watch 2>&1 &
started
ok "a process of the job" wait_for 5 grep -q 'class=normal' watch
is "a job" "$(manager RegisterJob 'ssua{sv}' 4711 batch "$me" 2 account s phys name s 'a b')" \
  'o "/org/mrmpi/Fabric1/job/_34711"'
ok "its process hears of its class" wait_for 5 grep -q 'class=batch' watch
is "the class is changed" "$(manager SetJobClass ss 4711 urgent)" ""
ok "and its process hears of that" wait_for 5 grep -q 'class=urgent' watch
fabricctl job list >q
like "the socket shows it" '^- \{id: "4711", class: urgent, source: scheduler, since: "[^"]+", uid: '"$me"',.* account: phys, name: a b\}$' q
manager DescribeJob s 4711 >q
like "and the bus" '"Run" i -1 "Id" s "4711" "Class" s "urgent" "Given" s "urgent" "Wish" s "" "Source" s "scheduler" "Since" t [0-9]{16} "User" u '"$me"' "Account" s "phys" "Qos" s "" "Partition" s "" "Name" s "a b"' q
is "by its object, too" "$(all get-property org.mrmpi.Fabric1 /org/mrmpi/Fabric1/job/_34711 org.mrmpi.Fabric1.Job Class)" 's "urgent"'
ok "it is renewed" manager RenewJob 'sa{sv}' 4711 2 lease u 3600 qos s q
manager DescribeJob s 4711 >q
like "with what was given, and nothing else" '"Class" s "urgent" .*"Account" s "phys" "Qos" s "q" .*"Name" s "a b" "Cgroup" s "" "Lease" u 3600' q
ok "which is signalled" wait_for 5 grep -q "PropertiesChanged /org/mrmpi/Fabric1/job/_34711 .*'Lease'" signals
ok "it is given a small ratio" manager RenewJob 'sa{sv}' 4711 1 small_ratio s 1:99
is "which its object has" "$(all get-property org.mrmpi.Fabric1 /org/mrmpi/Fabric1/job/_34711 org.mrmpi.Fabric1.Job SmallRatio)" 's "1:99"'
ok "and none again" manager SetSmallRatio ss 4711 none
manager DescribeJob s 4711 >q
like "which the manager has" '"Lease" u 3600 "SmallRatio" s ""$' q
ok "it is told which run of the job it is" manager RenewJob 'sa{sv}' 4711 1 run u 7
is "which its object has" "$(all get-property org.mrmpi.Fabric1 /org/mrmpi/Fabric1/job/_34711 org.mrmpi.Fabric1.Job Run)" 'i 7'
ok "another run of it is not there" refused "there is no job '4711'" manager RenewJob 'sa{sv}' 4711 1 run u 6
ok "and has no end" refused "there is no job '4711'" manager EndRun su 4711 6
ok "a job in its second run" manager RegisterJob 'ssua{sv}' twice batch "$me" 1 run u 1
ok "ends with that" manager EndRun su twice 1
ok "and once" refused "there is no job 'twice'" manager EndRun su twice 1
ok "a job that is not there is not" refused "there is no job 'x y'" manager RenewJob 'sa{sv}' 'x y' 0
ok "where its class can be changed" all call org.mrmpi.Fabric1 /org/mrmpi/Fabric1/job/_34711 org.mrmpi.Fabric1.Job SetClass s ""
manager ListJobs >q
like "to what the rules say" '1 "4711" "/org/mrmpi/Fabric1/job/_34711" "normal" "rule" '"$me"' [0-9]+' q
ok "the socket sets one" fabricctl job set other-1 batch --user 65534
ok "of which the bus tells" wait_for 5 grep -q '^new other-1 /org/mrmpi/Fabric1/job/other_2d1' seen
ok "with an object" wait_for 5 grep -q "InterfacesAdded /org/mrmpi/Fabric1 \['org.freedesktop.DBus.*'org.mrmpi.Fabric1.Job'\]" signals
ok "a class that is set is told" wait_for 5 grep -q "PropertiesChanged /org/mrmpi/Fabric1/job/_34711 \['Account', 'Cgroup', 'Class', 'Given'" signals
is "they are counted" "$(property NumJobs)" "u 2"
ok "a job ends" manager EndJob s 4711
ok "of which the bus tells" wait_for 5 grep -q '^removed 4711 /org/mrmpi/Fabric1/job/_34711' seen
ok "and its process hears" wait_for 5 sh -c 'tail -n 1 watch | grep -q class=normal'
ok "its object is gone" refused 'Unknown object|No such' all call org.mrmpi.Fabric1 /org/mrmpi/Fabric1/job/_34711 org.mrmpi.Fabric1.Job End
exits 1 fabricctl policy apply simple.yaml >/dev/null 2>&1 # there is no fabric
ok "a policy that is being applied is told" wait_for 5 grep -q '^Applying .*simple.yaml' seen

# ---- bad orders ---------------------------------------------------------------------------------------------------
ok "no such job" refused "there is no job 'nobody'" manager SetJobClass ss nobody batch
ok "no such class" refused "no class 'gold'; allowed: urgent normal batch" manager SetJobClass ss other-1 gold
ok "no owner" refused 'user: whose job is it' manager RegisterJob 'ssua{sv}' 1 batch 4294967295 0
ok "no id" refused 'id: one, and 63 printable' manager RegisterJob 'ssua{sv}' '' batch 1 0
ok "too long an id" refused 'id: one, and 63 printable' manager RegisterJob 'ssua{sv}' "$(printf 'x%.0s' {1..64})" batch 1 0
ok "an id that is not printable" refused 'id: one, and 63 printable' manager RegisterJob 'ssua{sv}' $'a\nb' batch 1 0
ok "too long a class" refused 'class: 31 printable' manager SetJobClass ss other-1 "$(printf 'x%.0s' {1..32})"
ok "no such option" refused "no such option: 'uid'; allowed: account, qos, partition, name, wish, cgroup, lease" manager RegisterJob 'ssua{sv}' 1 batch 1 1 uid s 0
ok "a run that is none" refused 'run is 2147483648; allowed: 0 to 2147483647' manager RegisterJob 'ssua{sv}' 1 batch 1 1 run u 2147483648
ok "nor has it an end" refused 'run is 2147483648; allowed: 0 to 2147483647' manager EndRun su other-1 2147483648
ok "a lease that is none" refused 'lease is 0; allowed: 1 to 31536000 seconds' manager RegisterJob 'ssua{sv}' 1 batch 1 1 lease u 0
ok "a ratio that is none" refused "small_ratio is '1:0'; allowed: SMALL:LARGE" manager RegisterJob 'ssua{sv}' 1 batch 1 1 small_ratio s 1:0
ok "nor here" refused "small_ratio is '7'; allowed: SMALL:LARGE" manager SetSmallRatio ss other-1 7
ok "a cgroup that is none" refused "'/tmp' is not the directory of a job's cgroup" manager RegisterJob 'ssua{sv}' 1 batch 1 1 cgroup s /tmp
join() { manager JoinPartition 'ssasua{sv}' "$@"; }
ok "a partition on a node that does not manage" refused "names no opensm: the order is for the host that manages" join 1 batch 1 n1 "$me" 0
ok "without hosts" refused 'hosts: one or more; names of up to' join 1 batch 0 "$me" 0
ok "of hosts that are none" refused 'hosts: one or more; names of up to' join 1 batch 1 'n[3-1]' "$me" 0
ok "with an option that is not of it" refused 'allowed options: account, qos, partition, name, wish, lease, run' join 1 batch 1 n1 "$me" 1 small_ratio s 1:9
ok "a job that has not joined does not leave" refused 'no such job has joined' manager LeavePartition si 1 -1
ok "nor a run that is none" refused 'run is -2; allowed: 0 to 2147483647, -1: any' manager LeavePartition si 1 -2
ok "an option of another type" refused '' manager RegisterJob 'ssua{sv}' 1 batch 1 1 name u 0
is "nothing of that is a job" "$(property NumJobs)" "u 1"

# ---- who may what -------------------------------------------------------------------------------------------------
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  chmod 711 "$tmp"
  user() { setpriv --reuid 65534 --regid 65534 --clear-groups busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" "$@"; }
  users() { user call -- org.mrmpi.Fabric1 /org/mrmpi/Fabric1 org.mrmpi.Fabric1.Manager "$@"; }
  manager RegisterJob 'ssua{sv}' roots urgent 0 0 >/dev/null
  ok "a user reads the state" user get-property org.mrmpi.Fabric1 /org/mrmpi/Fabric1 org.mrmpi.Fabric1.Manager Classes
  users ListJobs >q
  like "and lists his jobs" '^a\(sossut\) 1 "other-1" ' q
  ok "one of his" users DescribeJob s other-1
  ok "another's is none" refused "there is no job 'roots' of yours" users DescribeJob s roots
  ok "he may not register" refused 'Access denied|only root' users RegisterJob 'ssua{sv}' his urgent 65534 0
  ok "nor set a class" refused 'Access denied|only root' users SetJobClass ss other-1 urgent
  ok "nor end a job" refused 'Access denied|only root' users EndJob s roots
  ok "nor a run" refused 'Access denied|only root' users EndRun su roots 0
  ok "nor look at jobs' objects" refused 'Access denied|not allowed' \
    user get-property org.mrmpi.Fabric1 /org/mrmpi/Fabric1/job/roots org.mrmpi.Fabric1.Job Class
  ok "nor list these" refused 'Access denied|not allowed' user call org.mrmpi.Fabric1 /org/mrmpi/Fabric1 \
    org.freedesktop.DBus.ObjectManager GetManagedObjects
  ok "nor see the policy's history" refused 'Access denied|only root may do this to the policy' users ListGenerations
  ok "nor a generation of it" refused 'Access denied|only root may do this to the policy' users ShowGeneration t 1
  ok "nor roll it back" refused 'Access denied|only root may do this to the policy' users RollbackPolicy xb -1 false
  ok "nor have hosts join a partition" refused 'Access denied|only root may do this to partitions of jobs' users JoinPartition 'ssasua{sv}' 1 '' 1 n1 65534 0
  ok "nor leave one" refused 'Access denied|only root may do this to partitions of jobs' users LeavePartition si 1 -1
  ok "nor see who has joined" refused 'Access denied|only root may do this to partitions of jobs' users ListJoined
  ok "nor take the name" refused 'Access denied|not allowed' user call org.freedesktop.DBus /org/freedesktop/DBus \
    org.freedesktop.DBus RequestName su org.mrmpi.Fabric1 2
  manager RegisterJob 'ssua{sv}' chosen '' 65534 2 qos s high wish s urgent >/dev/null
  users ListJobs >q
  like "a class that the policy offers its job may be wished" '"chosen" [^ ]+ "urgent" "user" 65534' q
  ok "another may be chosen" users ChooseClass ss chosen batch
  users DescribeJob s chosen >q
  like "while it runs" '"Class" s "batch" "Given" s "" "Wish" s "batch" "Source" s "user"' q
  ok "a small ratio may be" users SetSmallRatio ss chosen 0:1
  users DescribeJob s chosen >q
  like "and is there" '"SmallRatio" s "0:1"$' q
  ok "not of another's job" refused "there is no job 'roots'" users SetSmallRatio ss roots 0:1
  ok "but no other" refused "job chosen may not choose class 'normal'; allowed: urgent batch" users ChooseClass ss chosen normal
  ok "not for another's job" refused "there is no job 'roots'" users ChooseClass ss roots batch
  ok "nor for one that was given its class" refused "job other-1 was given class 'batch' by the scheduler" \
    users ChooseClass ss other-1 batch
  ok "nor by an id that is too long" refused 'class: 31 printable' users ChooseClass ss chosen "$(printf 'x%.0s' {1..32})"
  ok "the choice is taken back" users ChooseClass ss chosen ''
  users DescribeJob s chosen >q
  like "and the rules hold" '"Class" s "normal" "Given" s "" "Wish" s "" "Source" s "rule"' q
  cp "$BUILD/bin/fabricctl" . && chmod 755 fabricctl
  ctl() { setpriv --reuid 65534 --regid 65534 --clear-groups ./fabricctl "$@"; }
  ok "the socket takes a choice, too" ctl job choose chosen urgent
  ctl job list >q
  like "which the list shows" '^- .id: chosen, class: urgent, source: user, ' q
  ok "and refuses one" exits 1 ctl job choose chosen normal
  ok "a user's job is shown to root as to him" sh -c 'fabricctl job show chosen | grep -q "^class: urgent$"'
  ok "it ends" manager EndJob s chosen
  manager ListJobs >q
  like "all is as it was" '2 "other-1" .* "batch" "scheduler" 65534 .* "roots" .* "urgent" "scheduler" 0' q

  "$peer" polkit 65534 >polkit 2>&1 &
  polkit=$!
  started
  ok "polkit comes" wait_for 5 grep -q ready polkit
  ok "whom it lets may give orders" users SetJobClass ss other-1 urgent
  like "having been asked for him" '^system-bus-name org.mrmpi.fabric1.manage-jobs 65534$' polkit
  like "which is in the journal" 'job other-1: class urgent \(set by uid 65534\)' log
  ok "or see the history" users ListGenerations
  like "by an action of its own" '^system-bus-name org.mrmpi.fabric1.manage-policy 65534$' polkit
  ok "or who has joined partitions" users ListJoined
  like "by another one" '^system-bus-name org.mrmpi.fabric1.manage-partitions 65534$' polkit
  is "all of which polkit knows" "$(sed -n 's/.*action id="\(.*\)".*/\1/p' "$top/etc/dbus/org.mrmpi.fabric1.policy" | sort | xargs)" \
    "$(sed -n 's/^system-bus-name \([^ ]*\) .*/\1/p' polkit | sort -u | xargs)"
  ok "root is not asked about" manager SetJobClass ss other-1 batch
  is "once each was" "$(grep -c system-bus-name polkit)" 3
  ok "others may not" refused 'Access denied|only root' setpriv --reuid 1 --regid 1 --clear-groups \
    busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" call org.mrmpi.Fabric1 /org/mrmpi/Fabric1 org.mrmpi.Fabric1.Manager EndJob s roots
  stop $polkit
  ok "without it nobody but root" refused 'Access denied|only root' users SetJobClass ss other-1 urgent
fi

# ---- many, and mad ------------------------------------------------------------------------------------------------
"$peer" flood 2000 >flood 2>&1
like "2000 calls, a hundred at once, are all answered" '^done 2000$' flood
ok "callers who are gone" "$peer" leave 50
ok "harm nobody" manager EndJob s x

# ---- the bus comes and goes ---------------------------------------------------------------------------------------
stop $bus
ok "without its bus fabricd goes on" fabricctl status
ok "and takes orders" fabricctl job set between urgent --user "$(id -u)"
ok "the bus is started anew" start_bus
ok "and fabricd is on it" wait_for 20 property NumJobs
manager DescribeJob s between >q
like "with what happened meanwhile" '"Class" s "urgent"' q
rc=0
kill $daemon
wait $daemon || rc=$?
is "SIGTERM ends it with status 0" $rc 0

# ---- a simulated host ---------------------------------------------------------------------------------------------
simfab run --topology two-hosts-two-rails -- simfab exec h2 -- sh -c 'echo "$SIMFAB_DIR $DBUS_SYSTEM_BUS_ADDRESS"' >q 2>/dev/null
read -r dir address <q
is "a simulated host has not this machine's bus" "$address" "unix:path=$dir/bus-h2"

done_testing
