#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# One command for the cluster: eight hosts with the same configuration, one of which has opensm. What is applied there is
# in force everywhere, and verified by each host at its own ports, within five seconds.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/eight-hosts-two-rails.net" -- bash "$here/nodes.sh"
fi
. "$(dirname "$0")/lib.sh"
. "$top/tests/fabricd/hosts.sh"
hosts="h1 h2 h3 h4 h5 h6 h7 h8"

ok "opensm has the subnet up" simfab opensm wait
daemons_up
ok "the host with opensm manages" wait_for 5 seen h1 '^fabricd: .*role: manager'
ok "the others do not" sh -c "! grep -l 'managing this node' h[2-8].log"
ok "and tell what they wait for" wait_for 10 seen h5 "^follows: .file: $policy, waiting: \"$policy: No such file or directory\""

stop "${daemon_of[1]}"
{ cat "$top/etc/policies/simple.yaml"; echo 'repair: report'; } >"$policy"
ok "a policy without a lock is in force nowhere" wait_for 10 grep -q 'policy.yaml has no lock that says it is in force' h5.log
ok "where it might have been applied" seen h5 '^policy: .*state: none'
start h1
wait_for 20 on h1 status
ok "one command for all hosts" on h1 policy apply "$policy"
ok "all have it, verified, within 5 s" wait_for 5 verified 1
ok "the lock says which policy it is of" grep -Eq '^policy generation=1 digest=[0-9a-f]{16}$' "${policy%.yaml}.lock"
seen h1 .
like "the manager looks at the whole fabric" '^policy: .*nodes: 17, ports: 32,' status
seen h8 .
like "another host at its own two ports and those across their cables" '^policy: .*nodes: 3, ports: 4,' status

sed 's/default: normal/default: batch/' "$policy" >next && cat next >"$policy"
sleep 4
ok "a policy that was edited and not applied is not followed" verified 1
ok "and hosts say why" wait_for 1 seen h2 '^follows: .*waiting: ".*policy.yaml is not the policy that .*edited and not applied yet'
is "jobs have what is in force" "$(for h in $hosts; do level $h; done | sort | uniq -c | xargs)" "8 normal 4"
ok "it is applied" on h1 policy apply "$policy"
ok "and followed within 5 s" wait_for 5 verified 2
is "jobs of all hosts have it" "$(for h in $hosts; do level $h; done | sort | uniq -c | xargs)" "8 batch 7"
on h3 policy apply "$policy" >q 2>&1
like "a host without opensm puts nothing in force" 'opensm does not run here .pid file .*/opensm/h3.pid.: No such file' q
ok "nor does its file change" verified 2

echo 'version: 1' >"$policy"
ok "half a policy" wait_for 10 each "^follows: .*waiting: .*policy.yaml is not the policy|role: manager"
ok "leaves all as it was" verified 2
cat next >"$policy"
chmod 666 "$policy"
ok "a file that anybody can write is not followed" wait_for 10 seen h2 "^follows: .*waiting: .*anybody can write it"
chmod 644 "$policy"

# a host's own ports, and the switch's at the other end of the cable
entry=$(simfab exec h4 -- smpquery -D NodeInfo 0,1 | sed -n 's/^LocalPort:\.*//p')
ok "a switch's port across the cable that loses its table" simfab exec h4 -- "$tool" vlarb 1 $((1 << 16 | entry)) 0:1
ok "is seen by its host" wait_for 10 seen h4 '^policy: .*generation: 2, state: differs'
like "which tells it" "port $entry: VLArb low: expected" status
not_ok "and does not name the subnet manager, which may give it the table yet" grep 'its master is the subnet manager' status
ok "and is nobody else's affair" seen h5 '^policy: .*state: verified'
ok "the manager mends it" on h1 policy apply "$policy"
ok "for the host, too" wait_for 10 verified 2

# a host that was away
stop "${daemon_of[6]}"
sed 's/default: batch/default: urgent/' next >"$policy"
ok "a policy while a host is down" on h1 policy apply "$policy"
for h in h1 h2 h3 h4 h5 h7 h8; do ok "is followed by $h" wait_for 5 seen $h '^policy: .*generation: 3, state: verified'; done
start h6
ok "and by that host when it is back" wait_for 8 verified 3
is "with its levels" "$(level h6)" "urgent 1"
stop "${daemon_of[1]}"
rm -r "$SIMFAB_DIR/fabricd-h7"
stop "${daemon_of[7]}"
start h7
ok "one that has lost its state takes the files, also while the manager is down" wait_for 8 seen h7 '^policy: .*generation: 3, state: verified'
start h1
ok "the manager comes back with what was in force" wait_for 8 verified 3

cat >"$policy" <<END
version: 1
classes:
  - {name: urgent, share: 70, priority: high, lanes: 2}
  - {name: normal, share: 30}
jobs: {default: normal}
END
ok "a class leaves the policy" on h1 policy apply "$policy"
ok "everywhere" wait_for 5 verified 4
ok "and keeps its levels" grep -q '^retired batch' "$SIMFAB_DIR/fabricd-h8/policy.lock"
ok "until the manager forgets it" on h1 policy forget batch
ok "of which the others hear" wait_for 5 sh -c "! grep -l batch $SIMFAB_DIR/fabricd-h*/policy.lock"
done_testing
