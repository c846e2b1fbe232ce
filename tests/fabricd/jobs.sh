#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Jobs that nobody ends, in control groups of the host, where it has some that can be made, and in directories that look
# like them; leases; what survives the daemon, and what does not survive the host.

. "$(dirname "$0")/lib.sh"
tool=$BUILD/tests/fabricd/fabric_tool
unset SIMFAB_DIR SIM_HOST LD_PRELOAD
if compgen -G '/sys/class/infiniband/*' >/dev/null; then
  skip_all "this host has an adapter"
fi
me=$(id -u)

cat >fabricd.yaml <<END
policy: $tmp/policy.yaml
state: $tmp/state
socket: $tmp/fabricd.sock
END
cp "$top/etc/policies/simple.yaml" policy.yaml
start() {
  fabricd --config fabricd.yaml 2>>log &
  daemon=$!
  started
  wait_for 10 fabricctl status
}
known() { fabricctl job list | grep -q "id: \"\?$1[\",]"; }
unknown() { ! known "$1"; }
said() { grep -q "job $1: ended ($2)" log; }

# ---- a host of directories ----------------------------------------------------------------------------------------
# group DIRECTORY POPULATED: a group of version 2, or, without POPULATED, of version 1
group() {
  mkdir -p "$FABRICD_ROOT/$1"
  [ -z "${2:-}" ] || printf 'populated %s\nfrozen 0\n' "$2" >"$FABRICD_ROOT/$1/cgroup.events"
}
# looked_at FILE: until somebody has read it since it was written; where file systems do not note that, until the daemon, which
# looks every second, should have. The daemon alone reads these files.
looked_at() {
  local i
  for ((i = 0; i < 50; i++)); do
    [[ $(stat -c %.9X "$1") > $(stat -c %.9Y "$1") ]] && return
    sleep 0.1
  done
}
# inside LINE COMMAND...: by a process that is said to be there
inside() {
  local line=$1
  shift
  sh -c 'mkdir -p "$FABRICD_ROOT/proc/$$" && printf "%s\n" "$1" >"$FABRICD_ROOT/proc/$$/cgroup" && shift && exec "$@"' sh "$line" "$@"
}
export FABRICD_ROOT=$tmp/root
mkdir -p root/sys/fs/cgroup root/proc/sys/kernel/random
touch root/sys/fs/cgroup/cgroup.controllers # all of it is version 2
echo 00000000-1111-2222-3333-444444444444 >root/proc/sys/kernel/random/boot_id
ok "a daemon" start
g=/sys/fs/cgroup/some.slice/job
group $g/a 0
group $g/b 0
group $g/c 1
ok "a job with a group that is empty yet" fabricctl job set a urgent --user "$me" --cgroup $g/a
ok "one with a lease, too" fabricctl job set b urgent --user "$me" --cgroup $g/b --lease 3600
ok "one whose group is in use" fabricctl job set c urgent --user "$me" --cgroup $g/c
ok "one with a lease alone" fabricctl job set short urgent --user "$me" --lease 2
ok "one with a long one" fabricctl job set long urgent --user "$me" --lease 3600
fabricctl job list >q
like "the list shows them" "^- \{id: b, class: urgent, .*cgroup: $g/b, lease: 3600\}\$" q
"$tool" watch "$FABRICD_SOCKET" long >watch 2>&1 &
started
ok "the lease runs out" wait_for 10 unknown short
ok "which the journal says" said short "its lease has run out"
group $g/a 1
group $g/b 1
looked_at "root$g/a/cgroup.events"
looked_at "root$g/b/cgroup.events"
group $g/a 0
group $g/b 0
ok "a group that is empty again ends its job" wait_for 10 unknown a
ok "which the journal says" said a "its cgroup has no process any more"
ok "with a lease it may be empty for so long" known b
ok "renewing changes what is given" fabricctl job set b - --renew --lease 1 --account x
fabricctl job list >q
like "and nothing else" "^- \{id: b, class: urgent, source: scheduler, .*account: .?x.?, cgroup: $g/b, lease: 1\}\$" q
ok "then it ends with its lease" wait_for 10 unknown b
ok "which the journal says" said b "its lease has run out"
rm -r "root$g/c"
ok "a group that is gone ends its job" wait_for 10 unknown c
ok "which the journal says" said c "its cgroup has gone"
fabricctl job set c urgent --user "$me" --cgroup $g/c >q 2>&1
like "no job is given a group that is not there" "^there is no cgroup $g/c: the job would have ended already" q
for bad in /tmp /sys/fs/cgroup /sys/fs/cgroup/ /sys/fs/cgroup/../x $g/../b $g//b $g/; do
  fabricctl job set c urgent --user "$me" --cgroup "$bad" >q 2>&1
  like "'$bad' is no group" "^'$bad' is not the directory of a job's cgroup; allowed: below /sys/fs/cgroup" q
done
ok "a lease of nothing is none" exits 2 fabricctl job set c urgent --user "$me" --lease 0
ok "nor is one of more than a year" exits 2 fabricctl job set c urgent --user "$me" --lease 31536001

# ---- a job that is requeued: one id, several runs -----------------------------------------------------------------
has() { fabricctl job list | grep -Eq -- "$1"; }
fails() { ! "$@" >q 2>&1 && grep -q 'there is no such job' q; }
ok "the first run of a job" fabricctl job set again urgent --user "$me" --run 0 --account old
ok "the next begins before the first has been ended" fabricctl job set again batch --user "$me" --run 1
ok "it is new in everything" has '^- \{id: again, class: batch, [^}]*user: [^,}]*, run: 1\}$'
ok "the end of the first comes late, and there is no such job" fails fabricctl job del again --run 0
ok "the next goes on" has '^- \{id: again, class: batch, .*run: 1\}$'
like "which the journal says" 'job again: run 0 has ended, and it is in run 1: it goes on' log
ok "its own end ends it" fabricctl job del again --run 1
ok "for good" unknown again
ok "a run whose end never came" fabricctl job set again urgent --user "$me" --run 2
ok "ends with a later one" fabricctl job del again --run 5
ok "and is gone" unknown again
ok "a job in its fourth run" fabricctl job set again urgent --user "$me" --run 3
ok "is renewed in that run" fabricctl job set again - --renew --run 3 --account x
ok "and not in another, before" fails fabricctl job set again - --renew --run 2 --account y
ok "or after" fails fabricctl job set again - --renew --run 4 --account y
ok "which changes nothing" has '^- \{id: again, class: urgent, .*account: .?x.?, run: 3\}$'
ok "who names no run ends any" fabricctl job del again
ok "a job of which no run is known" fabricctl job set again urgent --user "$me"
ok "ends with any" fabricctl job del again --run 0
for bad in -1 2147483648 x ''; do
  ok "'$bad' is no run" exits 2 fabricctl job set again urgent --user "$me" --run "$bad"
done
ok "a run that has a lease" fabricctl job set again urgent --user "$me" --run 0 --lease 1
ok "and the next, which has none, begun before it runs out" fabricctl job set again batch --user "$me" --run 1
group $g/again 1
ok "a run whose group is in use" fabricctl job set group urgent --user "$me" --run 0 --cgroup $g/again
looked_at "root$g/again/cgroup.events"
sleep 1.5 # until that has been seen, and the lease is over
rm -r "root$g/again"
group $g/again 0
ok "and the next, whose group has the same name and is empty" fabricctl job set group batch --user "$me" --run 1 --cgroup $g/again
sleep 2.5
ok "neither lease" known again
ok "nor group of the first ends the next" known group
ok "they end" fabricctl job del again --run 1
ok "each" fabricctl job del group --run 1

# ---- a process that is connected ----------------------------------------------------------------------------------
ok "a short lease" fabricctl job set live urgent --user "$me" --lease 2
"$tool" watch "$FABRICD_SOCKET" live >watch2 2>&1 &
live=$!
started
ok "a process of the job" wait_for 5 grep -q class=urgent watch2
sleep 4
ok "keeps it" known live
stop $live
ok "until it has left" wait_for 10 unknown live

# ---- who is of a job -----------------------------------------------------------------------------------------------
query() { "$tool" query "$FABRICD_SOCKET" "$@"; }
class_of() { sed -n 's/.* class=\([a-z]*\) .*/\1/p' q; }
group $g/f 1
ok "a job with a group" fabricctl job set f urgent --user "$me" --cgroup $g/f
inside "0::/some.slice/job/f/task_0" "$tool" query "$FABRICD_SOCKET" f >q
is "a process in it is of the job" "$(class_of)" urgent
inside "0::/some.slice/job/ff" "$tool" query "$FABRICD_SOCKET" f >q
is "one that is elsewhere is not" "$(class_of)" normal
ok "which the journal says" grep -q "pid [0-9]* of uid $me says that it is of job f, and is not: it is not in that job's cgroup, $g/f" log
query f >q
is "nor one of which nothing is known" "$(class_of)" normal
ok "which the journal says, too" grep -q "says that it is of job f, and is not: its cgroup cannot be read, and that job's processes are in $g/f" log
slurm=/system.slice/slurmstepd.scope
ok "jobs of Slurm" fabricctl job set 7 urgent --user "$me"
ok "one and another" fabricctl job set 8 batch --user "$me"
inside "0::$slurm/job_8/step_0/user/task_0" "$tool" query "$FABRICD_SOCKET" 8 >q
is "a process that Slurm has started for one is of it" "$(class_of)" batch
inside "0::$slurm/job_8/step_0/user/task_0" "$tool" query "$FABRICD_SOCKET" 7 >q
is "and not of the other, though its user is the same" "$(class_of)" normal
ok "which the journal says" grep -q 'says that it is of job 7, and is not: Slurm has it in the cgroup of job 8' log
query 7 >q
is "a process that no scheduler has started is of its user's job" "$(class_of)" urgent
mkdir -p "root/sys/fs/cgroup$slurm/job_8/step_extern"
inside "0::$slurm/job_8/step_0/user/task_0" "$tool" watch "$FABRICD_SOCKET" 8 >watch3 2>&1 &
started
has_group() { fabricctl job list | grep -q "id: \"$1\", .* cgroup: $2"; }
ok "a group of Slurm's that lasts is found by the first process" wait_for 10 has_group 8 "/sys/fs/cgroup$slurm/job_8}"
query 8 >q
is "after which nobody else is of that job" "$(class_of)" normal
ok "which has not changed otherwise" sh -c "fabricctl job list | grep -q 'id: \"8\", class: batch, source: scheduler'"
ok "of the other there is none" sh -c "! fabricctl job list | grep 'id: \"7\", .*cgroup'"
rm -r "root/sys/fs/cgroup$slurm/job_8"
ok "and its job ends with it" wait_for 10 unknown 8
ok "an id that comes again" fabricctl job set 8 urgent --user "$me"
ok "has nothing of that" sh -c "! fabricctl job list | grep 'id: \"8\", .*cgroup'"
# a process of a run before, whose group has gone, and which is connected still
mkdir -p "root/sys/fs/cgroup$slurm/job_9/step_extern"
inside "0::$slurm/job_9/step_0/user/task_0" "$tool" watch "$FABRICD_SOCKET" 9 >watch4 2>&1 &
started
ok "a process of a job that is not known yet" wait_for 5 grep -q class= watch4
rm -r "root/sys/fs/cgroup$slurm/job_9"
ok "whose group has gone, when the job's next run begins" fabricctl job set 9 urgent --user "$me" --run 1
sleep 2.5
ok "does not end it" known 9

# ---- the daemon and the host begin anew ---------------------------------------------------------------------------
group $g/d 1
group $g/e 1
ok "a job with a group" fabricctl job set d urgent --user "$me" --cgroup $g/d
ok "another" fabricctl job set e urgent --user "$me" --cgroup $g/e
ok "and one with a lease" fabricctl job set lease urgent --user "$me" --lease 3
kill -9 $daemon
wait $daemon 2>/dev/null
rm -r "root$g/d"
ok "the daemon is killed and started anew" start
ok "a job whose group has gone meanwhile ends" wait_for 10 unknown d
ok "one whose group is there stays" known e
ok "and one with a lease" known long
ok "until it runs out" wait_for 10 unknown lease
stop $daemon
echo 55555555-1111-2222-3333-444444444444 >root/proc/sys/kernel/random/boot_id
ok "the host is started anew" start
is "jobs of the boot before are gone" "$(fabricctl job list)" ""
like "which the journal says" 'jobs.yaml is of a boot before: its jobs are gone' log
ok "a job of this one" fabricctl job set new urgent --user "$me"
stop $daemon
ok "survives the daemon" start
ok "as it should" known new
is "without anything of theirs in the file" "$(grep -c 'id: e' state/jobs.yaml)" 0
stop $daemon
unset FABRICD_ROOT

# ---- many ---------------------------------------------------------------------------------------------------------
rm -rf state
ok "a daemon" start
worked_ms() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / hz) }' "/proc/$daemon/stat"; }
"$tool" watch "$FABRICD_SOCKET" many-77 >watch6 2>&1 &
started
ok "10,000 jobs" "$tool" jobs "$FABRICD_SOCKET" 0 10000 urgent
before=$(worked_ms)
ok "of which 5,000 are set anew" "$tool" jobs "$FABRICD_SOCKET" 0 5000 batch
each=$((($(worked_ms) - before) * 1000 / 5000))
is "which takes less than a millisecond of work for each ($each us)" "$((each < 1000))" 1
ok "a process of one of them" wait_for 10 sh -c 'tail -n 1 watch6 | grep -q class=batch'
for class in urgent batch urgent batch; do "$tool" jobs "$FABRICD_SOCKET" 0 10000 $class || break; done
short() { (($(wc -l <state/jobs.yaml) < 35000)); } # of the 55,000 lines that there were
ok "the file of jobs is written anew meanwhile" wait_for 10 short
ok "without anything beside it" wait_for 10 sh -c '! ls state | grep -q tmp'
kill -9 $daemon
wait $daemon 2>/dev/null
ok "the daemon is killed and started anew" start
is "with all of them" "$(fabricctl job list | grep -c 'class: batch')" 10000
stop $daemon

# ---- the kernel's groups ------------------------------------------------------------------------------------------
rm -rf state
ok "a daemon of the host's own" start
made=0
for at in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/pids; do
  dir=$at/mrmpi-test.$$
  { [ -e "$at/cgroup.procs" ] && mkdir "$dir"; } 2>/dev/null || continue
  on_exit "rmdir $dir 2>/dev/null"
  made=$((made + 1))
  ok "$at: a job in a group" fabricctl job set "$made" urgent --user "$me" --cgroup "$dir"
  sleep 60 &
  on_exit "kill $! 2>/dev/null"
  echo $! >"$dir/cgroup.procs"
  sleep 1.5
  ok "$at: is there with its process" known $made
  sh -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' sh "$dir" "$tool" query "$FABRICD_SOCKET" $made >q
  is "$at: a process in it is of the job" "$(class_of)" urgent
  query $made >q
  is "$at: one that is not there is not" "$(class_of)" normal
  kill $!
  wait $! 2>/dev/null
  ok "$at: and ends with it" wait_for 10 unknown $made
  ok "which the journal says" said $made "its cgroup has no process any more"
  ok "$at: another" fabricctl job set "$made" urgent --user "$me" --cgroup "$dir" --lease 3600
  wait_for 5 rmdir "$dir"
  ok "$at: ends with its group" wait_for 10 unknown $made
  ok "which the journal says" said $made "its cgroup has gone"
done
((made)) || ok "no groups can be made here: none was tried" true
stop $daemon

done_testing
