#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Generations: history, show, rollback, also to before the first policy; what apply would do; exit statuses that tell how
# it ended; one change at a time; and no policy but the one that other hosts follow.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" -- bash "$here/history.sh"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
hosts="h1 h2"
export FABRICD_SOCKET=$SIMFAB_DIR/fabricd-h1.sock
state=$SIMFAB_DIR/fabricd-h1
osm=$SIMFAB_DIR/opensm/opensm.conf
sed 's/timeout: 20/timeout: 4/; s/interval: 5/interval: 1/' "$top/etc/fabricd/simfab.yaml" >fabricd.yaml
conf=$tmp/fabricd.yaml
ports() { # what ports of the switch have
  local p
  for p in 1 2 3 4; do
    simfab exec h2 -- smpquery -D VLArb 0,1 $p
    simfab exec h2 -- smpquery -D SL2VL 0,1 $p
  done 2>&1
}
restart() { # the manager, killed
  kill -9 "${daemon_of[1]}"
  wait "${daemon_of[1]}" 2>/dev/null
  start h1
  wait_for 20 on h1 status
}
begin_apply() { # of the policy, as $first, until opensm's file is written. The lines of an apply before are none of its own
  rm -f q
  fabricctl policy apply "$policy" >q 2>&1 &
  first=$!
  wait_for 10 grep -q '^wrote' q || ok "opensm's file is written" false
}

ok "opensm has the subnet up" simfab opensm wait
cp "$osm" first.conf
ports >first.ports
cp "$top/etc/policies/simple.yaml" one.yaml
sed 's/share: 60/share: 50/' one.yaml >two.yaml
sed 's/vls: 8/vls: 15/' one.yaml >"$policy" # refused, so that the daemon puts nothing in force by itself
for h in $hosts; do start $h; done
for h in $hosts; do wait_for 20 on $h status; done
ok "the configured policy is refused" wait_for 10 grep -q 'the policy was not put in force: Invalid argument' h1.log
ok "which the status tells" wait_for 5 status_has "^failed: .policy: \"?$policy\"?, result: refused, why: \".*, s_ago: [0-9]+.\$"
is "there is no history yet" "$(fabricctl policy history)" "[]"
ok "nor anything to go back to" exits 1 fabricctl policy rollback
like "and the reason is told" '^no policy is in force$' <(fabricctl policy rollback 2>&1)

# what it would do
ok "another policy than the followed one is refused" exits 2 fabricctl policy apply one.yaml
fabricctl policy apply one.yaml >q 2>&1
like "and it is said which is" "^one.yaml is not $policy, which this cluster's hosts follow: put it there" q
cp one.yaml "$policy"
ok "a dry run" fabricctl policy apply "$policy" --dry-run
fabricctl policy apply "$policy" --dry-run >q
like "tells the files" "^would write $osm\$" q
like "the ports" 'VLArb low: expected .* found ' q
like "and the number" '^would be generation 1$' q
ok "and changes nothing" cmp first.conf "$osm"
is "nor has it a number" "$(fabricctl policy history)" "[]"
sed 's/vls: 8/vls: 15/' one.yaml >"$policy"
ok "it refuses what apply would refuse" exits 2 fabricctl policy apply "$policy" --dry-run

# history
cp one.yaml "$policy"
ok "a policy" fabricctl policy apply "$policy"
ok "is followed" wait_for 10 verified 1
cp two.yaml "$policy"
ok "another one" fabricctl policy apply "$policy"
ports >two.ports
cp "$osm" two.conf
kill -STOP "$(simfab opensm pid)"
sed 's/share: 60/share: 40/' one.yaml >"$policy"
begin_apply
SECONDS=0
ok "while a change is made another one is refused" exits 1 fabricctl policy apply "$policy"
ok "at once" test $SECONDS -le 3
fabricctl policy apply "$policy" >again 2>&1
like "with the one that is at work" "^$policy is being put in force, as uid $(id -u) has asked [0-9]+ s ago: " again
rc=0
wait $first || rc=$?
is "one that was rolled back exits with 3" $rc 3
kill -CONT "$(simfab opensm pid)"
ok "status tells of it" wait_for 5 status_has "^failed: .policy: \"?$policy\"?, result: rolled back, why: \".* has not given the ports the tables within 4 s.*, s_ago: [0-9]+.\$"
ok "what was there is in force" wait_for 10 status_has '^policy: .*generation: 2, state: verified'
like "the history has all three" '^- .generation: 1, at: "20[0-9-]+T[0-9:]+Z", by: apply, policy: .*, uid: [0-9]+, result: in force, current: false, planes: .*' <(fabricctl policy history)
like "with the current one, and the port from which its plane was read" \
  'generation: 2, .*result: in force, current: true, planes: .*port: "mlx5_[01]/1", opensm: ' <(fabricctl policy history)
like "and how it ended" 'generation: 3, .*result: rolled back, current: false' <(fabricctl policy history)
ok "for programs" answers "policy history" 0 policy history
ok "one of them" answers "policy show" 0 policy show 1
is "with its policy" "$(python3 -c 'import json; a = json.load(open("answer")); print(a["text"], end=""); print(a["ports"], a["differences"])')" "$(cat one.yaml; echo 8 0)"
ok "not one that there is not" exits 1 fabricctl policy show 9
ok "nor one that is no number" exits 2 fabricctl policy show x

# rollback
sed 's/timeout: 4/timeout: 20/' fabricd.yaml >slow.yaml
ok "back to the policy before" fabricctl policy rollback
ok "which is a generation of its own" wait_for 10 status_has '^policy: .*generation: 4, state: verified'
ok "hosts that follow it have it, too" wait_for 10 verified 4
is "the followed file has it" "$(cmp one.yaml "$policy" && echo same)" same
like "what it had is kept" 'share: 40' "$policy.before-rollback"
ok "to one by its number" fabricctl policy rollback 2
ports >has
ok "with the tables that it had" cmp has two.ports
ok "and opensm's file" cmp "$osm" two.conf
ok "everywhere" wait_for 10 verified 5
ok "not to one that there is not" exits 2 fabricctl policy rollback 77
restart
ok "it is in force after a crash" wait_for 10 status_has '^policy: .*generation: 5, state: verified'

# to before the first one
fabricctl policy show 0 >shown
like "what was there before the first is shown as that" '^result: before the first policy$' shown
is "without a date" "$(grep '^at:' shown)" 'at: ""'
ok "to what was there before the first" fabricctl policy rollback 0
ports >has
ok "ports have what they had" diff has first.ports
ok "and opensm's file is as it was" cmp "$osm" first.conf
ok "no policy is in force" status_has '^policy: .*generation: 6, state: none'
ok "which a host that follows hears" wait_for 10 seen h2 '^policy: .*generation: 6, state: none'
kill -9 "${daemon_of[2]}"
wait "${daemon_of[2]}" 2>/dev/null
start h2
wait_for 20 on h2 status
ok "and knows after a restart" wait_for 5 seen h2 '^policy: .*generation: 6, state: none'
restart
sleep 3
ok "nor is one by itself, after a crash" status_has '^policy: .*generation: 6, state: none'
ports >has
ok "and the ports stay so" cmp has first.ports
cp one.yaml "$policy"
ok "until one is applied" fabricctl policy apply "$policy"
ok "with a number of its own" wait_for 10 verified 7

# how it can end
kill -STOP "$(simfab opensm pid)"
cp two.yaml "$policy"
begin_apply
sm=$(simfab opensm pid)
mv "$SIMFAB_DIR/opensm/h1.pid" pid # opensm runs, and cannot be told
rc=0
wait $first || rc=$?
is "one that cannot be rolled back exits with 4" $rc 4
ok "which status tells" status_has '^policy: .*change: unfinished'
mv pid "$SIMFAB_DIR/opensm/h1.pid"
kill -CONT "$sm"
ok "with an opensm it is" wait_for 20 status_has '^policy: .*generation: 7, state: verified'
not_ok "and not unfinished" grep -q unfinished status
ports >has
cp "$osm" has.conf
kill -STOP "$sm"
begin_apply
kill -KILL "$sm"
rc=0
wait $first || rc=$?
is "without its opensm it is rolled back from here" $rc 3
is "with the ports as they were" "$(ports)" "$(cat has)"
ok "and its file" cmp has.conf "$osm"
ok "a plane without a subnet manager is a difference" exits 1 fabricctl policy verify
ok "which status names" status_has 'the plane at mlx5_[01] port 1 has no subnet manager: of the configured opensm the one that reads .* does not run'
ok "an apply is refused" exits 1 fabricctl policy apply "$policy"
is "since no opensm runs" "$(fabricctl policy apply "$policy" 2>&1 | grep -c 'opensm')" 1
simfab opensm restart >restart 2>&1
ok "an opensm that is started again finds that" wait_for 20 status_has '^policy: .*generation: 7, state: verified'
ok "another policy by force" fabricctl policy apply two.yaml --force
ok "is in force here" wait_for 5 status_has '^policy: .*generation: 10, state: verified'
not_ok "and nothing is told of a failure" grep -q ^failed status

# a damaged state, while the followed file has a policy that nobody has applied
ports >has
truncate -s 50 "$state/policy.yaml"
sed 's/share: 60/share: 30/' one.yaml >"$policy"
restart
sleep 2
ok "of a damaged state nothing is in force, nor the file" status_has '^policy: .*state: none'
ports >now
ok "the ports are left alone" cmp now has
ok "a rollback mends it" fabricctl policy rollback 7
ok "for all" wait_for 10 verified 11
done_testing
