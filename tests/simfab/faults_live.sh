#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Faults on a fabric that opensm manages, seen by programs that know nothing of them: events, completions, counters, traps,
# routes. Links, switches and cables here, hosts and subnet managers in faults_hosts.sh.
# timeout: 400
. "$(dirname "$0")/../tap.sh"
for p in ibv_rc_pingpong ibv_ud_pingpong ibv_asyncwatch opensm iblinkinfo perfquery ibqueryerrors; do
  command -v $p >/dev/null || skip_all "$p is not installed"
done
export tmp

cat >"$tmp/lib.sh" <<'END'
# server PROGRAM...: on h1; its pid in $server, its port in $port
server() {
  port=$(free_port)
  simfab exec h1 -- timeout 60 "$@" -p $port >"$tmp/server" 2>&1 &
  server=$!
  wait_for 60 listening $port
}
# Both must end well. When one fails the other, which may never hear of it, is ended.
pair() {
  local rc=0 client ended other
  server "$@"
  timeout 60 simfab exec h2 -- "$@" -p $port localhost >"$tmp/client" 2>&1 &
  client=$!
  wait -n -p ended $server $client || rc=$?
  other=$((ended == server ? client : server))
  [ $rc = 0 ] || kill $other 2>/dev/null
  wait $other || rc=$?
  return $rc
}
usec() { awk '/iters in/ {print $(NF - 1)}' "$tmp/client"; }
until_log() { # REGEX: opensm's log says so
  wait_for 60 grep -Eq "$1" "$SIMFAB_DIR/opensm/opensm.log"
}
says() { "${@:2}" 2>&1 | grep -Eq "$1"; } # REGEX COMMAND...
until_seen() { wait_for 60 says "$@" || { "${@:2}"; return 1; }; }
counter() { simfab exec h1 -- perfquery "$1" "$2" | sed -n "s/^$3:\.*//p"; }
running() { [ "$(simfab status | sed -n 's/^packets: \([0-9]*\) .*/\1/p')" -gt $(($1 + 500)) ]; }
END

# ---- a link that goes and comes back at given times
cat >"$tmp/flap.yaml" <<'END'
faults:
- {link: "h1 mlx5_0", port: 1, set: down, at_ms: 5, for_ms: 10}
END
cat >"$tmp/flap" <<'END'
. "$tmp/lib.sh"
exec >"$tmp/flap.out"
simfab exec h1 -- ibv_asyncwatch -d mlx5_0 >"$tmp/events" 2>&1 &
watch=$!
wait_for 60 grep -q 'async event' "$tmp/events"
pair ibv_rc_pingpong -c -s 4096 -n 3000 && echo "delivered $(usec)"
grep -h 'invalid data' "$tmp/client" "$tmp/server"
simfab status | grep '^virtual time'
sed -n 's/^[^ ]* \(fault at .*\)/\1/p' "$SIMFAB_DIR/engine.log"
wait_for 60 grep -q PORT_ACTIVE "$tmp/events"
kill $watch
END
flap() { simfab run --topology two-switches-two-paths --model "$tmp/flap.yaml" -- bash "$tmp/flap"; }
ok "a link goes for 10 ms" flap
mv "$tmp/flap.out" "$tmp/first"
like "a reliable connection survives it" '^delivered' "$tmp/first"
# 4096 bytes there and back take 4.42 us; one time-out of 4.096 us * 2^14 is 67.1 ms
ok "at the price of one time-out" awk '/^delivered/ {t = $2 * 3000} END {exit !(t > 67109 + 3000 * 4 && t < 67109 + 3000 * 5)}' "$tmp/first"
like "it went when it was told to" '^fault at 0.005000000 s of virtual time: link "h1 mlx5_0" 1 down' "$tmp/first"
like "and came back" '^fault at 0.015000000 s of virtual time: link "h1 mlx5_0" 1 up' "$tmp/first"
like "programs hear of it: port error" IBV_EVENT_PORT_ERR "$tmp/events"
like "and port active" IBV_EVENT_PORT_ACTIVE "$tmp/events"
ok "once more" flap
is "with the same digits" "$(cat "$tmp/flap.out")" "$(cat "$tmp/first")"

# ---- live
cat >"$tmp/live" <<'END'
. "$tmp/lib.sh"
say() { echo "$1 $(shift; "$@" >"$tmp/said" 2>&1 && echo yes || { echo "no ($?)"; cat "$tmp/said" >&2; })"; }
leaf1=$(simfab status | sed -n 's/^leaf1 0 .* lid \([0-9]*\) .*/\1/p')
h2=$(simfab status | sed -n 's/^h2 mlx5_0 1 .* lid \([0-9]*\) .*/\1/p')

route_to() { simfab exec h1 -- ibroute $leaf1 | awk -v l="$(printf 0x%04x $1)" '$1 "" == l "" {print $2 + 0}'; }

simfab fault link "h2 mlx5_0" 1 width=1
say width until_seen '1X .*Could be 4X' simfab exec h1 -- iblinkinfo
say sysfs until_seen '1X QDR' simfab exec h2 -- cat /sys/class/infiniband/mlx5_0/ports/1/rate
say verbs until_seen 'active_width:.*1X' simfab exec h2 -- ibv_devinfo -v
say trap128 until_log 'Received Generic Notice type:1 num:128|num:128 '
say pingpong pair ibv_rc_pingpong -n 100 -s 65536
narrow=$(usec)
simfab fault link "h2 mlx5_0" 1 width=12
pair ibv_rc_pingpong -n 100 -s 65536
echo "ratio $(awk -v a="$narrow" -v b="$(usec)" 'BEGIN {printf "%.1f", a / b}')"

simfab fault link "leaf1" 1 corrupt=0.01
pair ibv_rc_pingpong -n 1000 -s 4096 && echo "corrupt delivered"
echo "symbol $(counter $leaf1 1 SymbolErrorCounter)"
echo "rcv $(counter $leaf1 1 PortRcvErrors)"
say queryerrors until_seen 'PortRcvErrors == [1-9]' simfab exec h1 -- ibqueryerrors
simfab fault link "leaf1" 1 corrupt=1
pair ibv_rc_pingpong -n 10 -s 4096 || echo "corrupt fails"
grep -h Failed "$tmp/client" "$tmp/server" | sort -u
say integrity until_seen 'LocalLinkIntegrityErrors == [1-9]' simfab exec h1 -- ibqueryerrors
echo "recovers $(counter $leaf1 1 LinkErrorRecoveryCounter)"
say trap129 until_log 'num:129'
simfab fault clear

simfab fault link "leaf1" 1 overrun=1
simfab flow add "h1 mlx5_0" "h2 mlx5_0" # saturating, so that overruns go on
pair ibv_rc_pingpong -n 10 -s 4096 || echo "overrun fails"
simfab flow del all
say excessive until_seen 'ExcessiveBufferOverrunErrors == [1-9]' simfab exec h1 -- ibqueryerrors
say details until_seen 'PortBufferOverrunErrors:\.*[1-9]' simfab exec h1 -- perfquery -E $leaf1 1
say trap130 until_log 'num:130'
simfab fault clear
say watched pair ibv_rc_pingpong -n 10
simfab fault link "leaf1" 1 fc=off
pair ibv_rc_pingpong -n 100 -s 65536 || echo "without flow control fails"
say trap131 until_log 'num:131'
simfab fault list
simfab fault clear
for ((i = 0; i < 10; i++)); do # a lane that dropped all is stalled for eight of its lives
  pair ibv_rc_pingpong -n 100 -s 65536 && echo "unwatched yes" && break
done

for p in uc ud; do # whatever is lost stays lost
  simfab fault link all loss=1
  server timeout 1 ibv_${p}_pingpong -n 10
  timeout 1 simfab exec h2 -- ibv_${p}_pingpong -n 10 -p $port localhost >"$tmp/client" 2>&1
  echo "$p ends with $?"
  wait $server
  simfab fault clear
  say lossless_$p pair ibv_${p}_pingpong -n 10
done

cable=$(route_to $h2)
simfab fault link leaf1 $cable down
say rerouted pair ibv_rc_pingpong -n 100
echo "other $([ "$(route_to $h2)" = $((8 - cable)) ] && echo yes || echo "no: $cable, $(route_to $h2)")"
simfab fault clear

packets=$(simfab status | sed -n 's/^packets: \([0-9]*\) .*/\1/p')
server ibv_rc_pingpong -s 4096 -n 100000000
timeout 60 simfab exec h2 -- ibv_rc_pingpong -s 4096 -n 100000000 -p $port localhost >"$tmp/client" 2>&1 &
other=$!
wait_for 60 running "$packets"
simfab fault node leaf2 die
wait -n $server $other # who only waits for a message never hears of it
kill $server $other 2>/dev/null
wait $server $other
echo "die $(cat "$tmp/client" "$tmp/server" | grep Failed | sort -u)"
say gone until_log 'Removing|leaf2|Discovered.*down|removed'
simfab exec h1 -- iblinkinfo >"$tmp/links"
echo "dead $(grep -c '"leaf2"' "$tmp/links")"
simfab fault list
simfab fault node leaf2 revive
say revived pair ibv_rc_pingpong -n 100
echo "downed $(counter $leaf1 3 LinkDownedCounter)"
END
ok "faults on a fabric that opensm manages" simfab run --topology two-switches-two-paths -- bash -c 'bash "$tmp/live" >"$tmp/out" 2>"$tmp/err"; cp $SIMFAB_DIR/opensm/opensm.log "$tmp/opensm.log"'
yes() { is "$2" "$(sed -n "s/^$1 //p" "$tmp/out")" "${3:-yes}"; }
yes width "a link that trains at one lane is seen by iblinkinfo"
yes sysfs "and in sysfs"
yes verbs "and by verbs"
yes trap128 "the switch tells opensm (trap 128)"
yes pingpong "it carries data again"
ok "at nearly a quarter of the rate" awk '/^ratio/ {exit !($2 > 3.5 && $2 <= 4)}' "$tmp/out"
like "what is corrupted is sent again" '^corrupt delivered' "$tmp/out"
like "perfquery counts symbol errors" '^symbol [1-9]' "$tmp/out"
is "as many receive errors" "$(sed -n 's/^rcv //p' "$tmp/out")" "$(sed -n 's/^symbol //p' "$tmp/out")"
yes queryerrors "ibqueryerrors names the port"
like "when all is corrupted the connection fails" '^corrupt fails' "$tmp/out"
like "by too many retries" 'Failed status transport retry counter exceeded' "$tmp/out"
yes integrity "link integrity errors are counted"
like "and recoveries" '^recovers [1-9]' "$tmp/out"
yes trap129 "the switch tells opensm (trap 129)"
like "a receiver that never has the room it promised fails a connection" '^overrun fails' "$tmp/out"
yes excessive "the overruns are excessive, says ibqueryerrors"
yes details "and perfquery how many there were"
yes trap130 "the switch tells opensm (trap 130)"
yes watched "a receiver with room again carries data"
like "nothing passes for long without flow control" '^without flow control fails' "$tmp/out"
yes trap131 "the ports that miss it tell opensm (trap 131)"
like "simfab fault list says what the matter is" '^link "leaf1" 1 - .*: fc=off' "$tmp/out"
yes unwatched "with flow control all passes"
like "an unreliable connection loses messages" '^uc ends with 124' "$tmp/out"
like "datagrams too" '^ud ends with 124' "$tmp/out"
yes lossless_uc "without loss UC goes on"
yes lossless_ud "and UD"
yes rerouted "opensm takes the other cable when one goes"
yes other "as ibroute says"
like "a connection over a switch that dies fails" '^die .*transport retry counter exceeded' "$tmp/out"
yes dead "iblinkinfo does not see the switch any more" 0
like "simfab fault list does" '^node "leaf2": dead' "$tmp/out"
yes revived "when it is back opensm configures it again"
like "the links that went are counted" '^downed [1-9]' "$tmp/out"

# ---- a fault, or a flow, whose time does not come
late() { # COMMANDS...: the exit status, and what simfab run says after them; "fault" is for simfab fault link "h1 mlx5_0" 1
  simfab run --topology two-hosts-two-rails --no-opensm -- bash -c \
    'fault() { simfab fault link "h1 mlx5_0" 1 "$@"; }'"
$*" 2>"$tmp/late" >&2
  echo "$? $(sed 's/has only come to 0\.[0-9]* s/has only come so far/' "$tmp/late")"
}
never='s of virtual time, which has only come so far'
is "a fault for later is told of when the fabric ends, and that is no failure" "$(late 'fault down at=5s; exit 3')" \
  "3 simfab: fault that did not happen: link \"h1 mlx5_0\" 1 down, due at 5.000000000 $never"
is "so is a flow" "$(late 'simfab flow add "h1 mlx5_0" "h2 mlx5_0" at=7s >/dev/null')" \
  "0 simfab: flow that did not begin: \"h1 mlx5_0\" 1 -> \"h2 mlx5_0\" 1, due at 7.000000000 $never"
is "of many the first three are, in the order of time" "$(late 'for at in 9 5 7 6 8; do fault loss=0.$at at=${at}s; done')" \
  "$(printf '0 simfab: fault that did not happen: link "h1 mlx5_0" 1 loss=0.%d, due at %d.000000000 '"$never"'\n' 5 5)
$(printf 'simfab: fault that did not happen: link "h1 mlx5_0" 1 loss=0.%d, due at %d.000000000 '"$never"'\n' 6 6 7 7)
simfab: and 2 more faults that did not happen"
is "what was cleared, or is only the end of a fault, is not" \
  "$(late 'fault down at=5s; simfab fault clear; fault loss=0.5 for=1s')" "0 "

# ---- a switch in the middle dies: there are others
cat >"$tmp/spine" <<'END'
. "$tmp/lib.sh"
spine=$(simfab exec h1 -- ibswitches | sed -n 's/.*"\(spine[^"]*\)".*/\1/p' | head -1)
echo "spine $spine"
pair ibv_rc_pingpong -n 100 && echo before
simfab fault node "$spine" die
pair ibv_rc_pingpong -n 100 && echo after
simfab exec h1 -- ibswitches | grep -c '"spine' | sed 's/^/left /'
simfab fault node "$spine" revive
pair ibv_rc_pingpong -n 100 && echo again
simfab exec h1 -- ibswitches | grep -c '"spine' | sed 's/^/all /'
END
simfab topology fat-tree --hosts 8 --radix 4 >"$tmp/tree.net"
ok "a fat tree whose spine dies" simfab run --topology "$tmp/tree.net" -- bash -c 'bash "$tmp/spine" >"$tmp/out" 2>"$tmp/err"'
is "opensm routes around it, and takes it up again" "$(sed '/^spine/d' "$tmp/out" | tr '\n' ' ')" "before after left 1 again all 2 "
done_testing
