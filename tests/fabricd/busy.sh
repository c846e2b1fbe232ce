#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What opensm waits for a processor is no part of the time in which ports must have a policy.

if [ -z "${SIMFAB_DIR:-}" ]; then
  here=$(cd "$(dirname "$0")" && pwd)
  exec "$BUILD/bin/simfab" run --topology "$here/../../etc/topologies/eight-hosts-two-rails.net" -- bash "$here/busy.sh"
fi
. "$(dirname "$0")/lib.sh"
cp "$top/etc/policies/simple.yaml" policy.yaml
cat >fabricd.yaml <<END
policy: $tmp/policy.yaml
state: $tmp/state
socket: $FABRICD_SOCKET
opensm: {config: $SIMFAB_DIR/opensm/opensm.conf, restart: simfab opensm restart}
verify: {timeout: 3, interval: 0}
END
tables() { # of some ports of the first switch
  local p
  for p in 1 2 3 4; do simfab exec h1 -- smpquery -D VLArb 0,1 $p; done 2>&1
}
ok "opensm has the subnet up" simfab opensm wait
tables >first
simfab exec --real-clock h1 -- fabricd --config "$tmp/fabricd.yaml" 2>fabricd.log &
started
wait_for 10 fabricctl status
ok "the policy is in force" fabricctl policy apply policy.yaml

# five that compute, on opensm's processor, which has less than a hundredth of it beside them: a sweep takes longer than
# the limit. On a machine that has other work it would take more than ten limits, by which it is late in any case
pid=$(simfab opensm pid)
processor=$(processor_of "$pid")
taskset -acp "$processor" "$pid" >/dev/null
nice=$(awk '{print $1 < 4 ? 19 : 12}' /proc/loadavg)
for t in /proc/"$pid"/task/*; do renice -n "$nice" -p "${t##*/}" >/dev/null; done
busy 5 "$processor"
begin=$EPOCHREALTIME
sed -i 's/share: 60/share: 50/; s/share: 30/share: 40/' policy.yaml
ok "another one is verified within 3 s of opensm's" timeout 120 fabricctl policy apply policy.yaml
echo "# $(((${EPOCHREALTIME//[.,]/} - ${begin//[.,]/}) / 1000)) ms for all of it, at nice $nice"
busy_end

# one that does nothing is not waited for
kill -STOP "$pid"
sed -i 's/share: 50/share: 60/; s/share: 40/share: 30/' policy.yaml
timeout -t took 60 fabricctl policy apply policy.yaml >out 2>&1
not_ok "an opensm that is stopped has 3 s" test $? = 0
like "which is told" '^not verified within 3 s' out
kill -CONT "$pid"
ok "and as long to have what was" within 15

# the tables from before the first policy stay, also where opensm gets to its former file after everybody else
busy 5 "$processor"
ok "it goes back to before the first policy" timeout 200 fabricctl policy rollback 0
busy_end
sleep 3 # what opensm still owes, it does now
tables >has
ok "whose tables stay, with opensm at rest" diff has first
ok "and the policy can come back" fabricctl policy apply policy.yaml
done_testing
