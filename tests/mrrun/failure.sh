#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# How jobs end: statuses, and who is blamed for a failure. Ranks that survive a failed one wait for it for ever, so that these tests end at all
# shows that mrrun ended them.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
client=$BUILD/tests/mrrun/test_launch_client
run() { timeout -t "$tmp/took" 30 mrrun "$@" >"$tmp/out" 2>"$tmp/err"; }

run -n 4 "$client" kill:2:6
is "a rank killed by a signal: 128 + signal" $? 134
like "rank, host, pid and signal are told" "^mrrun: rank 2 \(host $(hostname), pid [0-9]+\) was killed by signal 6 \(SIGABRT.*\); ending the job$" \
    "$tmp/err"
is "only the culprit is told" "$(grep -c '^mrrun:' "$tmp/err")" 1

run -n 4 "$client" exit:1:7
is "a rank that exits before MPI_Finalize: its code" $? 7
like "rank and code are told" "^mrrun: rank 1 .* exited with code 7 before MPI_Finalize; ending the job" "$tmp/err"

run -n 1 false
is "a program that is not MPI's" $? 1
like "and is not blamed for what it need not do" "^mrrun: rank 0 .* exited with code 1\$" "$tmp/err"

run -n 4 "$client" exit:3:0
is "a rank that exits with 0 without MPI_Finalize" $? 1
like "is told" "^mrrun: rank 3 .* exited with code 0 after MPI_Init without MPI_Finalize" "$tmp/err"

# PMIx_Finalize does not wait for its answer for ever. Four jobs on one processor: the launcher hears of a rank's end
# before its answer is sent, or after, or meanwhile
for i in {1..4}; do
  (timeout 30 taskset -c "$(taskset -cp $$ | sed 's/.*: *//; s/[-,].*//')" mrrun -n 1 "$client" stopped:0:8 >"$tmp/out.$i" 2>&1
    echo "status $?" >>"$tmp/out.$i") &
done
wait
is "ranks whose launcher does not hear that they call MPI_Finalize, for a while" \
  "$(cat "$tmp"/out.* | grep -v '^rank 0/1 ' | sort | uniq -c | sed 's/^ *//')" "4 status 0"

run -n 4 "$client" abort:3:42
is "abort: its code" $? 42
like "rank, code and reason are told" "^mrrun: rank 3 .* aborted the job with code 42: told to" "$tmp/err"
run -n 2 "$client" abort:0:0
is "abort with code 0: so is the status" $? 0
run -n 2 "$client" abort:0:256
is "with a code whose last 8 bits are 0 it is 1" $? 1

run -n 4 "$client" absent:2
is "a rank that never joins the others" $? 1
like "is told" "^mrrun: rank 2 .* exited with code 0 without MPI_Init, while others called it" "$tmp/err"

run -n 4 "$client" late:1:9
is "a code after MPI_Finalize is the job's status" $? 9
is "and nobody is blamed" "$(grep -c '^mrrun:' "$tmp/err")" 0

# the namespace has a secret: its beginning and a process id do not do
run -n 1 sh -c 'PMIX_NAMESPACE=mrrun-$PPID exec "$0"' "$client"
not_ok "a process that guesses the namespace does not join" grep -q '^rank 0/1' "$tmp/out"

run -n 3 sh -c 'exit $((PMIX_RANK == 1 ? 5 : 0))'
is "a plain program's code" $? 5

run -n 3 --timeout 1 sleep 60
is "--timeout: 124" $? 124
like "is told" "not done after 1 s" "$tmp/err"
ok "and does not last" within 10
MPIEXEC_TIMEOUT=1 run -n 3 sleep 60
is "MPIEXEC_TIMEOUT: 124" $? 124
like "is told by its name" "^mrrun: the job is not done after 1 s \(MPIEXEC_TIMEOUT\); ending it" "$tmp/err"
MPIEXEC_TIMEOUT=60 run -n 3 --timeout 1 sleep 60
like "--timeout goes before it" "^mrrun: the job is not done after 1 s \(--timeout\); ending it" "$tmp/err"
MPIEXEC_TIMEOUT=-1 run -n 1 sleep 1.2
is "a negative one is none" $? 0
MPIEXEC_TIMEOUT=soon run -n 1 true
is "one that is no number is refused" $? 2
like "with its value" "^mrrun: MPIEXEC_TIMEOUT='soon' is not a number of seconds" "$tmp/err"
# ready RANKS MRRUN_ARGS...: runs it with a time limit, of 1 s or as much more as it takes until the ranks are ready: they say so in \$ready
export ready=$tmp/ready
ready() {
  local ranks=$1 limit
  shift
  for limit in 1 2 4 8 16; do
    : >"$ready"
    run --timeout $limit "$@"
    rc=$?
    [ "$(wc -l <"$ready")" -ge "$ranks" ] && return
  done
}
ready 3 -n 3 sh -c '[ $PMIX_RANK = 0 ] && echo first && sleep 0.2 && echo second >&2; [ $PMIX_RANK = 1 ] && printf piece; echo >>"$ready"; sleep 60'
like "with what each rank has written last: a line" 'rank 0 \(.*\): last output [0-9.]+ s ago: second$' "$tmp/err"
like "a piece of a line" 'rank 1 \(.*\): last output [0-9.]+ s ago: piece$' "$tmp/err"
like "or nothing" 'rank 2 \(.*\): no output$' "$tmp/err"

ready 2 -n 2 --grace 1 bash -c 'trap "" TERM; echo >>"$ready"; while :; do sleep 0.1; done'
is "ranks that do not want to end are killed after the grace" $rc 124
like "and that is told" "2 ranks are not gone after 1 s; killing" "$tmp/err"

run -n 2 "$tmp/none"
is "no such program: 127" $? 127
run -n 2 /etc/passwd
is "not a program: 126" $? 126
printf 'no interpreter' >"$tmp/garbage" && chmod +x "$tmp/garbage"
run -n 2 "$tmp/garbage"
is "exec fails: 126" $? 126
like "and that is told once" "^mrrun: cannot run '.*garbage' as rank [01]: Exec format error" "$tmp/err"
run --bogus -n 2 true
is "unknown option: 2" $? 2
like "with a hint" "unknown option '--bogus' \('mrrun --help' lists all\)" "$tmp/err"
done_testing
