#!/usr/bin/env bash
# Multicast on unreliable datagrams: groups that the unmodified opensm keeps, forwarding tables that it writes, copies
# in switches and adapters, and programs of others. Four hosts on two switches: h1 h2 - sw1 - sw2 - h3 h4.
. "$(dirname "$0")/../tap.sh"
command -v opensm >/dev/null || skip_all "opensm is not installed"
here=$(cd "$(dirname "$0")" && pwd)
export member=$BUILD/tests/simfab/test_mcast tmp

fabric() { # FUNCTION: run it inside a fresh fabric
  export -f "${1?}" group start finish wait_for counters counter
  ok "$1: the fabric comes up, everybody gets what he should, in order and whole" \
    timeout 100 simfab run --topology "$here/four-hosts.net" --model sdr-pcix -- bash -c "set -e; $1"
}
start() { # HOST NAME OPTION...: a member
  local host=$1 name=$2
  shift 2
  timeout 60 simfab exec "$host" -- "$member" "$dir" "$name" "$@" >"$dir/$name.out" 2>&1 &
  pids+=($!)
  names+=("$name")
}
group() { # NAME: begin a group of members, whose files are in $tmp/NAME
  dir=$tmp/$1 pids=() names=()
  mkdir "$dir"
}
finish() { # TABLE: what the subnet manager's tables must have (a command) before the senders go
  local n
  for n in "${names[@]}"; do wait_for 20 test -e "$dir/$n.ready"; done
  wait_for 20 bash -c "$1"
  touch "$dir/go"
  for n in "${names[@]}"; do [[ $n != s* ]] || wait_for 20 test -e "$dir/$n.sent"; done
  touch "$dir/stop"
  wait "${pids[@]}" || true
  cat "$dir"/*.out
}
counters() { simfab exec h1 -- perfquery -x "$@"; }

# ---- members, a member that only sends, one that never joined, one that is detached -----------------------------------

members() {
  group members
  start h1 s1 -q 2 -n 10        # its own queue pairs are attached: both get what it sends
  start h2 r2 -q 3              # three queue pairs of one port
  start h4 r4 -q 1 -d           # a port of the group without a queue pair
  wait_for 20 test -e "$dir/s1.ready"
  start h3 x3 -j 0 -m 0xc001    # attached, but its port never joined
  finish 'simfab exec h1 -- dump_mfts 2>/dev/null | grep "^0xc001" | wc -l | grep -qx 2'
  simfab exec h1 -- dump_mfts 2>/dev/null >"$tmp/mfts"
  local h
  for h in 2 3 4; do
    counters "$(simfab exec h$h -- cat /sys/class/infiniband/mlx5_0/ports/1/lid)" 1 >"$tmp/port.h$h"
  done
  counters 1 1 >"$tmp/port.h1"
}
fabric members
like "the sender's own queue pairs get copies" '^s1 mlid 0xc001 sent 10 bad 0 got 10 10$' "$tmp/members/s1.out"
like "every attached queue pair gets one" '^r2 .* got 10 10 10$' "$tmp/members/r2.out"
like "a queue pair that was detached gets none" '^r4 .* got 0$' "$tmp/members/r4.out"
like "nor does a port that did not join" '^x3 .* got 0$' "$tmp/members/x3.out"
like "sent once" 'PortMulticastXmitPkts:\.*10$' "$tmp/port.h1"
like "received once by a port of the group" 'PortMulticastRcvPkts:\.*10$' "$tmp/port.h2"
like "and by one without queue pairs" 'PortMulticastRcvPkts:\.*10$' "$tmp/port.h4"
like "not by a port outside" 'PortMulticastRcvPkts:\.*0$' "$tmp/port.h3"
like "none of it was unicast" 'PortUnicastXmitPkts:\.*0$' "$tmp/port.h1"

# ---- a switch outside the group's tree drops what somebody who never joined sends --------------------------------------

outside() {
  group outside
  start h1 r1 -q 1
  start h2 r2 -q 1
  wait_for 20 test -e "$dir/r1.ready"
  start h3 s3 -j 0 -m 0xc001 -q 0 -n 5
  finish 'simfab exec h1 -- dump_mfts 2>/dev/null | grep "^0xc001" | wc -l | grep -qx 1'
  simfab exec h3 -- perfquery "$(simfab exec h1 -- ibswitches | sed -n 's/.*"sw2".* lid \([0-9]*\) .*/\1/p')" 1 >"$tmp/sw2"
}
fabric outside
like "the members hear nothing" '^r1 .* got 0$' "$tmp/outside/r1.out"
like "the switch counts what it dropped" 'PortRcvSwitchRelayErrors:\.*5$' "$tmp/sw2"

# ---- many senders at once: every copy arrives, no credit is lost --------------------------------------------------------

everybody_sends() {
  group flood
  local h
  for h in 1 2 3 4; do start h$h s$h -q 1 -k 1$h -n 40; done
  for h in 1 2 3 4; do start h$h a$h -k 11; start h$h b$h -k 12; start h$h c$h -k 13; start h$h d$h -k 14; done
  finish 'simfab exec h1 -- dump_mfts 2>/dev/null | grep "^0xc0" | wc -l | grep -qx 8'
}
fabric everybody_sends
is "16 receivers of 4 groups get 40 each" "$(cat "$tmp"/flood/[abcd]*.out | grep -c ' bad 0 got 40$')" 16

# ---- a program that joins by itself ---------------------------------------------------------------------------------------

perftest() {
  counter >"$tmp/counter" || return 0
  local port
  for ((port = 24210; port < 24300; port++)); do
    listening $port || break
  done
  timeout 30 simfab exec h1 -- ib_send_lat -c UD -g -n 50 -p $port >"$tmp/lat.server" 2>&1 &
  local server=$!
  wait_for 20 listening $port
  timeout 30 simfab exec h3 -- ib_send_lat -c UD -g -n 50 -p $port localhost >"$tmp/lat.client" 2>&1
  wait $server
  simfab exec h3 -- perfquery -x >"$tmp/lat.port"
}
if command -v ib_send_lat >/dev/null; then
  fabric perftest
  if [ -e "$tmp/lat.client" ]; then
    like "ib_send_lat joins, and measures across both switches" '^ 2 +50 +[0-9.]+ ' "$tmp/lat.client"
    like "its messages went to the group" 'PortMulticastXmitPkts:\.*50$' "$tmp/lat.port"
  else
    ok "ib_send_lat joins # SKIP $(cat "$tmp/counter")" true
  fi
else
  echo "# ib_send_lat is not installed"
fi

done_testing
