#!/usr/bin/env bash
# Nobody stops the world: a ping-pong prints the same digits beside neighbours that sleep, wait, spin, fork, are stopped and are
# killed; and what one program tells another by a socket is not earlier than it is true. `time_world.sh ROUNDS`: how long.
# timeout: 1200
. "$(dirname "$0")/../tap.sh"
if [ "${1:-}" != inside ]; then
  command -v opensm >/dev/null || skip_all "opensm is not installed"
  rm -rf "$tmp"
  trap - EXIT
  exec simfab run --topology "$(dirname "$0")/four-hosts.net" --model sdr-pcix -- bash "$0" inside "${1:-200}"
fi
program=$BUILD/tests/simfab/time_world
rounds=$2

# both MODE ARGS: on h1 and on h3; what the first to come said is in $tmp/first, the other in $tmp/second
both() {
  local mode=$1 first rc
  shift
  rm -f "$tmp/meet"
  timeout 300 simfab exec h1 -- "$program" "$mode" "$tmp" "$@" >"$tmp/first" 2>&1 &
  first=$!
  while [ ! -e "$tmp/meet" ] && kill -0 $first 2>/dev/null; do sleep 0.002; done
  timeout 300 simfab exec h3 -- "$program" "$mode" "$tmp" "$@" >"$tmp/second" 2>&1
  rc=$?
  wait $first && [ $rc = 0 ]
}
digits() { both pong "$rounds" && cat "$tmp/first" "$tmp/second" || { echo failed; cat "$tmp/first" "$tmp/second"; }; }
start() { # HOST NEIGHBOUR: in $neighbour, ready
  : >"$tmp/neighbour"
  simfab exec "$1" -- "$program" "$2" >"$tmp/neighbour" 2>&1 &
  neighbour=$!
  wait_for 60 grep -q ready "$tmp/neighbour"
}
on_exit 'kill -KILL $neighbour 2>/dev/null'
end() { { kill -KILL $neighbour; wait $neighbour; } 2>/dev/null; }
# the sum of the rounds is the difference of two readings in whole nanoseconds: both may be rounded the other way
same() {
  digits >"$tmp/digits"
  if awk -v a="$alone" 'BEGIN {split(a, x)} NR == 1 {split($0, y); d = x[3] - y[3]; exit !(d >= -1 && d <= 1)}' "$tmp/digits"; then
    is "$1" "$(cut -d , -f 2 "$tmp/digits")" "$(cut -d , -f 2 <<<"$alone")"
  else
    is "$1" "$(cat "$tmp/digits")" "$alone"
  fi
}

alone=$(digits)
like "a ping-pong: every round is like the others" "^$rounds rounds: [0-9]+ ns, each 12797 to 12798$" "$tmp/first"

for n in polls computes streams registers sleeps-long sleeps-often selects alarms reads-socket reads-pipe forks forks-computing \
  execs vforks popens threads leader-ends cancels; do
  start h2 $n
  same "beside one that $n"
  is "which is alive" "$(kill -0 $neighbour 2>&1; cat "$tmp/neighbour")" ready
  end
done
start h2 pages
same "beside one that waits for pages"
waits=$(wc -l <"$tmp/neighbour")
more() { [ "$(wc -l <"$tmp/neighbour")" -gt "$waits" ]; } # than while the ping-pong went on
ok "whose waits end" wait_for 60 more
is "and have taken no time" "$(grep ns "$tmp/neighbour" | awk '$1 > 1000')" ""
end
# on the host itself, without using the adapter: neither does that
for n in polls computes reads-pipe forks-computing; do
  start h1 $n
  same "on the host of one that $n"
  end
done
start h1 registers
digits >"$tmp/digits"
end
# while others of its host run who waits is given a look now and then: what comes during one is found by the next empty poll
like "one that registers memory costs its host's others no more than an empty poll" "^$rounds rounds: [0-9]+ ns, each 12797 to 12[78]..$" "$tmp/digits"
for n in polls computes streams reads-socket sleeps-often threads; do
  start h2 $n
  kill -STOP $neighbour
  same "beside one that $n, and is stopped"
  kill -CONT $neighbour
  same "and goes on"
  (sleep 0.1; kill -KILL $neighbour) &
  same "and is killed meanwhile"
  wait $! $neighbour 2>/dev/null
done
: >"$tmp/pongs"
for i in 1 2 3 4; do
  both pongs "$rounds" && sort "$tmp/first" | tr '\n' ' ' >>"$tmp/pongs"
  echo >>"$tmp/pongs"
done
is "three threads on each side: the same digits four times" "$(sort -u "$tmp/pongs")" "$(head -n 1 "$tmp/pongs")"
is "for each of them" "$(head -n 1 "$tmp/pongs" | grep -o "$rounds rounds: [0-9]* ns, each [0-9]* to [0-9]*" | wc -l)" 3
for i in 1 2 3; do
  both word
  is "receive requests that one was told of are there" "$(cat "$tmp/first")" "100 of 100 messages came"
done
is "nobody is left" "$(simfab status | sed -n 's/^processes: //p')" 0
done_testing
