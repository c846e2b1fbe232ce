#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What fabric-job tells a daemon when runs of a requeued job overlap, in every order in which Slurm may say it: no Slurm is
# needed, slurmctld's answers are written here.
. "$(dirname "$0")/../tap.sh"
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$tmp" || exit 1
export FABRICD_SOCKET=$tmp/fabricd.sock DBUS_SYSTEM_BUS_ADDRESS=unix:path=$tmp/none
unset "${!SLURM@}"
[ "$(id -u)" = 0 ] || skip_all "only root sets jobs of others"

cat >policy.yaml <<END
version: 1
classes:
  - {name: gold, share: 70, choose: [{account: physics}]}
  - {name: tin, share: 30}
jobs: {default: tin}
END
printf 'policy: %s\nstate: %s\nsocket: %s\n' "$tmp/policy.yaml" "$tmp/state" "$FABRICD_SOCKET" >fabricd.yaml
fabricd --config fabricd.yaml 2>log &
on_exit "kill $!; wait $!"
wait_for 60 fabricctl status

# ---- slurmctld ----------------------------------------------------------------------------------------------------
# squeue answers in the format that it is asked for, a record for each file jobs/*; munge and srun are not called
mkdir jobs stubs
cat >stubs/squeue <<'END'
#!/bin/bash
while [ "$1" != -O ]; do shift; done
for file in jobs/*; do
  declare -A job=()
  while IFS== read -r -d '' key value; do job[$key]=$value; done <"$file"
  IFS=, read -ra fields <<<"$2"
  for field in "${fields[@]}"; do printf %s "${job[${field%%:*}]-(null)}${field#*:}"; done
  echo
done
END
cat >stubs/scontrol <<'END'
#!/bin/sh
[ "$1 $2" = "show hostnames" ] && echo "$3" | tr , '\n'
END
chmod +x stubs/*
PATH=$tmp/stubs:$PATH
slurmctld() { # JOB KEY=VALUE...
  local job=$1
  shift
  printf '%s\0' "JobID=$job" UserID=65534 GroupID=65534 NumNodes=2 NodeList=n1,n2 Partition=all TimeLimit=UNLIMITED "$@" >"jobs/$job"
}
fabric_job() { ( [ -z "$count" ] || export SLURM_JOB_RESTART_COUNT="$count"; exec sh "$top/fabricd/slurm/fabric-job" "$@"); }
prolog() { count=$2 fabric_job begin "$1" 65534 "${3:-}"; } # JOB COUNT [WISH]
epilog() { count=$2 SLURMD_NODENAME=n1 fabric_job end "$1"; }
late() { count='' fabric_job late "$1" 65534 "${2:-}"; }
has() { fabricctl job list | grep -E -- "$1" || { fabricctl job list; return 1; }; }
gone() { ! has "id: \"$1\""; }

# ---- ends ---------------------------------------------------------------------------------------------------------
slurmctld 1 State=RUNNING RestartCnt=0 Account=physics Name=one
ok "a job begins" prolog 1 0 gold
ok "and is known" has '^- \{id: "1", class: gold, source: user, .*account: physics, partition: all, name: one\}$'
slurmctld 1 State=COMPLETING RestartCnt=0
ok "it ends" epilog 1 0
ok "and is not" gone 1

slurmctld 2 State=RUNNING RestartCnt=0
prolog 2 0
slurmctld 2 State=COMPLETING RestartCnt=1
before=$(date +%s)
ok "a run that is requeued ends, with the next one's number" epilog 2 1
ok "and is not known" gone 2
ok "in a later second than it was told" test "$(date +%s)" -gt "$before"
slurmctld 2 State=RUNNING RestartCnt=1
prolog 2 1
ok "the next run" has 'id: "2", .*run: 1\}'
ok "whose epilog" epilog 2 1
ok "does not end it while it runs: it is a late one, of the run before" has 'id: "2", .*run: 1\}'
slurmctld 2 State=CONFIGURING RestartCnt=1
ok "nor while other nodes" epilog 2 1
ok "run their prologs" has 'id: "2", .*run: 1\}'
not_ok "nor does one of the run before" epilog 2 0
ok "by its number" has 'id: "2", .*run: 1\}'
slurmctld 2 State=RUNNING RestartCnt=1 NodeList=n2
ok "if it runs on other nodes only" epilog 2 1
ok "it has ended here" gone 2
for state in COMPLETING PENDING CANCELLED FAILED TIMEOUT NODE_FAIL ''; do
  prolog 2 1
  slurmctld 2 "State=$state" RestartCnt=1
  [ -n "$state" ] || rm jobs/2
  epilog 2 1
  ok "slurmctld says '$state': it has ended" gone 2
done
prolog 2 1
slurmctld 2 State=RUNNING RestartCnt=2
epilog 2 1
ok "slurmctld is further than this node: it has ended" gone 2
prolog 2 1
slurmctld 2 State=RUNNING RestartCnt=4
epilog 2 4
ok "a run whose own epilog never came ends with that of a later one" gone 2
fabricctl job set 2 - --user 65534
epilog 2 0
ok "a job of which no run is known ends" gone 2

# ---- the new run is told of before the old one's end ---------------------------------------------------------------
slurmctld 3 State=RUNNING RestartCnt=0
prolog 3 0
slurmctld 3 State=RUNNING RestartCnt=1 Account=physics
prolog 3 1 gold
ok "the new run takes the old one's place" has '^- \{id: "3", class: gold, source: user, .*run: 1\}$'
epilog 3 1
ok "the old one's end comes then: it stays" has '^- \{id: "3", class: gold, source: user, .*run: 1\}$'
slurmctld 3 State=COMPLETING RestartCnt=1
epilog 3 1
ok "its own ends it" gone 3

# ---- a step makes its run known ------------------------------------------------------------------------------------
slurmctld 4 State=RUNNING RestartCnt=0 Account=physics
prolog 4 0
slurmctld 4 State=RUNNING RestartCnt=1 Account=physics TimeLimit=1-00:30:00
ok "a run that had neither epilog before it nor prolog" late 4 gold
ok "is another job" has '^- \{id: "4", class: gold, source: user, .*lease: 91800, run: 1\}$'
fabricctl job give 4 tin
slurmctld 4 State=RUNNING RestartCnt=1 Account=physics Name=two TimeLimit=5:00
ok "one that is known" late 4 gold
ok "keeps the class that it was given" has '^- \{id: "4", class: tin, source: scheduler, .*name: two, lease: 3900, run: 1\}$'
rm jobs/4
not_ok "of what slurmctld does not know nothing is told" late 4 gold

# ---- arrays, and texts of users -------------------------------------------------------------------------------------
slurmctld 5 State=RUNNING RestartCnt=0 Account=biology "Name=a
6|0|0|0"
slurmctld 6 State=RUNNING RestartCnt=2 Account=physics Name=b
slurmctld 16 State=RUNNING RestartCnt=7 Name=c
ok "a task of an array" late 6
ok "is found among all" has '^- \{id: "6", .*uid: 65534, .*account: physics, partition: all, name: b, run: 2\}$'
ok "one whose name has lines and separators" late 5
ok "has a name" has '^- \{id: "5", .*uid: 65534, .*account: biology, partition: all, name: "?a\?6\|0\|0\|0"?\}$'
done_testing
