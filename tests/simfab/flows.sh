#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A flow beside a program: what the program's latency becomes when the flow shares its lane, and when it has a lane of its
# own. The links carry 8 Gbit/s and nothing else limits, so a packet of the flow takes 2078 ns, and arithmetic says the rest.
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
for p in ibv_rc_pingpong opensm; do
  command -v $p >/dev/null || skip_all "$p is not installed"
done
cd "$root" || exit 2

packet_ns=2078 # 2048 + 30 bytes at 1 byte/ns
cat >"$tmp/model.yaml" <<'END'
name: plain
link: {width: 4, speed: SDR, mtu: 2048, vls: 8, propagation_ns: 10, switch_delay_ns: 200, packet_overhead_bytes: 30}
END

cat >"$tmp/lib.sh" <<'END'
# pingpong SL: microseconds of one way there and back
pingpong() {
  local port server
  port=$(free_port)
  simfab exec h1 -- timeout 60 ibv_rc_pingpong -l "$1" -s 64 -n 1000 -p $port >"$tmp/server" 2>&1 &
  server=$!
  wait_for 60 listening $port
  timeout 60 simfab exec h2 -- ibv_rc_pingpong -l "$1" -s 64 -n 1000 -p $port localhost >"$tmp/client" 2>&1
  wait $server
  awk '/iters in/ {print $(NF - 1)}' "$tmp/client"
}
END

# ---- a subnet that the engine configures: service level n has lane n, all lanes weigh the same
cat >"$tmp/static" <<'END'
. "$tmp/lib.sh"
echo "alone $(pingpong 0)"
simfab flow add "h1 mlx5_0" "h2 mlx5_0" sl=0 >"$tmp/added"
before=$(simfab status | sed -n 's/^virtual time: //p')
sleep 0.3
echo "stands $([ "$before" = "$(simfab status | sed -n 's/^virtual time: //p')" ] && echo still)"
echo "shared $(pingpong 0)"
echo "own $(pingpong 1)"
echo "other_rail $(simfab flow list | grep -c sending)"
echo "rate $(simfab flow list | sed -n 's/.*received [0-9]* bytes, \([0-9.]*\) MB.*/\1/p')"
simfab flow del all
echo "again $(pingpong 0)"
simfab status >"$tmp/status"
END
engine=
stop_engine() { [ -n "$engine" ] && kill "$engine" 2>/dev/null && wait "$engine"; engine=; }
on_exit stop_engine
static_run() { # OUT
  SIMFAB_DIR=$(mktemp -d "$tmp/fabric.XXXXXX")
  export SIMFAB_DIR tmp
  mkfifo "$SIMFAB_DIR/ready"
  exec 9<>"$SIMFAB_DIR/ready"
  "$BUILD/bin/simfab-engine" --topology etc/topologies/two-hosts-two-rails.net --model "$tmp/model.yaml" \
    --dir "$SIMFAB_DIR" --static-subnet 0 --ready-fd 9 2>"$SIMFAB_DIR/engine.log" &
  engine=$!
  read -r -t 10 -u 9 line && [ "$line" = ready ] && bash "$tmp/static" >"$1"
  stop_engine
}
value() { awk -v k="$1" '$1 == k {print $2}' "$2"; }
# more LESS MORE MIN MAX: does MORE exceed LESS by MIN to MAX flow packets?
more() { awk -v a="$1" -v b="$2" -v lo="$3" -v hi="$4" -v p=$packet_ns 'BEGIN {
  n = (b - a) * 1000 / p; if (n < lo || n > hi) { print a, b, n, "packets"; exit 1 } }'; }

ok "a fabric with a flow" static_run "$tmp/one"
alone=$(value alone "$tmp/one")
is "a flow alone moves no time" "$(value stands "$tmp/one")" still
# at most six packets of a lane are made before they are sent: the program's waits for those
ok "in the flow's lane each round trip waits for five to six of its packets" more "$alone" "$(value shared "$tmp/one")" 5 6
# one is on the wire, and the arbiter lets the program's go next
ok "in a lane of its own it waits for one at most" more "$alone" "$(value own "$tmp/one")" 0.5 1.05
ok "the flow takes nearly all of the link meanwhile" awk -v r="$(value rate "$tmp/one")" 'BEGIN {exit !(r > 950 && r < 985.57)}'
is "without the flow it is as before" "$(value again "$tmp/one")" "$alone"
ok "the same again" static_run "$tmp/two"
is "gives the same digits" "$(cat "$tmp/two")" "$(cat "$tmp/one")"

# ---- a subnet that opensm configures: one lane has priority
cat >"$tmp/managed" <<'END'
. "$tmp/lib.sh"
export tmp
echo "alone $(pingpong 1)"
simfab flow add "h1 mlx5_0" "h2 mlx5_0" sl=0 >"$tmp/added"
echo "low $(pingpong 0)"
echo "high $(pingpong 1)"
END
managed() {
  # shellcheck disable=SC2097,SC2098 # the same $tmp, exported
  tmp=$tmp simfab run --topology two-hosts-two-rails --model "$tmp/model.yaml" --opensm-option "qos TRUE" \
    --opensm-option "qos_max_vls 8" --opensm-option "qos_high_limit 255" --opensm-option "qos_vlarb_high 1:64" \
    --opensm-option "qos_vlarb_low 0:64" --opensm-option "qos_sl2vl 0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0" \
    -- bash "$tmp/managed" >"$1"
}
unset SIMFAB_DIR
ok "a fabric whose lane 1 has priority" managed "$tmp/three"
alone=$(value alone "$tmp/three")
ok "beside the flow each round trip waits for five to six of its packets" more "$alone" "$(value low "$tmp/three")" 5 6
ok "with priority it waits for one at most" more "$alone" "$(value high "$tmp/three")" 0.5 1.05

# ---- in the model, and mistakes
cat >"$tmp/run" <<'END'
simfab flow list
simfab flow run 10ms
simfab flow list
simfab flow add "h1 mlx5_0" nobody; echo "status $?"
simfab flow add "h1 mlx5_0" "h2 mlx5_0" rate=fast; echo "status $?"
simfab flow del 9; echo "status $?"
END
{ cat "$tmp/model.yaml"; echo 'flows:'; echo '- {from: "h1 mlx5_1", to: "h2 mlx5_1", rate_mbytes_per_s: 100, for_ms: 5}'; } >"$tmp/flows.yaml"
ok "flows of a model" simfab run --no-opensm --topology two-hosts-two-rails --model "$tmp/flows.yaml" -- true
simfab run --topology two-hosts-two-rails --model "$tmp/flows.yaml" -- bash "$tmp/run" >"$tmp/out" 2>&1
like "are there from the beginning" '^flow 1 "h1 mlx5_1" 1 -> "h2 mlx5_1" 1 .*: to come, sent 0 bytes' "$tmp/out"
like "send as time passes, and say that figures are simulated" \
  '^flow 1 .*: ended, sent 524288 bytes, received 524288 bytes, 100.000 MB/s \(simulated\), lost 0 packets' "$tmp/out"
like "who is not there is named, with those who are" 'no adapter "nobody" in this fabric; there are: "h1 mlx5_0", "h1 mlx5_1"' "$tmp/out"
like "what is no rate is named" 'rate: "fast" is not a rate' "$tmp/out"
like "and what is no flow" 'there is no flow 9' "$tmp/out"
is "with exit status 2" "$(grep -c '^status 2' "$tmp/out")" 3

done_testing
