#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Signals to mrrun reach the ranks.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}

# A rank that says when it is ready, tells the signals it gets, and ends on SIGTERM with code 3 (a job that saves its state).
cat >"$tmp/listener" <<'SH'
#!/usr/bin/env python3
import os, signal, sys
def tell(n, frame):
    print("rank", os.environ["PMIX_RANK"], "got", signal.Signals(n).name, flush=True)
    if n == signal.SIGTERM:
        sys.exit(3)
for n in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM):
    signal.signal(n, tell)
print("rank", os.environ["PMIX_RANK"], "ready", flush=True)
while True:
    signal.pause()
SH
chmod +x "$tmp/listener"

# Wait until a file has so many lines that match.
has() { [ "$(grep -Ec "$2" "$1")" -ge "$3" ]; }
await() { wait_for 60 has "$@"; }

# Start a job in the background and wait until its ranks are ready. Job control gives it the default SIGINT.
start() {
    set -m
    timeout -t "$tmp/took" 60 mrrun "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
    pid=$!
    set +m
    wait_for 60 pgrep -P $pid -x mrrun
    mrrun_pid=$(pgrep -P $pid -x mrrun)
}

early() { # SIGNAL: the job's statuses, whenever during its start the signal comes, and what mrrun says but of ranks
    local step
    for step in {2..25}; do
        set -m
        mrrun -n 4 --grace 1 sleep 60 >>"$tmp/early" 2>&1 </dev/null &
        set +m
        sleep "$(printf '0.%03d' $((3 * step)))"
        kill "-$1" $!
        wait $!
        echo $?
    done | sort -u
    grep '^mrrun: ' "$tmp/early" | grep -vE ': no output$|: asking [1-4] ranks? to end|again: killing the job$'
}
is "SIGTERM while the job is started" "$(early TERM)" 143
is "SIGINT" "$(early INT)" 130

start -n 2 "$tmp/listener"
ok "ranks are ready" await "$tmp/out" ready 2
kill -USR1 "$mrrun_pid"
ok "SIGUSR1 reaches both" await "$tmp/out" "rank [01] got SIGUSR1" 2
kill -USR2 "$mrrun_pid"
ok "SIGUSR2 reaches both" await "$tmp/out" "rank [01] got SIGUSR2" 2
ok "and the job goes on" kill -0 "$mrrun_pid"
kill -TERM "$mrrun_pid"
wait $pid
is "SIGTERM: ranks end as they wish" $? 3
is "SIGTERM reached both" "$(grep -c 'got SIGTERM' "$tmp/out")" 2
is "nobody is blamed" "$(grep -c 'ending the job' "$tmp/err")" 0

start -n 3 bash -c 'echo ready; sleep 60'
ok "ranks are ready" await "$tmp/out" ready 3
kill -INT "$mrrun_pid"
wait $pid
is "SIGINT: 130" $? 130
like "is told" "^mrrun: SIGINT: asking 3 ranks to end" "$tmp/err"

start -n 2 --grace 30 bash -c 'trap "" INT; echo ready; while :; do sleep 0.1; done'
ok "ranks that ignore SIGINT are ready" await "$tmp/out" ready 2
kill -INT "$mrrun_pid"
ok "the first SIGINT is passed on" await "$tmp/err" "asking 2 ranks" 1
sleep 0.2 # what comes closer together counts as one
kill -INT "$mrrun_pid"
wait $pid
is "the second SIGINT kills" $? 137
ok "at once" within 10

start -n 1 --grace 30 bash -c 'trap "" INT; setsid sleep 300 & echo $! ready; while :; do sleep 0.1; done'
ok "a rank with a descendant in a session of its own is ready" await "$tmp/out" ready 1
kill -INT "$mrrun_pid"
await "$tmp/err" "asking 1 rank" 1
sleep 0.2
kill -INT "$mrrun_pid"
wait $pid
is "the second SIGINT" $? 137
ok "ends the descendant, too" process_gone "$(sed -n 's/ ready//p' "$tmp/out")"

start -n 1 bash -c 'echo ready; exec sleep 60'
ok "a rank is ready" await "$tmp/out" ready 1
janitor=$(pgrep -P "$mrrun_pid" -x mr-janitor)
kill -STOP "$janitor"
kill -TERM "$mrrun_pid"
ok "mrrun waits for its janitor alone" process_gone "$(pgrep -P "$mrrun_pid" -x sleep)"
for i in 1 2; do
    sleep 0.2
    kill -TERM "$mrrun_pid"
done
wait $pid
is "a third SIGTERM ends it, whatever it waits for" $? 143
ok "at once" within 8
kill -CONT "$janitor"

mkfifo "$tmp/fifo"
exec 9<>"$tmp/fifo" # a reader that takes nothing
timeout -t "$tmp/took" 60 mrrun -n 2 --timeout 1 --grace 1 yes >"$tmp/fifo" 2>"$tmp/err"
is "--timeout with a reader that takes nothing" $? 124
ok "ends the job" within 20
timeout -t "$tmp/took" 60 mrrun -n 2 --grace 1 yes >"$tmp/fifo" 2>"$tmp/err" &
pid=$!
wait_for 60 eval 'mrrun_pid=$(pgrep -P $pid -x mrrun) && [ "$(pgrep -c -P "$mrrun_pid" -x yes)" = 2 ]'
kill -TERM "$mrrun_pid"
wait $pid
is "and so does SIGTERM" $? 143
ok "in time" within 20
exec 9>&-

start -n 2 --grace 1 bash -c 'trap "echo told" INT; echo ready; while :; do sleep 0.1; done'
ok "ranks that only tell of SIGINT are ready" await "$tmp/out" ready 2
kill -INT "$mrrun_pid" "$mrrun_pid" # one behind the other
wait $pid
is "one Ctrl-C that comes twice (from the terminal and from a parent) is one" \
    "$? $(grep -c 'told' "$tmp/out") $(grep -c 'again: killing' "$tmp/err")" "137 2 0"

start -n 2 bash -c 'echo ready; exec sleep 60'
ok "sleepers are ready" await "$tmp/out" ready 2
states() { ps -o stat= --ppid "$mrrun_pid" -p "$mrrun_pid" | cut -c1 | sort | uniq -c | sed 's/^ *//' | tr '\n' ','; }
become() { # wanted states of mrrun, its two ranks and its janitor
    wait_for 60 eval "states | grep -Fx '$1' || { states; false; }"
}
kill -TSTP "$mrrun_pid"
ok "SIGTSTP stops mrrun and its ranks" become "1 S,3 T,"
kill -CONT "$mrrun_pid"
ok "SIGCONT continues them" become "4 S,"
kill -TERM "$mrrun_pid"
wait $pid
is "and they can be ended" $? 143

# A session for each rank: where the kernel shares processors out among sessions, a job has as much of them as its ranks.
few=$(nproc)
mrrun -n $few bash -c 'echo "$$ $(ps -o sid= -o pgid= -p $$)"' >"$tmp/ids"
is "each rank leads a session and a process group" "$(awk '$1 == $2 && $1 == $3' "$tmp/ids" | sort -u | wc -l)" $few
# With more ranks than cores they are in one session, or such a kernel would not let one yield to another.
many=$(($(nproc) + 1))
mrrun -n $many bash -c 'echo "$$ $(ps -o pgid= -o sid= -p $$)"' >"$tmp/ids"
is "many ranks on few cores each lead a process group" "$(awk '$1 == $2' "$tmp/ids" | sort -u | wc -l)" $many
is "and share mrrun's session" "$(awk '{print $3}' "$tmp/ids" | sort -u)" "$(ps -o sid= -p $$ | tr -d ' ')"

# What a rank leaves in the background goes with it.
timeout 30 mrrun -n 1 bash -c "sleep 300 & echo \$! >$tmp/left; exit 0"
# A moment may pass until its new parent has taken note.
ok "a process left behind by a rank is gone" process_gone "$(cat "$tmp/left")"
done_testing
