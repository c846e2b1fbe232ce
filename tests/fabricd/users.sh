#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Classes by groups of users, from a directory that does not answer, answers late, and has long answers; classes for so
# many jobs.

. "$(dirname "$0")/lib.sh"
tool=$BUILD/tests/fabricd/fabric_tool
unset SIMFAB_DIR SIM_HOST LD_PRELOAD
if compgen -G '/sys/class/infiniband/*' >/dev/null; then
  skip_all "this host has an adapter"
fi
me=$(id -u)

cat >policy.yaml <<'END'
version: 1
classes:
  - {name: gold, share: 40, choose: [{group: physics}, {group: chem*, qos: high}]}
  - {name: silver, share: 30}
  - {name: tin, share: 20}
  - {name: scarce, share: 10, max jobs: 2, max jobs per user: 1, choose: [{user: "*"}]}
jobs:
  default: tin
  rules: [{group: students, class: silver}]
END
cat >fabricd.yaml <<END
policy: $tmp/policy.yaml
state: $tmp/state
socket: $tmp/fabricd.sock
END
"${CC:-cc}" -D_GNU_SOURCE -Wall -shared -fPIC -o slow_users.so "$top/tests/fabricd/slow_users.c" || skip_all "no C compiler"
with_directory() {
  exec env LD_PRELOAD="$tmp/slow_users.so" ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "$@"
}
export SLOW_USERS=$tmp/directory
mkdir directory
touch directory/hang
printf '%s\n' wheel students chemistry >directory/groups
seq -f 'project-%.0f' 200 >>directory/groups # more than are asked for at first
with_directory fabricd --config fabricd.yaml 2>log &
daemon=$!
started
class_of() { sed -n 's/.* class=\([a-z]*\) .*/\1/p' "$1" | tail -n 1; }
has_class() { [ "$(class_of "$1")" = "$2" ]; }
listed() { fabricctl job list | grep -Eq -- "$1" || { fabricctl job list; return 1; }; }

ok "a daemon" wait_for 10 fabricctl status
"$tool" watch "$FABRICD_SOCKET" 1 >watch 2>&1 &
started
ok "while the directory does not answer others are answered" timeout 60 fabricctl status
ok "a process has the class of somebody of whom nothing is known, before long" wait_for 5 has_class watch tin
ok "a job is set" timeout 10 fabricctl job set 1 - --user "$me" --wish gold
ok "and has what it would have without the directory" listed "^- .id: \"1\", class: tin, source: rule, since: [^,]*, uid: $me, note: "
fabricctl job choose 1 gold >q 2>&1
like "a choice that depends on it is refused, and it is said why" \
  "job 1 may not choose class 'gold'; allowed: scarce. The groups of uid $me are not known yet: try again later" q
rm directory/hang
ok "when it has answered a process hears of its class" wait_for 5 has_class watch silver
ok "and the job has it" listed "^- .id: \"1\", class: silver, source: rule, since: [^,]*, uid: $me, user: u$me, note: \"the policy does not let it choose 'gold'\""
ok "a choice of two conditions is refused" exits 1 fabricctl job choose 1 gold
ok "when the second one is met" fabricctl job set 2 - --user "$me" --wish gold --qos high
ok "the job has what it wished" listed '^- .id: "2", class: gold, source: user, '
touch directory/hang
echo physics >directory/groups
ok "what is known is not asked for again" timeout 0.4 fabricctl job set 3 - --user "$me" --qos high --wish gold
ok "for a minute" listed '^- .id: "3", class: gold, source: user, '
stop $daemon
with_directory fabricd --config fabricd.yaml 2>log2 &
daemon=$!
started
ok "a daemon that is started while the directory does not answer" wait_for 10 fabricctl status
rm directory/hang
ok "gives jobs of before their classes later" wait_for 5 listed '^- .id: "1", class: gold, source: user, '

# ---- so many jobs and no more -------------------------------------------------------------------------------------
refused() { # REGEX COMMAND...
  local want=$1
  shift
  exits 1 "$@" >q && grep -Eq -- "$want" q || { cat q; return 1; }
}
ok "a class with limits" fabricctl job set s1 - --user "$me" --wish scarce
ok "takes a job" listed '^- .id: s1, class: scarce, source: user, '
ok "a second one of this user" fabricctl job set s2 - --user "$me" --wish scarce
ok "has what the rules say" listed "^- .id: s2, class: tin, source: rule, .*note: \"class 'scarce' was full\""
ok "nor may he choose it" refused \
  "^class 'scarce' is full for uid $me: max jobs per user is 1, and so many have it on this host; try again when one has ended" \
  fabricctl job choose s2 scarce
ok "other users may" fabricctl job set s3 - --user 4242 --wish scarce
ok "until there are so many" fabricctl job set s4 - --user 4243 --wish scarce
ok "then they have what the rules say, too" listed "^- .id: s4, class: tin, source: rule, .*note: \"class 'scarce' was full\""
ok "and may not choose it" refused "^class 'scarce' is full: max jobs is 2, " fabricctl job choose s4 scarce
ok "an administrator may give it" fabricctl job give s2 scarce
ok "nevertheless" listed '^- .id: s2, class: scarce, source: scheduler, '
ok "and take it back" fabricctl job give s2 -
ok "when one has ended" fabricctl job del s3
ok "nobody is moved" listed '^- .id: s4, class: tin, source: rule, '
ok "but another may choose it" fabricctl job choose s4 scarce
ok "and has it" listed '^- .id: s4, class: scarce, source: user, '
kill -9 $daemon
wait $daemon 2>/dev/null
with_directory fabricd --config fabricd.yaml 2>log3 &
daemon=$!
started
ok "the daemon is killed and started anew" wait_for 10 fabricctl status
ok "who had it" wait_for 5 listed '^- .id: s4, class: scarce, source: user, '
ok "has it still" listed '^- .id: s1, class: scarce, source: user, '
ok "and nobody else" sh -c "[ \$(fabricctl job list | grep -c 'class: scarce') = 2 ]"
touch directory/hang
ok "an unknown user" timeout 10 fabricctl job set 4 - --user 4242
kill $daemon
rc=0
wait $daemon || rc=$?
is "and it ends while the directory does not answer" $rc 0

done_testing
