#!/usr/bin/env bash
# Time stands still for a program that calls verbs again and again without ever waiting: after 30 s it is named, with its host,
# process and thread, in the engine's log and where `simfab run` writes; SIGSTOP and SIGKILL let time go on. The same program is
# not named if it hardly gets a processor. Where ranks run on a busy machine. And the tests of time_world.sh, longer.
# timeout: 3600
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
program=$BUILD/tests/simfab/time_world

simfab run --topology "$here/four-hosts.net" --model sdr-pcix -- bash -c '
  simfab exec h2 -- "$2" stops-the-world >"$1/stops" 2>&1 &
  stops=$!
  until grep -q ready "$1/stops"; do sleep 0.01; done
  date +%s >"$1/began"
  for host in h1 h3; do
    simfab exec $host -- "$2" pong "$1" 20 >"$1/$host" 2>&1 &
    pongs="${pongs:-} $!"
  done
  sleep 20; cp "$SIMFAB_DIR/engine.log" "$1/early"
  wait_for 600 grep -q "stood still" "$SIMFAB_DIR/engine.log"
  date +%s >"$1/named"
  cp "$SIMFAB_DIR/engine.log" "$1/log"
  cat "$1/h1" >"$1/meanwhile"
  echo "$stops" >"$1/pid"
  kill -"$3" $stops
  for p in $pongs; do wait $p || echo failed; done >"$1/pongs"
  kill -KILL $stops
' - "$tmp" "$program" STOP >"$tmp/run" 2>"$tmp/err"
is "the run ends" $? 0
not_ok "nobody is named before 20 s" grep -q "stood still" "$tmp/early"
took=$(($(cat "$tmp/named") - $(cat "$tmp/began")))
ok "after 30 s the program is named ($took s)" test $took -ge 29
words="virtual time has stood still for 3[0-2] s of the run of time_world \(pid $(cat "$tmp/pid"), thread $(cat "$tmp/pid")\) on host h2, which calls verbs again and again without ever waiting for a completion"
like "in the engine's log" "$words" "$tmp/log"
like "and where simfab run writes" "$words" "$tmp/err"
is "which is once" "$(grep -c "stood still" "$tmp/err")" 1
is "time did stand still" "$(cat "$tmp/meanwhile")" ""
is "stopped, it lets others go on" "$(cat "$tmp/pongs")" ""
like "who find every round as it should be" '^20 rounds: [0-9]+ ns, each 12797 to 12798$' "$tmp/h1"

# The lowest priority, beside a loop on the same processor: less than a hundredth of it.
simfab run --topology "$here/four-hosts.net" --model sdr-pcix -- bash -c '
  cpu=$(taskset -pc $$ | sed "s/.*[: ,-]//")
  taskset -c "$cpu" bash -c "while :; do :; done" &
  busy=$!
  simfab exec h2 -- taskset -c "$cpu" "$2" stops-the-world >"$1/starves" 2>&1 &
  stops=$!
  until grep -q ready "$1/starves"; do sleep 0.01; done
  chrt --idle --all-tasks --pid 0 $stops
  sleep 40
  ps -o state=,cls= -p $stops >"$1/alive"
  cp "$SIMFAB_DIR/engine.log" "$1/starved"
  kill -KILL $stops $busy
' - "$tmp" "$program" >"$tmp/run" 2>&1
like "a program that hardly gets a processor is there all the time" "IDL" "$tmp/alive"
not_ok "and is not named" grep "stood still" "$tmp/starved"

# Beside eight loops a rank may wait long for the processor, and stays on that of the engine all the same.
loops=
for ((i = 0; i < 8; i++)); do
  while :; do :; done &
  loops+=" $!"
done
on_exit "kill $loops 2>/dev/null"
for ((i = 0; i < 3; i++)); do
  MRMPI_LOG_LEVEL=0 simfab run --topology two-hosts-two-rails -- bash -c '
    mrrun -n 2 --hosts h1,h2 "$BUILD/tests/simfab/time_mpi" >&2
    simfab status | sed -n "s/^waits for threads: \\([0-9]*\\), on one processor with them: \\([0-9]*\\)$/\\1 \\2/p"'
done >"$tmp/waits" 2>"$tmp/err"
kill $loops
is "ranks are held on the engine's processor on a busy machine, too" \
  "$(awk '$1 > 500 && $2 > .8 * $1 { n++ } END { print n + 0 }' "$tmp/waits") of $(wc -l <"$tmp/waits")" "3 of 3"

bash "$here/time_world.sh" 2000 >"$tmp/long" 2>&1
is "nobody else stops the world: 2000 rounds each" "$? $(grep -A4 '^not ok' "$tmp/long" | head -n 20)" "0 "
done_testing
