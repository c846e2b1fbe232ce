#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# fabricd with the real opensm on a simulated fabric: apply, verify every port, drift, restart, jobs, who may do what.

if [ -z "${SIMFAB_DIR:-}" ]; then
    here=$(cd "$(dirname "$0")" && pwd)
    exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" -- bash "$here/simfab.sh"
fi
. "$(dirname "$0")/lib.sh"
tool=$BUILD/tests/fabricd/fabric_tool
conf=$SIMFAB_DIR/opensm/opensm.conf
chmod 711 "$tmp"
{ cat "$top/etc/policies/simple.yaml"; echo 'repair: report'; } >simple.yaml # drift.sh has it mended
low=0:192,1:192,2:192,3:128,0:192,1:192,2:192 # 60 : 30 : 10 on lanes 1 and 2, 0, and 3

cat >fabricd.yaml <<END
state: $tmp/state
socket: $FABRICD_SOCKET
opensm:
  config: \$SIMFAB_DIR/opensm/opensm.conf
  restart: sh $tmp/restart
verify: {timeout: 6, interval: 1}
rails: {interval_ms: 100}
END
# with a cable that is out from then on, and back 3 s later
cat >restart <<END
[ ! -e $tmp/pull ] || { simfab fault link "h2 mlx5_1" 1 down; (sleep 3; touch $tmp/back; simfab fault link "h2 mlx5_1" 1 up) >/dev/null 2>&1 & }
exec simfab opensm restart
END
start_daemon() {
  simfab exec --real-clock h1 -- fabricd --config "$tmp/fabricd.yaml" >>fabricd.log 2>&1 &
  daemon=$!
  started
}

ok "opensm has the subnet up" simfab opensm wait
start_daemon
ok "fabricd serves its socket" wait_for 10 fabricctl status
"$tool" query "$FABRICD_SOCKET" 4711 >q
like "without a policy: service level 0, said so" '^seq=5 status=-2 .* small=0 bulk=0 .* rails=mlx5_0/1/lidok/lmc0/up,mlx5_1/1/' q

ok "verifying without a policy is no success" exits 1 fabricctl policy verify
fabricctl policy verify >q 2>&1
like "and no difference" '^8 ports of 5 nodes are up; no policy is in force$' q
ok "diff tells by its exit status that a policy would change something" exits 1 fabricctl policy diff simple.yaml
fabricctl policy diff simple.yaml >q 2>&1
like "on which port and how" 'h2 mlx5_1 .0x[0-9a-f]{16}. port 1: VLArb low: expected '"$low found " q
ok "and changes nothing" status_has '^policy: .*state: none'
ok "programs hear what would change where" answers look 1 policy diff simple.yaml
found() { python3 -c "import json; a = json.load(open('answer')); print($1)"; }
is "port by port" "$(found "a['nodes'], a['ports'], a['differences'] == len(a['differ']) > 8, len({(d['guid'], d['port']) for d in a['differ']})")" \
  "5 8 True 8"
ok "and that nothing is verified without a policy" answers look 1 policy verify
is "with the reason" "$(found "a['error']")" "not done: no policy is in force"

# a first policy of which the ports get a part: all are to have again what they had
switch_tables() { # of the ports of the switch across h1's first cable
  local p
  for p in 1 2 3 4; do
    simfab exec h1 -- smpquery -D VLArb 0,1 $p
    simfab exec h1 -- smpquery -D SL2VL 0,1 $p
    simfab exec h1 -- smpquery -D PortInfo 0,1 $p | grep VLHighLimit
  done 2>&1
}
switch_tables >had
ok "tables are read" test "$(grep -c VLHighLimit had)" -ge 2
kill -STOP "$(simfab opensm pid)"
exits 3 fabricctl policy apply simple.yaml >half &
half=$!
wait_for 5 grep -q '^wrote ' half
simfab exec h2 -- "$tool" vlarb 1 0x10001 0:1,1:200
simfab exec h2 -- "$tool" vlarb 1 0x30001 4:1
ok "a first policy that ports have not taken in time is not applied" wait $half
kill -CONT "$(simfab opensm pid)"
like "and who is to blame" "^opensm .pid $(simfab opensm pid). was told by SIGHUP, and has not given the ports the tables within 6 s: see its log" half
like "which is rolled back" 'rolling back to the configuration from before' fabricd.log
like "into the ports, too" 'the ports have the tables of before again: 2 blocks written back' fabricd.log
ok "they have what they had" eval 'switch_tables >has && diff had has'
ok "a policy is applied and verified" fabricctl policy apply simple.yaml
ok "then diff finds nothing" fabricctl policy diff simple.yaml
fabricctl policy diff simple.yaml >q
like "after which diff has nothing to tell" '^all 8 ports have what this policy wants' q
ok "for programs, too" answers look 0 policy diff simple.yaml
is "in the same words" "$(found "a['messages'][-1], a['differ']")" "all 8 ports have what this policy wants []"
ok "they can apply it" answers look 0 policy apply simple.yaml
is "and see what the ports have" "$(found "a['messages'][-1], a['differences']")" "policy in force: generation 2 as before 0"
ok "and that they have it" answers look 0 policy verify
fabricctl policy apply simple.yaml >q
like "and applying it again leaves opensm alone" '^verified: 8 ports of 5 nodes had the policy.s tables already' q
ok "8 ports of 5 nodes have it" status_has '^policy: .*generation: 2, state: verified, nodes: 5, ports: 8, differences: 0'
simfab exec h2 -- smpquery -D SL2VL 0 >q
like "infiniband-diags agree about SL2VL" '0\| 4\| 1\| 2\| 5\| 0\| 3\| 3\| 0' q
simfab exec h2 -- smpquery -D PortInfo 0,1 2 >q
like "and about the high limit of a switch port" 'VLHighLimit:\.*1$' q

cp "$conf" before.conf
printf 'version: 1\nclasses:\n  - {name: a, share: 120}\njobs: {default: a}\n' >bad.yaml
ok "a bad policy exits 2" exits 2 fabricctl policy apply bad.yaml
fabricctl policy check bad.yaml 2>q
like "and the place is named" '^bad.yaml:3:22: error: share is .120.; allowed: a whole number from 1 to 100' q
ok "the fabric's configuration is untouched" cmp "$conf" before.conf
sed 's/vls: 8/vls: 15/' simple.yaml >vls15.yaml
ok "a policy that the ports cannot have exits 2" exits 2 fabricctl policy apply vls15.yaml
ok "and touches nothing either" cmp "$conf" before.conf

# jobs and the library's view
"$tool" watch "$FABRICD_SOCKET" 4711 >watch 2>&1 &
started
ok "the library is told the default class" wait_for 5 grep -q '^seq=5 status=0 changed=0 .*class=normal small=4 bulk=5 ' watch
ok "a job is given another class" fabricctl job set 4711 urgent --user "$(id -u)"
ok "its subscriber hears of it" wait_for 5 grep -q '^seq=0 status=0 changed=[13] .*class=urgent small=1 bulk=2,3 small_max=1024' watch
fabricctl job show 4711 >q
is "fabricctl says it, too" "$(grep -E '^(class|sl_)' q | tr '\n' ' ')" "class: urgent sl_small: 1 sl_bulk: [2, 3] "
"$tool" query "$FABRICD_SOCKET" 4712 >q
like "other jobs keep theirs" 'class=normal small=4' q
mrrun -n 2 --hosts h1,h2 "$BUILD/tests/libmrmpi/vc_probe" 100000 >/dev/null 2>&1 &
traffic=$!
carries() {
  simfab exec --real-clock h1 -- fabricctl top --interval 1 --count 1 >q
  grep -Eq '^mlx5_0/1 +Active +40000 +[1-9][0-9]*\.[0-9] .' q || { cat q; return 1; }
}
ok "top shows what rails carry" wait_for 60 carries
kill $traffic
wait $traffic
like "the policy, and that this is no real fabric" '^h1 .manager., [0-9]+ clients +policy: generation 2, verified, 8 ports +.simulated.$' q
like "classes" '^urgent +60\.0 +3 1,2,3 +4,1,2 +1$' q
like "and jobs" '^4711 +urgent +scheduler ' q
ok "an unknown class is refused" exits 2 fabricctl job set 4711 urgnt --user "$(id -u)"
ok "a job whose class the rules decide" fabricctl job set 4713 - --account students --user "$(id -u)"
"$tool" query "$FABRICD_SOCKET" 4713 >q
like "gets it" 'class=batch small=7 bulk=7' q

# levels between small and large messages
"$tool" levels "$FABRICD_SOCKET" 4714 >q
not_ok "a class without levels between has none" grep -q medium= q
sed 's/^    share: 30/    share: 30\n    medium: [32K, 1M]/' simple.yaml >medium.yaml
cp "$conf" simple.conf
ok "a policy with such levels is applied and verified" fabricctl policy apply medium.yaml
"$tool" levels "$FABRICD_SOCKET" 4714 >q
like "who asks for them is told" 'class=normal small=4 bulk=5 .* medium=32768:8 medium=1048576:9$' q
"$tool" query "$FABRICD_SOCKET" 4714 >q
like "a client of before is told what it understands" 'class=normal small=4 bulk=5 ' q
not_ok "and no more" grep -q medium= q
fabricctl job show 4714 >q
like "fabricctl shows them" '^medium: .{upto: 32768, sl: .8.}, {upto: 1048576, sl: .9.}.$' q
ok "the policy without them is applied again" fabricctl policy apply simple.yaml
ok "and all is as before" cmp "$conf" simple.conf

# the daemon dies
kill -9 $daemon
wait $daemon 2>/dev/null
ok "subscribers see the end" wait_for 5 grep -q '^end$' watch
start_daemon
ok "fabricd comes back after kill -9" wait_for 10 fabricctl status
"$tool" query "$FABRICD_SOCKET" 4711 >q
like "jobs and policy have survived" 'status=0 .* generation=4 class=urgent small=1 bulk=2,3' q
ok "and the ports are verified again" wait_for 5 status_has '^policy: .*state: verified'

# somebody changes a port of the switch behind opensm's back
ok "a table is changed by a datagram" simfab exec h2 -- "$tool" vlarb 1 0x10002 0:1,1:200
ok "the daemon notices" wait_for 10 status_has '^policy: .*state: differs, .*differences: 1,'
fabricctl status >q
like "and names node, port, table, expected and found" \
  "leaf1 .0x[0-9a-f]{16}. port 2: VLArb low: expected $low found 0:1,1:200" q
ok "policy verify says so, too" exits 1 fabricctl policy verify
ok "also to programs" answers look 1 policy verify
is "which port has what" "$(found "a['error'], [(d['node'], d['port'], d['what']) for d in a['differ']]")" \
  "the fabric differs from the policy; see 'fabricctl status' [('leaf1', 2, 'VLArb low: expected $low found 0:1,1:200')]"
ok "applying the policy again repairs it" fabricctl policy apply simple.yaml
simfab exec h2 -- smpquery -D VLArb 0,1 2 >q
like "infiniband-diags agree" 'WEIGHT: \|0xC0\|0xC0\|0xC0\|0x80\|' q

# a forwarding table loses a host
lid=$(simfab exec h2 -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)
was=$(simfab exec h1 -- "$tool" lft 1 $((lid)) 255)
ok "a lost route is noticed" exits 1 fabricctl policy verify
fabricctl status >q
like "and the LID is named" "h2 mlx5_0 .0x[0-9a-f]{16}. port 1: LID $((lid)): no route there from this host" q
simfab exec h1 -- "$tool" lft 1 $((lid)) "$was" >/dev/null
ok "and its return" fabricctl policy verify

# requests wait for each other
pids=()
for i in 1 2 3 4 5 6; do
  fabricctl policy verify >"v$i" 2>&1 &
  pids+=($!)
done
bad=0
for p in "${pids[@]}"; do wait "$p" || bad=1; done
is "six verifications at once are all answered" "$bad $(cat v? | grep -c '^verified: 8 ports')" "0 6"

# LMC needs a restart of opensm
sed 's/lmc: 0/lmc: 1/' simple.yaml >lmc1.yaml
old=$(simfab opensm pid)
touch pull
ok "a policy with another lmc is applied and verified" eval 'fabricctl policy apply lmc1.yaml >said'
ok "by a restart of opensm" test "$(simfab opensm pid)" != "$old"
ok "when all ports are up again that were up before" test -e back
like "and have been read" '^verified: 8 ports of' said
rm -f pull
"$tool" query "$FABRICD_SOCKET" 4711 >q
like "the library is told the paths" 'rails=mlx5_0/1/lidok/lmc1/up,mlx5_1/1/lidok/lmc1/up' q

# where ports of other hosts are
sysfs() { simfab exec h2 -- cat "/sys/class/infiniband/mlx5_1/ports/1/$1"; }
guid=$(sysfs gids/0 | sed 's/^.\{20\}//; s/://g')
where() { "$tool" where "$FABRICD_SOCKET" "$@" | cut -d' ' -f2- | LC_ALL=C sort | uniq -c | tr -s ' ' | tr '\n' ';'; } # N DEVICE PORT GUID
is "the library is told where a port of another host is" "$(where 1 mlx5_0 1 "$guid")" " 1 status=0 lid=$(($(sysfs lid))) lmc=1;"
is "and so are many at once" "$(where 60 mlx5_1 1 "$guid")" " 60 status=0 lid=$(($(sysfs lid))) lmc=1;"
is "a port that nobody knows" "$(where 1 mlx5_0 1 1234)" " 1 status=-2 lid=0 lmc=0;"
is "a port that this host does not have" "$(where 1 mlx5_7 1 "$guid")" " 1 status=-19 lid=0 lmc=0;"

# opensm does not do what it is told
cp "$conf" before.conf
sed 's/share: 60/share: 40/' lmc1.yaml >other.yaml
kill -STOP "$(simfab opensm pid)"
ok "a policy that the fabric does not take in time is not applied" exits 3 fabricctl policy apply other.yaml
is "nobody answers; who asks too much is told so" "$(where 80 mlx5_0 1 4321)" " 64 status=-110 lid=0 lmc=0; 16 status=-16 lid=0 lmc=0;"
kill -CONT "$(simfab opensm pid)"
ok "opensm's configuration is the last good one" cmp "$conf" before.conf
ok "the policy before it is in force and verified" wait_for 10 status_has '^policy: .*generation: 5, state: verified'

# the state directory does not take it
sed 's/share: 60/share: 50/' lmc1.yaml >full.yaml
mv state/generations kept
: >state/generations
ok "a policy that could not be kept is not applied" exits 1 fabricctl policy apply full.yaml
fabricctl policy apply full.yaml >q 2>&1
like "which is said" '/state: Not a directory: the policy could not be kept, so that nothing is changed$' q
ok "opensm's configuration is as before" cmp "$conf" before.conf
ok "and the policy before it in force" status_has '^policy: .*generation: 5, state: verified'
rm state/generations
mv kept state/generations
mv state/current kept
mkdir state/current
ok "one that cannot be kept after all is no success" exits 3 fabricctl policy apply full.yaml
ok "and is not in force" wait_for 10 status_has '^policy: .*generation: 5, state: verified'
ok "nor in opensm's configuration" cmp "$conf" before.conf
rmdir state/current
mv kept state/current
is "nothing is left of it" "$(find state -name intent -o -name .new -o -name '*.tmp-*')" ""

# hostile and careless clients
ok "nonsense on the socket" "$tool" garbage "$FABRICD_SOCKET" 300
ok "a client that never reads is dropped" timeout 20 "$tool" flood "$FABRICD_SOCKET"
ok "the daemon has survived them" status_has "^fabricd: .*pid: $daemon,"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
  cp "$BUILD/bin/fabricctl" "$tool" .
  chmod 755 fabricctl fabric_tool
  other() { setpriv --reuid 65534 --regid 65534 --clear-groups env -u LD_PRELOAD "$@"; }
  ok "another user may read the status" other ./fabricctl status
  other ./fabricctl job list >q
  is "but does not see others' jobs" "$(cat q)" ""
  ok "may not set a job" exits 1 other ./fabricctl job set 4711 batch
  cp lmc1.yaml readable.yaml && chmod 644 readable.yaml
  ok "may not apply a policy" exits 1 other ./fabricctl policy apply readable.yaml
  ok "a job belongs to a user" fabricctl job set 4714 urgent --user 65534
  other ./fabric_tool query "$FABRICD_SOCKET" 4714 >q
  like "who has its class" 'class=urgent' q
  "$tool" query "$FABRICD_SOCKET" 4714 >q
  like "and nobody else" 'class=normal' q
fi

# a node without an opensm of its own
cat >serve.yaml <<END
policy: $tmp/lmc1.yaml
state: $tmp/state2
socket: $tmp/fabricd2-%h.sock
verify: {timeout: 6, interval: 1}
END
simfab exec --real-clock h2 -- fabricd --config "$tmp/serve.yaml" >>fabricd2.log 2>&1 &
h2_daemon=$!
started
h2=$tmp/fabricd2-h2.sock
ok "fabricd on a node without opensm verifies the same tables" \
  wait_for 10 eval "fabricctl --socket $h2 status | grep -q '^policy: .*state: verified'"
ok "another daemon on the same socket is refused" exits 1 simfab exec --real-clock h2 -- fabricd --config "$tmp/serve.yaml" --state "$tmp/state3"

# the same node once more, when its state can only be read
stop $h2_daemon
read_only='mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec fabricd --config "$2"'
if unshare --mount true 2>/dev/null; then
  touch state2/jobs.yaml.tmp-123456
  simfab exec --real-clock h2 -- unshare --mount sh -c "$read_only" sh "$tmp/state2" "$tmp/serve.yaml" >>fabricd3.log 2>&1 &
  reader=$!
  started
  ok "with a state that can only be read fabricd serves what is there" \
    wait_for 10 eval "fabricctl --socket $h2 status | grep -q '^policy: .*state: verified'"
  "$tool" query "$h2" 4711 >q
  like "to the library, too" '^seq=.* status=0 .*class=normal' q
  like "and says so once" '/state2: Read-only file system: what it has is served, and what cannot be kept there is refused$' fabricd3.log
  ok "a job that cannot be kept is refused" exits 1 fabricctl --socket "$h2" job set 4719 urgent --user "$(id -u)"
  fabricctl --socket "$h2" job set 4719 urgent --user "$(id -u)" >q 2>&1
  like "with the reason" 'Read-only file system' q
  ok "and so is a policy" exits 1 fabricctl --socket "$h2" policy apply other.yaml
  stop $reader
fi

# its first policy goes to a file that opensm does not read, by a link
mkdir elsewhere
cp "$conf" elsewhere/opensm.conf
ln -s elsewhere/opensm.conf link.conf
sed -e 's/share: 60/share: 50/; s/share: 30/share: 40/' lmc1.yaml >untaken.yaml
cat >untaken-daemon.yaml <<END
policy: $tmp/untaken.yaml
state: $tmp/state4
socket: $tmp/fabricd4-%h.sock
opensm: {config: $tmp/link.conf, pid_file: $SIMFAB_DIR/opensm/opensm.pid}
verify: {timeout: 1, interval: 1}
END
simfab exec --real-clock h2 -- fabricd --config "$tmp/untaken-daemon.yaml" >>fabricd4.log 2>&1 &
untaken=$!
started
tries() { grep -c 'putting the policy .*untaken.yaml in force' fabricd4.log; }
ok "a first policy that ports do not take is tried again" wait_for 30 eval '[ "$(tries)" -ge 2 ]'
sleep 10
ok "but not at every look" test "$(tries)" -le 3
stop $untaken
ok "a configuration that is a link is one still" test -L link.conf
ok "and has been put back" cmp elsewhere/opensm.conf "$conf"

pid=$(simfab opensm pid)
kill "$pid"
process_gone "$pid"
ok "without an opensm nothing is written" exits 1 fabricctl policy apply other.yaml
ok "and the configuration stays" cmp "$conf" before.conf
kill $daemon
rc=0
wait $daemon || rc=$?
is "SIGTERM ends the daemon with status 0" $rc 0
not_ok "and its socket is gone" test -e "$FABRICD_SOCKET"

done_testing
