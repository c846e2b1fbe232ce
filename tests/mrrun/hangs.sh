#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What mrrun says of ranks that wait for ever: at --timeout, at SIGQUIT, and to another mrrun (--attach).
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
hangs=$BUILD/tests/mrrun/hangs
export MRMPI_LOG_LEVEL=0

# late REGEX RANKS ARGS...: with a limit of time, which is real: on a busy machine the ranks may not be where they wait for ever
# by then. Then more time; REGEX: a word of the report that tells that they are.
late() {
  local seconds rc
  for seconds in 1 5 25; do
    timeout 60 mrrun --timeout $seconds --grace 1 -n "$2" "$hangs" "${@:3}" >"$tmp/out" 2>"$tmp/err"
    rc=$?
    [ $rc = 124 ] && grep -qE "$1" "$tmp/err" && break
  done
  is "${*:2}: the status is that of --timeout" $rc 124
}
says() { like "$1" "^mrrun: +$2\$" "$tmp/err"; }
says_not() { not_ok "$1" grep -E "$2" "$tmp/err"; }

late 'a circle' 2 tags
says "the function and its time" 'rank 0: MPI_Recv, for [0-9.]+ s'
says "the receive" 'a receive from rank 1, tag 7, up to 4 bytes'
says "and the message with another tag" 'a message that no receive takes, from rank 1, tag 9, 4 bytes'
says "the ranks wait for each other" 'a circle: rank 0 waits for rank 1, which waits for rank 0'

late 'rank 1: MPI_Send' 3 sends grid
says "a send" 'a send to rank 2, tag 5, 1048576 bytes, on grid: no receive has met it'
says "a rank to which nothing was sent has a line of its own" 'rank 1: MPI_Send, for [0-9.]+ s'

late 'a circle' 4 missing grid
says "a collective operation, for all ranks that say the same" 'ranks 1-3: MPI_Allreduce, for [0-9.to ]+ s'
says "and whom it waits for" 'waits for rank 0, still before this collective operation on grid'
says "a circle" 'a circle: rank 0 waits for rank 1, which waits for rank 0'

late 'its process computes' 2 computes
says "a rank that computes" 'rank 0: not waiting in an MPI function; its process computes'
says "may be waited for" 'may wait for rank 0'
says_not "by nobody else" 'may wait for rank 1'
late 'its process sleeps' 2 sleeps
says "a rank that sleeps" 'rank 0: not waiting in an MPI function; its process sleeps .*'

MRMPI_SINGLE_COPY=0 late 'under way' 2 asked
says "a message that moves, and by which protocol" 'a receive from rank 0, tag 5, up to 1048576 bytes: under way, by packets'

late '7 times' 2 many
says "receives that are alike" 'a receive from any rank, any tag, up to 4 bytes \(7 times\)'
says "and more" 'and 12 more of: receive'
says_not "which are no circle" 'a circle'

late 'rank 1: MPI_Wait,' 2 wait
says "a request" 'rank 0: MPI_Wait, for [0-9.]+ s'
late 'rank 1: MPI_Send,' 2 threads
says "several threads" 'rank 0: MPI_Send, for [0-9.]+ s'
late 'MPIX_Comm_shrink' 2 shrink
says "a function that MPI has not" 'rank 1: MPIX_Comm_shrink, for [0-9.]+ s'

late 'window halo' 2 window
says "a window's epoch" 'window halo: fence epoch'

timeout 60 mrrun --timeout 1 --grace 1 -n 2 sleep 60 2>"$tmp/err"
is "programs without MPI" $? 124
says_not "are not asked" 'the ranks wait for'

# by hand: the job goes on
: >"$tmp/out"
timeout 60 mrrun --grace 1 -n 2 "$hangs" tags >"$tmp/out" 2>"$tmp/err" &
job=$!
ok "both ranks wait" wait_for 20 sh -c "[ \$(grep -c waits $tmp/out) = 2 ]"
mrrun=$(pgrep -P "$job" -x mrrun)
kill -QUIT "$mrrun"
ok "SIGQUIT: the report" wait_for 20 grep -q 'a circle: rank 0 waits for rank 1' "$tmp/err"
kill -QUIT "$mrrun"
ok "and again" wait_for 20 sh -c "[ \$(grep -c 'a circle' $tmp/err) = 2 ]"

# from elsewhere
attach() { timeout 60 mrrun --attach "$1" >"$tmp/report" 2>"$tmp/why"; }
ok "--attach" attach "$mrrun"
like "the job" "^mrrun: job mrrun-$mrrun: 2 of 2 ranks are running\$" "$tmp/report"
like "the report" '^mrrun: +rank 1: MPI_Recv, for [0-9.]+ s$' "$tmp/report"
like "with the circle" '^mrrun: +a circle: rank 0 waits for rank 1' "$tmp/report"
ok "by a rank of the job" attach "$(pgrep -P "$mrrun" -x hangs | head -n 1)"
like "the same" "^mrrun: job mrrun-$mrrun: " "$tmp/report"
is "mrrun's own terminal has nothing of it" "$(grep -c 'a circle' "$tmp/err")" 2
not_ok "a process without a job" attach 1
like "is refused" '^mrrun: cannot attach to process 1: ' "$tmp/why"
if [ "$(id -u)" = 0 ] && chroot --userspec=65534:65534 / "$(command -v mrrun)" --version >/dev/null 2>&1; then
  as_nobody() { timeout 60 chroot --userspec=65534:65534 / "$(command -v mrrun)" --attach "$mrrun" 2>"$tmp/why"; }
  not_ok "another user" as_nobody
  like "is refused, with the reason" ': it belongs to another user$' "$tmp/why"
else
  ok "another user # SKIP there is none to be" true
fi
kill -STOP "$mrrun"
ok "mrrun stops" wait_for 20 grep -q '^State:.T' "/proc/$mrrun/status"
not_ok "mrrun that is stopped" attach "$mrrun"
like "is told as the reason" ': its mrrun is stopped; ' "$tmp/why"
kill -CONT "$mrrun"
ok "the job goes on" kill -0 "$mrrun"
kill -TERM "$mrrun"
wait "$job"
is "until it is ended" $? 143
not_ok "a job that has ended" attach "$mrrun"
mkfifo "$tmp/quiet"
timeout 60 mrrun --grace 1 -n 2 sh -c 'echo ready; cat "$0" >/dev/null' "$tmp/quiet" >"$tmp/out" 2>/dev/null &
job=$!
ok "ranks without MPI" wait_for 20 sh -c "[ \$(grep -c ready $tmp/out) = 2 ]"
mrrun=$(pgrep -P "$job" -x mrrun)
ok "--attach to them" attach "$mrrun"
like "has their last output" '^mrrun: rank 1 .*: last output [0-9.]+ s ago: ready$' "$tmp/report"
kill -TERM "$mrrun"
wait "$job"

# what the launcher tells is read with care: a file of another length, ends that cannot be, more ends than have room
mkdir "$tmp/board"
board() { # OCTAL BYTES
  printf "$1" >"$tmp/board/asked"
  MRMPI_INQUIRY=$tmp/board MRMPI_RECOVER=1 timeout 20 "$BUILD/tests/mpi/p2p_self"
}
ok "a file that is too short" board '\1\0\0\0'
ok "ends without room" board '\1\0\0\0\0\0\0\0\377\377\377\377'
ok "ends of ranks that are none, and of oneself" \
  board '\1\0\0\0\0\0\0\0\4\0\0\0\377\377\377\377\11\0\0\0\0\0\0\0\377\377\377\177'

# over hosts
timeout 60 simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" -- \
  mrrun --timeout 3 --grace 1 -n 2 "$hangs" sends >"$tmp/out" 2>"$tmp/err"
says "simulated hosts: a send" 'a send to rank 1, tag 5, 1048576 bytes: no receive has met it'
says "whose time is simulated" 'rank 0: MPI_Send, for [0-9.]+ s of simulated time'
says "a circle" 'a circle: rank 0 waits for rank 1, which waits for rank 0'
done_testing
