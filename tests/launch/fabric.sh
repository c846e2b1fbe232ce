#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 400
# A job of a real Slurm of two nodes, each with its fabricd: the plugin tells both daemons of the job, of its user, account
# and partition, and of the class that the user asks for; the policy decides; the job's end is told, too.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/fabric-cluster.sh"
fabric_or_skip

cat >"$tmp/policy.yaml" <<'END'
version: 1
vls: 8
classes:
  - name: gold
    share: 60
    choose: [{account: physics}, {partition: urgent}]
  - {name: silver, share: 30}
  - {name: tin, share: 10, choose: [{user: "*"}]}
jobs:
  default: tin
  rules:
    - {partition: urgent, class: silver}
    - {name: "prod *", class: silver}
END
ok "two daemons" fabric_start
slurm_config_more() { echo "PartitionName=urgent Nodes=n1,n2 State=UP OverSubscribe=FORCE:8"; }
ok "a Slurm of two nodes is up" slurm_start || done_testing
fabric_open
exits_1() { "$@" && return 1; return 0; }

# ---- what each job gets -------------------------------------------------------------------------------------------
job=$(submit -N 2 -A physics -J 'a name' --fabric-class=gold)
ok "both nodes know the job, and that the policy lets it have what it asks for" \
  within 30 both "^- .id: \"$job\", class: gold, source: user, since: [^ ]+ uid: 65534, user: nobody, account: physics, partition: all, name: a name.\$"
"$tmp/bin/fabric_tool" query "$tmp/n2.sock" "$job" >"$tmp/out"
like "a process of somebody else that says so is not of it" 'class=tin' "$tmp/out"
ok "its user chooses another class while it runs" as_user "$tmp/bin/fabricctl" --socket "$tmp/n1.sock" job choose "$job" tin
ok "which that node does" has n1 "id: \"$job\", class: tin, source: user"
as_user "$tmp/bin/fabricctl" --socket "$tmp/n1.sock" job choose "$job" silver >"$tmp/out" 2>&1
like "or hears what he may" "job $job may not choose class 'silver'; allowed: gold tin" "$tmp/out"
fabricctl job set "$job" silver --cluster >"$tmp/out" 2>&1
is "an administrator gives it a class on all nodes with one command" "$? $(cat "$tmp/out")" "0 "
ok "which both have at once" both "^- .id: \"$job\", class: silver, source: scheduler, .*account: physics, partition: all, name: a name.\$"
fabricctl job set "$job" silver --cluster --json >"$tmp/out"
is "of which programs are told" "$? $(cat "$tmp/out")" '0 {"exit": 0, "messages": []}'
ok "and take back" fabricctl job set "$job" - --cluster
ok "it may send less ahead of bulk" fabricctl job set "$job" = --cluster --small-ratio 1:99
ok "on all nodes, and nothing else changes" both "id: \"$job\", class: [a-z]*, source: user, .*name: a name, small_ratio: \"1:99\""
ok "so that each has what its user chose there" sh -c "$(declare -f has jobs_of); tmp=$tmp; has n1 'class: tin, source: user' && has n2 'class: gold, source: user'"
ok "a class that there is not is refused" exits_1 fabricctl job set "$job" brass --cluster
forge() { as_user srun --jobid="$job" --overlap --chdir=/ -N 2 --ntasks-per-node=1 --fabric-order="$1" true; }
users() { setpriv --reuid 65534 --regid 65534 --clear-groups munge --socket="$tmp/slurm/munge.socket" "$@"; }
ok "an order that its user has signed is none" exits_1 forge "$(users --string="give $job silver")"
ok "whatever it says" exits_1 forge "$(users --string="$(printf 'UID: root (0)\n\ngive %s silver' "$job")")"
ok "nor one for another job" exits_1 forge "$(munge --socket="$tmp/slurm/munge.socket" --string="give ${job}0 silver")"
ok "nor one that is not signed" exits_1 forge "give"
ok "nor one that is old" sh -c "sleep 2; $(declare -f as_user forge exits_1); job=$job; exits_1 forge '$(munge --socket="$tmp/slurm/munge.socket" --ttl=1 --string="give $job silver")'"
ok "nothing has changed" sh -c "$(declare -f has jobs_of); tmp=$tmp; has n1 'class: tin, source: user' && has n2 'class: gold, source: user'"
ok "when it has ended neither node knows it" ends "$job"
fabricctl job set "$job" silver --cluster >"$tmp/out" 2>&1
is "then no order reaches it" "$(($? != 0)) $(grep -c "job $job is not running" "$tmp/out")" "1 1"
fabricctl job set "$job" silver --cluster --json >"$tmp/out"
is "nor a program's" "$(($? != 0)) $(grep -c "\"error\": \"not all of the job's nodes have done it\", .*job $job is not running" "$tmp/out")" "1 1"

job=$(submit -N 2 -A biology --fabric-class=gold)
ok "a class that the policy does not offer: the rules decide, and it is said why" \
  within 30 both "^- .id: \"$job\", class: tin, source: rule, .*account: biology, .*note: \"the policy does not let it choose 'gold'\""
ok "it ends" ends "$job"
job=$(submit -p urgent)
ok "a rule by partition" within 30 has n1 "^- .id: \"$job\", class: silver, source: rule, .*partition: urgent"
ok "of a job of one node the other one does not hear" sh -c "! fabricctl --socket '$tmp/n2.sock' job list | grep '$job'"
ok "it ends" ends "$job"
job=$(submit -N 2 -J 'prod "é" 7 UserId=0')
ok "a rule by name, which slurmctld is asked for" within 30 both \
  "^- .id: \"$job\", class: silver, source: rule, .*name: \"prod ..\?\?.. 7 UserId=0\""
"$tmp/lib/fabric-job" watch 1 2>"$tmp/watch.err" &
on_exit "kill $! 2>/dev/null; wait $! 2>/dev/null"
sleep 1.5
scontrol update "jobid=$job" Name=test
ok "which is followed while the job runs" within 20 both "^- .id: \"$job\", class: tin, source: rule, .*name: test"
ok "a job is given a class" fabricctl job set "$job" gold --cluster
scontrol update "jobid=$job" Name="prod 8"
ok "that stays when its name changes" within 20 both "^- .id: \"$job\", class: gold, source: scheduler, .*name: prod 8"
is "nothing went wrong" "$(cat "$tmp/watch.err")" ""
ok "it ends" ends "$job"

job=$(submit -N 2 -A physics --fabric-class=gold --fabric-small-ratio=1:999)
ok "a job that asks for a small ratio has it" within 30 both "^- .id: \"$job\", class: gold, source: user, .*, small_ratio: \"1:999\""
ok "its user changes it" as_user "$tmp/bin/fabricctl" --socket "$tmp/n1.sock" job choose "$job" --small-ratio 1:1
ok "which that node does" has n1 "id: \"$job\", class: gold, source: user, .*, small_ratio: \"1:1\""
# a daemon that has not heard of a job: it was away when that began, or slurmd ran no prolog for a job that was requeued
fabricctl --socket "$tmp/n2.sock" job del "$job"
ok "all nodes are told what slurmctld says of a job" "$tmp/lib/fabric-job" tell "$job"
ok "but not of one that they do not know: what its user asked for is missing" sh -c "! fabricctl --socket '$tmp/n2.sock' job list | grep '$job'"
as_user srun --chdir=/ --jobid="$job" --overlap -N 2 --ntasks-per-node=1 --fabric-class=gold true
ok "a job that a node does not know is known there when a step begins" \
  has n2 "^- .id: \"$job\", class: gold, source: user, .*account: physics"
ok "and is as it was where it was known" has n1 "id: \"$job\", class: gold, source: user, .*, small_ratio: \"1:1\""
ok "it ends" ends "$job"

# A job that begins again at once. slurmd (22.05) runs no prolog for it if it has looked for old credentials less than two
# seconds before: another job that begins then has it do so.
for n in 1 2 3; do
  job=$(submit -N 2 -A physics --fabric-class=gold --fabric-small-ratio=1:7)
  ok "a job that runs ($n)" within 30 both "^- .id: \"$job\", class: gold, source: user, .*account: physics"
  ok "goes back to the queue" scontrol requeuehold "$job"
  ok "where neither node knows it" within 30 neither "id: \"$job\""
  ok "and can be changed" within 10 waits "$job"
  ok "is given another name there" scontrol update "jobid=$job" Name=other StartTime=now
  as_user srun --chdir=/ -N 2 true
  ok "and begins again" scontrol release "$job"
  ok "both nodes know that run, with what it is and what its user asked for" within 120 begins_again "$job" \
    "class: gold, source: user, .*account: physics, partition: all, name: other, small_ratio: \"1:7\""
  run=$(squeue -h -j "$job" -O 'RestartCnt:|' | cut -d '|' -f 1)
  SLURM_JOB_RESTART_COUNT=$run SLURMD_NODENAME=n1 FABRICD_SOCKET=$tmp/n1.sock "$tmp/lib/fabric-job" end "$job"
  ok "an epilog of the run before that comes late does not end it" both "id: \"$job\", .* run: $run"
  ok "it ends" ends "$job"
done

# ---- names that look like other fields of slurmctld's answer ------------------------------------------------------
job=$(submit -N 2 -J 'x UserId=root(0) GroupId=root(0) MCS_label=N/A Account=physics Partition=urgent QOS=high
1|0|0|0 Account=physics' --fabric-class=gold)
ok "a name is nothing but a name" within 30 both \
  "^- .id: \"$job\", class: tin, source: rule, .*uid: 65534, user: nobody, partition: all, name: \"x UserId=root.0. .*, note: \"the policy does not let it choose 'gold'\".\$"
fabricctl --socket "$tmp/n2.sock" job del "$job"
as_user srun --chdir=/ --jobid="$job" --overlap -N 2 --ntasks-per-node=1 true
ok "nor is it before a step" has n2 "^- .id: \"$job\", class: tin, source: rule, .*uid: 65534, user: nobody, partition: all, name: \"x UserId=root.0. "
ok "it is given a class" fabricctl job set "$job" silver --cluster
ok "by nobody's step" both "id: \"$job\", class: silver, source: scheduler"
ok "it ends" ends "$job"

# ---- what users see -----------------------------------------------------------------------------------------------
as_user srun --help >"$tmp/out" 2>&1
like "srun's help has the option" '--fabric-class=CLASS +the class of the fabric' "$tmp/out"
like "and the other one" '--fabric-small-ratio=SMALL' "$tmp/out"
as_user srun --chdir=/ -N 2 -A physics --fabric-class=gold "$tmp/bin/fabric_tool" query "$tmp/n1.sock" 0 >"$tmp/out" 2>"$tmp/err"
is "srun runs with a class that is offered" "$? $(grep -c fabric-class "$tmp/err")" "0 0"
as_user srun --chdir=/ -N 2 -A biology --fabric-class=gold true >"$tmp/out" 2>"$tmp/err"
is "and with one that is not" $? 0
is "of which its user is told once" "$(grep -c -- '--fabric-class=gold has no effect: the job has class tin' "$tmp/err")" 1
as_user srun --chdir=/ --fabric-small-ratio=1 true >"$tmp/out" 2>"$tmp/err"
is "and a ratio that is none" "$(($? != 0)) $(grep -c 'fabric-small-ratio: SMALL:LARGE' "$tmp/err")" "1 1"
as_user srun --chdir=/ --fabric-class='go ld' true >"$tmp/out" 2>"$tmp/err"
is "a name that is none is refused before anything runs" "$(($? != 0)) $(grep -c 'fabric-class: 1 to 31 letters' "$tmp/err")" "1 1"
cat >"$tmp/inside" <<END
#!/bin/sh
exec $tmp/bin/fabric_tool query $tmp/\$SLURMD_NODENAME.sock \$SLURM_JOB_ID
END
chmod 755 "$tmp/inside"
as_user srun --chdir=/ -N 2 -A physics --fabric-class=gold "$tmp/inside" >"$tmp/out" 2>"$tmp/err"
is "processes of the job are told its class, on each node" "$(grep -c 'status=0 .*class=gold' "$tmp/out")" 2

# ---- what goes wrong harms no job ---------------------------------------------------------------------------------
kill "$(fabricctl --socket "$tmp/n1.sock" status | sed -n 's/^fabricd: .*pid: \([0-9]*\),.*/\1/p')"
as_user srun --chdir=/ -N 2 -A physics --fabric-class=gold true >"$tmp/out" 2>"$tmp/err"
is "without a daemon the job runs" $? 0
like "and its user is told" "--fabric-class=gold has no effect: this node's fabricd does not answer" "$tmp/err"
ok "no node is drained" within 20 slurm_ready

done_testing
