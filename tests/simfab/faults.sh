#!/usr/bin/env bash
# What goes wrong on a fabric: lost packets, a process that is killed, a cable that goes nowhere. The subnet is configured by the
# engine itself, so no subnet manager is needed.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
for p in ibv_rc_pingpong ibv_uc_pingpong; do
  command -v $p >/dev/null || skip_all "$p is not installed"
done

# engine MODEL: a fabric of its own in $SIMFAB_DIR
engine=
stop_engine() {
  [ -n "$engine" ] && kill "$engine" 2>/dev/null && wait "$engine"
  engine=
}
on_exit stop_engine
start_engine() {
  stop_engine
  SIMFAB_DIR=$(mktemp -d "$tmp/fabric.XXXXXX")
  export SIMFAB_DIR
  mkfifo "$SIMFAB_DIR/ready"
  exec 9<>"$SIMFAB_DIR/ready" # held open: the engine may write and close before we read
  "$BUILD/bin/simfab-engine" --topology "$root/etc/topologies/two-hosts-two-rails.net" --model "$1" --dir "$SIMFAB_DIR" \
    --static-subnet 0 --ready-fd 9 2>"$SIMFAB_DIR/engine.log" &
  engine=$!
  read -r -t 10 -u 9 line && [ "$line" = ready ]
}
# pair PROGRAM ARGS: server on h1 (its pid in $server), client on h2; outputs in $tmp/server and $tmp/client
start_server() {
  port=$(free_port)
  simfab exec h1 -- timeout 60 "$@" -p "$port" >"$tmp/server" 2>&1 &
  server=$!
  wait_for 60 listening "$port"
}
client() { timeout 60 simfab exec h2 -- "$@" -p "$port" localhost >"$tmp/client" 2>&1; }
pair() {
  start_server "$@"
  client "$@"
  local rc=$?
  wait $server && [ $rc -eq 0 ]
}
right() { ! grep -h 'invalid data' "$tmp/server" "$tmp/client"; }
usec() { awk '/iters in/ {print $(NF - 1)}' "$tmp/client"; }

printf 'name: lossy\nfault: {loss: 0.005, seed: 7}\n' >"$tmp/lossy.yaml"
printf 'name: lossless\n' >"$tmp/lossless.yaml"

ok "a fabric without loss" start_engine "$tmp/lossless.yaml"
ok "a reliable connection" pair ibv_rc_pingpong -c -s 65536 -n 200
clean=$(usec)
is "no packet is dropped" "$(simfab status | sed -n 's/^packets:.*, \([0-9]*\) dropped$/\1/p')" 0

ok "a fabric that loses one packet in 200 on each cable" start_engine "$tmp/lossy.yaml"
ok "a reliable connection delivers all the same" pair ibv_rc_pingpong -c -s 65536 -n 200
ok "and the data is right" right
is "it takes longer" "$(awk -v a="$clean" -v b="$(usec)" 'BEGIN {print (b > 1.05 * a) ? "yes" : "no: " a " " b}')" yes
lossy=$(usec)
ok "packets were dropped" test "$(simfab status | sed -n 's/^packets:.*, \([0-9]*\) dropped$/\1/p')" -gt 10
ok "the same seed again" start_engine "$tmp/lossy.yaml"
ok "delivers again" pair ibv_rc_pingpong -c -s 65536 -n 200
is "the faults are the same: so are the digits" "$(usec)" "$lossy"

ok "a fabric for killing" start_engine "$tmp/lossless.yaml"
# A process that waits for a message without sending itself never hears of the other's end: so it is on a real HCA.
# Whoever is sending at that moment does, after half a second of the fabric's time; with large messages that is the client in
# about half of the attempts.
for attempt in 1 2 3 4 5 6 7 8 9 10 11 12; do
  before=$(simfab status | sed -n 's/^packets: \([0-9]*\) .*/\1/p')
  start_server ibv_rc_pingpong -s 4194304 -n 100000000
  timeout 60 simfab exec h2 -- ibv_rc_pingpong -s 4194304 -n 100000000 -p "$port" localhost >"$tmp/client" 2>&1 &
  running=$!
  for ((i = 0; i < 500; i++)); do # wait until they talk
    [ "$(simfab status | sed -n 's/^packets: \([0-9]*\) .*/\1/p')" -gt $((before + 5000)) ] && break
    sleep 0.01
  done
  [ $attempt = 1 ] && is "two processes are attached" "$(simfab status | sed -n 's/^processes: //p')" 2
  pkill -KILL -P "$server"
  { wait "$server"; } 2>/dev/null
  simfab flow run 2s >/dev/null
  for ((i = 0; i < 200; i++)); do # it has been told, or never will be
    kill -0 $running 2>/dev/null || break
    sleep 0.01
  done
  kill $running 2>/dev/null
  wait $running
  [ $? -ne 143 ] && break
done
like "the sender to a process that was killed is told" 'transport retry counter exceeded' "$tmp/client"
wait_for 60 eval "simfab status | grep -x 'processes: 0'"
is "nothing of either is left" "$(simfab status | sed -n 's/^processes: //p')" 0
ok "the fabric goes on" pair ibv_rc_pingpong -c -n 100

done_testing
