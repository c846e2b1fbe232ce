#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# policy.lock with the real opensm on a simulated fabric whose tables have 64 entries: the same tables from plan, apply and
# a daemon that starts again; service levels that stay; levels set free; locks that are missing, torn or wrong.

if [ -z "${SIMFAB_DIR:-}" ]; then
    here=$(cd "$(dirname "$0")" && pwd)
    exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" \
        --model "$here/../../etc/models/hdr.yaml" -- bash "$here/lock.sh"
fi
. "$(dirname "$0")/lib.sh"
tool=$BUILD/tests/fabricd/fabric_tool

cat >fabricd.yaml <<END
state: $tmp/state
socket: $FABRICD_SOCKET
opensm:
  config: \$SIMFAB_DIR/opensm/opensm.conf
  pid_file: \${SIMFAB_DIR}/opensm/opensm.pid
  restart: simfab opensm restart
verify: {timeout: 10, interval: 1}
END
start_daemon() {
  simfab exec --real-clock h1 -- fabricd --config "$tmp/fabricd.yaml" >>fabricd.log 2>&1 &
  daemon=$!
  started
  wait_for 10 fabricctl status || cat fabricd.log
}
restart_daemon() {
  kill "$1" $daemon
  wait $daemon 2>/dev/null
  rm -f "$FABRICD_SOCKET"
  start_daemon
}
tables() { sed -n '/^classes:/,/^  lmc:/p' "$1"; }
levels_of() { fabricctl job show "$1" | grep -E '^(class|sl_)' | tr '\n' ' '; }
policy() { # CLASS...: a policy with these classes; the first is the default
  printf 'version: 1\nclasses:\n'
  for c in "$@"; do printf '  - {name: %s, share: 20}\n' "$c"; done
  printf 'jobs: {default: %s}\n' "$1"
}

cat >p.yaml <<END
version: 1
classes:
  - {name: gold, share: 90, priority: high, medium: 64K}
  - {name: silver, share: 8}
  - {name: tin, share: 2, priority: low}
jobs: {default: silver}
END
ok "opensm has the subnet up" simfab opensm wait
start_daemon

# the same tables everywhere
fabricctl policy plan p.yaml >plan 2>plan.err
like "without a lock plan says what it assumes" 'p.lock does not tell what the fabric can do: planned for tables of 8 entries' plan.err
ok "a policy is applied and verified" fabricctl policy apply p.yaml
ok "its lock is beside it" cmp p.lock state/policy.lock
like "with what the fabric can do" '^fabric vls=[0-9]+ low=64 high=64 mtu=4096 rate=[1-9][0-9]* hops=2 oversubscription=1$' p.lock
like "and a line for each class" '^class gold small=1 medium=2 bulk=3$' p.lock
fabricctl policy plan p.yaml >plan
fabricctl status >status
is "plan with the lock has the tables in force" "$(tables plan)" "$(tables status)"
like "as exact as 64 entries can be" 'name: gold, share: 90.0, ' plan
cp p.lock before.lock
fabricctl policy apply p.yaml >q
like "applying it again finds all as it should be" 'had the policy.s tables already' q
ok "and leaves the lock as it is" cmp p.lock before.lock
restart_daemon -TERM
ok "a daemon that starts again has the same tables, and the ports have them" wait_for 5 status_has '^policy: .*state: verified, .*differences: 0'
fabricctl status >q
is "to the last entry" "$(tables q)" "$(tables status)"

# levels stay when classes come, go and change places
fabricctl job set g gold --user "$(id -u)" >/dev/null
gold=$(levels_of g)
policy new gold other >p2.yaml
cp p.lock p2.lock
ok "another policy, with another order and default" fabricctl policy apply p2.yaml
is "a class that stays keeps its levels" "$(levels_of g)" "$gold"
like "those that are gone keep theirs" '^retired silver small=4 bulk=5$' p2.lock
like "and are shown" '^retired: .silver, tin.$' <(fabricctl status)
like "new ones have others" '^class new small=8 bulk=9$' p2.lock
fabricctl policy lock >q
ok "fabricctl policy lock prints the lock in force" cmp q p2.lock

# levels are set free when nobody can use them
ok "a class in use is not forgotten" exits 1 fabricctl policy forget gold
fabricctl policy forget gold >q 2>&1
like "and it is said why" "job g has class 'gold'" q
not_ok "which is no reason to try again later" grep -q 'try again' q
fabricctl job set t tin --user "$(id -u)" >q 2>&1
like "a retired class is none for a job" "no class 'tin'" q
policy silver >p3.yaml
"$tool" watch "$FABRICD_SOCKET" 1 >watch 2>&1 &
watch=$!
started
ok "a process of the default class" wait_for 5 grep -q 'class=new ' watch
ok "a policy without it" fabricctl policy apply p3.yaml
ok "moves the process" wait_for 5 grep -q 'class=silver small=4 bulk=5 ' watch
ok "whose old levels are not free" exits 1 fabricctl policy forget new
fabricctl policy forget new >q 2>&1
like "since it may still use them" "1 processes of this host were given service levels of class 'new'" q
stop $watch
mv state/generations kept
: >state/generations
ok "nor if the lock cannot be written" exits 1 fabricctl policy forget new
fabricctl policy forget new >q 2>&1
like "which is said" '/state: Not a directory: the service levels stay as they are$' q
rm state/generations
mv kept state/generations
ok "until it has ended" fabricctl policy forget new
ok "once" exits 1 fabricctl policy forget new
cp p2.lock p3.lock # which knows the class
ok "a lock beside the file does not bring it back" fabricctl policy apply p3.yaml
not_ok "nor is it in the lock that comes back" grep -q ' new ' p3.lock
policy silver a b c d >p4.yaml
ok "levels that have run out refuse a policy" exits 2 fabricctl policy apply p4.yaml
fabricctl policy apply p4.yaml >q 2>&1
like "with the classes that hold them" "service levels, and [0-9]+ of the 16 are free; retired class 'gold' holds 3, " q

# two locks that contradict each other
sed 's/^class silver.*/class silver small=14 bulk=15/' p3.lock >p5.lock
cp p3.yaml p5.yaml
fabricctl policy apply p5.yaml >q
like "the daemon's lock counts" 'warning: p5.lock gives out other service levels than those in force, which stay' q
like "and replaces the other" '^class silver small=4 bulk=5$' p5.lock
echo 'lock 1 again' >p5.lock
ok "a lock that is none is refused" exits 2 fabricctl policy apply p5.yaml
fabricctl policy check p5.yaml 2>q
like "by line" '^p5.lock:1:8: error: .again.; allowed here: the end of the line' q

# what an old version, or its crash between writing two files, leaves behind
old_layout() { # POLICY [LOCK]: a state directory from before there were generations
  rm -rf state/current state/generations state/policy.yaml state/policy.lock
  cp "$1" state/policy.yaml
  [ -z "${2:-}" ] || cp "$2" state/policy.lock
  echo 3 >state/generation
}
cp state/policy.lock last.lock
stop $daemon
old_layout p.yaml last.lock # the lock was written, the policy not yet
restart_daemon -KILL
like "a policy and a lock that do not fit are told" 'policy.lock and .*policy.yaml do not fit' fabricd.log
is "classes keep their levels" "$(levels_of g)" "$gold"
is "and those of others are theirs again" "$(levels_of x)" "class: silver sl_small: 4 sl_bulk: [5] "
is "in a generation" "$(readlink state/current) $(readlink state/policy.yaml) $(ls state/generation 2>&1 | grep -c 'No such')" "generations/3 current/policy.yaml 1"
head -c 60 p.yaml >torn.yaml
: >empty.lock
for torn in "torn.yaml last.lock" "empty.lock last.lock" "p.yaml empty.lock"; do
  stop $daemon
  old_layout $torn
  ls -l state/policy.* | cut -d' ' -f5- >had
  : >fabricd.log
  restart_daemon -KILL
  ok "nothing is in force with $torn" status_has '^policy: .*state: none'
  like "which is said" 'no policy is in force: .*policy.yaml.*(do not fit|is empty or gone).*both files stay as they are' fabricd.log
  is "and so it is" "$(ls -l state/policy.* | cut -d' ' -f5-)" "$(cat had)"
done
stop $daemon
old_layout "$top/etc/policies/simple.yaml"
restart_daemon -KILL
like "without a lock levels are those from before there were locks" '^class normal small=5 bulk=0$' state/policy.lock
is "which running jobs have" "$(levels_of x)" "class: normal sl_small: 5 sl_bulk: [0] "
like "a lock is written then" 'policy.lock is written: classes keep the service levels that they had' fabricd.log
wait_for 5 grep -q '^fabric .*low=64' state/policy.lock
like "and learns what the fabric can do" '^fabric .*low=64' state/policy.lock
cp "$top/etc/policies/simple.yaml" simple.yaml
ok "the policy is applied" fabricctl policy apply simple.yaml
like "on the levels of before" '^class urgent small=4 bulk=1,2$' simple.lock
sed 's/default: normal/default: batch/' simple.yaml >batch.yaml
ok "level 0 cannot change hands" exits 2 fabricctl policy apply batch.yaml

# a generation that is damaged
fabricctl policy lock >good.lock
spoil() { # what a test does to the current generation
  case $1 in
  "torn policy") truncate -s 100 state/policy.yaml ;;
  "empty lock") : >state/policy.lock ;;
  "lock of nonsense") echo nonsense >state/policy.lock ;;
  "lost link") rm state/current ;;
  "link elsewhere") ln -sfn /etc state/current ;;
  esac
}
for what in "torn policy" "empty lock" "lock of nonsense" "lost link" "link elsewhere"; do
  spoil "$what"
  find state -ls | grep -v jobs.yaml >had
  : >fabricd.log
  restart_daemon -KILL
  ok "$what: no levels are given out" status_has '^policy: .*state: none'
  like "and it is said what to do" 'no policy is in force: .*state.*; it stays as it is. fabricctl policy apply .* or rollback puts' fabricd.log
  is "nothing is made anew" "$(find state -ls | grep -v jobs.yaml)" "$(cat had)"
  cp good.lock simple.lock
  ok "the lock beside the policy mends it" fabricctl policy apply simple.yaml
  like "with the same levels" '^class urgent small=4 bulk=1,2$' state/policy.lock
done

# a node that does not manage the subnet
printf 'policy: %s\nstate: %s\nsocket: %s\nverify: {timeout: 6, interval: 1}\n' "$tmp/simple.yaml" "$tmp/state2" "$tmp/h2.sock" >h2.yaml
simfab exec --real-clock h2 -- fabricd --config "$tmp/h2.yaml" >>h2.log 2>&1 &
started
wait_for 10 fabricctl --socket h2.sock status
ok "another node verifies the same tables" wait_for 10 eval "fabricctl --socket h2.sock status | grep -q '^policy: .*state: verified'"
ok "since it has the same lock" cmp state/policy.lock state2/policy.lock

done_testing
