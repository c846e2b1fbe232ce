#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Nothing stays behind, however a job ends.
. "$(dirname "$0")/../tap.sh"
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$(dirname "$(realpath "$0")")/lsan.supp:print_suppressions=0}
client=$BUILD/tests/mrrun/test_launch_client
mkdir "$tmp/scratch"
export TMPDIR=$tmp/scratch
left() { ls -A "$TMPDIR"; }
empty() { wait_for 60 eval '[ -z "$(left)" ] || { left; false; }'; }

timeout 30 mrrun -n 4 "$client" >/dev/null
is "a good job leaves no file" "$(left)" ""
timeout 30 mrrun -n 4 "$client" kill:1:9 >/dev/null 2>&1
is "a failed job leaves no file" "$(left)" ""
timeout 30 mrrun -n 2 "$tmp/none" 2>/dev/null
is "a job that does not start leaves no file" "$(left)" ""

# mrrun is killed: its ranks, their children and its directory go, though nobody is left to ask them.
mrrun -n 3 bash -c "sleep 300 & echo \$\$ \$! >>$tmp/pids; wait" &
pid=$!
wait_for 60 eval '[ "$(wc -l <"$tmp/pids")" = 3 ]'
is "three ranks run" "$(wc -l <"$tmp/pids")" 3
ok "with a scratch directory" test -n "$(left)"
kill -9 $pid
wait $pid 2>/dev/null
n=0
for p in $(cat "$tmp/pids"); do
    process_gone "$p" || n=$((n + 1))
done
is "after kill -9 of mrrun ranks and their children are gone" $n 0
ok "and so is the scratch directory" empty

mrrun -n 1 sleep 300 &
pid=$!
for _ in $(seq 200); do
    rank=$(pgrep -P $pid -x sleep) && break
    sleep 0.05
done
kill -9 "$rank"
wait $pid
is "a rank killed from outside: 137" $? 137
is "leaves no file either" "$(left)" ""
# mrrun and its janitor are killed together. The next mrrun removes what they left, and nothing else.
mkdir -m 700 "$TMPDIR/mrrun-scratch.others" && touch "$TMPDIR/mrrun-scratch.others/file"
mrrun -n 1 sleep 300 &
living=$!
wait_for 60 eval '[ "$(left | wc -l)" = 2 ]'
before=$(left)
mrrun -n 1 sleep 300 &
pid=$!
wait_for 60 eval 'janitor=$(pgrep -P $pid -x mr-janitor) && pgrep -P $pid -x sleep'
kill -9 "$janitor" $pid
wait $pid 2>/dev/null
is "killed with its janitor, mrrun leaves its directory" "$(left | wc -l)" 3
timeout 30 mrrun -n 1 true
is "which the next one removes, but none of a living one or a stranger" "$(left)" "$before"
kill $living
wait $living
rm -r "$TMPDIR/mrrun-scratch.others"
is "the living one removes its own" "$(left)" ""

# A rank that left mrrun's care (a session of its own) survives it, and is told that the launcher is gone.
mrrun -n 1 setsid -w "$client" lost "$tmp/lost" &
pid=$!
wait_for 60 grep -q waiting "$tmp/lost"
kill -9 $pid
wait $pid 2>/dev/null
process_gone "$(sed -n 's/waiting //p' "$tmp/lost")"
is "a rank notices that the launcher is gone, and can part from it" "$(tail -n 2 "$tmp/lost" | tr '\n' ' ')" \
    "Connection reset by peer parted "
done_testing
