#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Limits of tests (tests/timeout.c) are of the time in which a command ran or waited by itself, not for a processor.
. "$(dirname "$0")/../tap.sh"
is "it is the one that scripts find" "$(type -P timeout)" "$BUILD/tests/path/timeout"

timeout 0.5 sleep 60
is "a command that sleeps is ended" $? 124
timeout -t "$tmp/took" 60 sleep 5
is "one that ends has its status" $? 0
ok "and took as long as it slept, but for three looks: $(cat "$tmp/took")" awk '{exit !($1 + 3 * $2 >= 5)}' "$tmp/took"
ok "not much more" within 7
timeout 60 sh -c 'exit 3'
is "another status" $? 3
timeout 60 sh -c 'kill -9 $$'
is "a signal" $? 137
timeout 60 "$tmp/none" 2>/dev/null
is "no such command" $? 127
(exec timeout -k 0.5 0.5 sh -c 'trap "" TERM; while :; do sleep 0.1; done') 2>/dev/null
is "who does not listen is killed" $? 137
timeout 60 sh -c 'sleep 60; exit 0' &
pid=$!
wait_for 10 pgrep -P $pid
kill $pid
wait $pid
is "a signal to it is passed on" $? 143

# processor time of a command that computes, in ms, beside two others on its processor
processor=$(processor_of $$)
busy 2 "$processor"
begin=$EPOCHREALTIME
TEST_ROOT=0 taskset -c "$processor" timeout -t "$tmp/took" 1 bash -c 'trap "times >$0; exit" TERM; while :; do for i in {1..1000}; do :; done; done' "$tmp/cpu"
is "a command that computes is ended" $? 124
real=$(((${EPOCHREALTIME//[.,]/} - ${begin//[.,]/}) / 1000))
cpu=$(awk 'NR == 1 {split($1, t, /[ms]/); print t[1] * 60000 + t[2] * 1000}' "$tmp/cpu")
ok "when it has had its time ($cpu ms of $real), whoever else computes" test "$cpu" -ge 800 -a "$cpu" -le 1500

# and of one that waits for it, as programs do for the engine of a fabric
mkfifo "$tmp/said"
cat >"$tmp/test" <<'SH'
export TEST_ROOT=$$
taskset -c "$1" bash -c 'for i in {1..300000}; do :; done; times >&2; echo done' >"$2/said" 2>"$2/cpu" &
exec 3<"$2/said" # opened: it computes already
timeout -t "$2/took" 60 cat <&3
SH
begin=$EPOCHREALTIME
is "a command waits for another of its test" "$(bash "$tmp/test" "$processor" "$tmp")" "done"
real=$(((${EPOCHREALTIME//[.,]/} - ${begin//[.,]/}) / 1000))
cpu=$(awk 'NR == 1 {split($1, t, /[ms]/); print t[1] * 60000 + t[2] * 1000}' "$tmp/cpu")
ok "which has computed for $cpu ms of $real: so long has the command taken" within "$(awk -v ms="$cpu" 'BEGIN {print ms / 1000 + 0.5}')"

# nothing moves virtual time
timeout 60 simfab run --topology two-hosts-two-rails -- simfab exec h1 -- timeout -t "$tmp/took" 1 sleep 60
is "on a simulated host a limit is of real time" "$? $(cut -d. -f1 "$tmp/took")" "124 1"
done_testing
