#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 400
# From the scheduler to the wire: the two nodes of a real Slurm are hosts of one simulated subnet, each with its
# fabricd. A user's request at srun, the class by the policy's rules, and an administrator's order for all nodes of a
# running job show in the virtual lanes of the job's packets.
. "$(dirname "$0")/fabric-wire.sh"
fabric_or_skip

cat >"$tmp/wire.yaml" <<'END'
version: 1
vls: 8
classes:
  - {name: gold, share: 60, lanes: 2, choose: [{account: physics}]}
  - {name: silver, share: 30}
  - {name: tin, share: 10, choose: [{user: "*"}]}
jobs:
  default: tin
  rules: [{partition: urgent, class: silver}, {name: "prod *", class: silver}]
END
wire_start "$tmp/wire.yaml"
slurm_config_more() { echo "PartitionName=urgent Nodes=n1,n2 State=UP OverSubscribe=FORCE:8"; wire_config; }
ok "a Slurm of two nodes is up" slurm_start || done_testing
fabric_open

is "the classes have lanes of their own" "$(for c in gold silver tin; do lanes_of $c; done | tr , '\n' | sort | uniq -d)" ""

# ---- what a user asks for, what the rules say
wire_begin -A physics --fabric-class=gold
ok "a job with a class that its user asked for runs on both nodes" wire_on
job=$(wire_job)
ok "which both know" both "^- .id: \"$job\", class: gold, source: user"
is "its messages are on the lanes of that class, and on no other" "$(wire_lanes)" "$(lanes_of gold)"

# ---- another class for the running job, on all nodes at once
ok "it is given another class while it runs" fabricctl job set "$job" silver --cluster
ok "which both nodes have" both "^- .id: \"$job\", class: silver, source: scheduler"
ok "it goes on" wire_on
is "on the lanes of its new class alone" "$(wire_lanes)" "$(lanes_of silver)"
ok "and gets its own back" fabricctl job set "$job" - --cluster
ok "and goes on" wire_on
is "on those that it had" "$(wire_lanes)" "$(lanes_of gold)"
ok "it ends well: all messages have arrived, and nothing is complained of" wire_ends
ok "and neither node knows it any more" within 30 neither "id: \"$job\""

# ---- what scontrol changes of a running job is followed
"$tmp/lib/fabric-job" watch 1 2>"$tmp/watch.err" &
on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
wire_begin -A biology -J first
ok "a job of the default class" wire_on
is "on the lanes of that" "$(wire_lanes)" "$(lanes_of tin)"
job=$(wire_job)
renamed() { # once more, if the watch had not seen the job before
  scontrol update "jobid=$job" Name="prod $((renames += 1))" && wait_for 5 both "^- .id: \"$job\", class: silver, source: rule, .*name: prod $renames"
}
renames=0
ok "by another name a rule gives it a class while it runs" within 30 renamed
ok "it goes on" wire_on
is "on the lanes of that" "$(wire_lanes)" "$(lanes_of silver)"
ok "it ends" wire_ends
is "nothing went wrong" "$(cat "$tmp/watch.err")" ""

wire_begin -p urgent
ok "a job that a rule gives its class" wire_on
is "is on the lanes of that" "$(wire_lanes)" "$(lanes_of silver)"
ok "it ends" wire_ends
wire_begin -A biology --fabric-class=gold
ok "a job that may not have what it asks for" wire_on
is "is on the lanes of the default class" "$(wire_lanes)" "$(lanes_of tin)"
like "which its user is told" '--fabric-class=gold has no effect: the job has class tin' "$tmp/job.out"
ok "it ends" wire_ends
done_testing
