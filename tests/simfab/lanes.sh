#!/usr/bin/env bash
# Lanes set up by the unmodified opensm on unequal ports: the common values of a cable's ends, the time limits of
# packets, service levels with a lane and lanes turned off; seen by unmodified programs and diagnostics.
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")" && pwd)
for p in opensm smpquery perfquery ibv_rc_pingpong; do
  command -v $p >/dev/null || skip_all "$p is not installed"
done
export tmp

fabric() { # FUNCTION MODEL OPTION...: each option is a line for opensm.conf
  local f=$1 model=$2 o options=()
  shift 2
  for o in "$@"; do options+=(--opensm-option "$o"); done
  ok "$f: the fabric comes up and goes down" timeout 100 simfab run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" \
    --model "$model" "${options[@]}" -- bash -c "$f"
}
pingpong() { # NAME ARG...: over the first rail; what the client says in $tmp/NAME
  local name=$1 port
  shift
  port=$(free_port)
  simfab exec h2 -- timeout 30 ibv_rc_pingpong -d mlx5_0 -p $port "$@" >"$tmp/server" 2>&1 &
  wait_for 60 listening $port
  simfab exec h1 -- timeout 30 ibv_rc_pingpong -d mlx5_0 -p $port "$@" localhost >"$tmp/$name" 2>&1
  echo "exit status $?" >>"$tmp/$name"
  kill $! 2>/dev/null
  wait
}
host() { simfab exec h1 -- "$@"; }
switch_lid() { host ibswitches | sed -n 's/.* lid \([0-9]*\) .*/\1/p'; }
export -f listening pingpong host switch_lid

# ---- a cable whose ends differ, and lives that the manager sets --------------------------------------------------------

unequal() {
  local sw
  sw=$(switch_lid)
  host smpquery switchinfo "$sw" >"$tmp/switch"
  host smpquery portinfo "$sw" 1 >"$tmp/port1"
  host smpquery portinfo "$sw" 3 >"$tmp/port3"
  pingpong slow -s 1048576 -n 20
  # the port to the slow link is busy all the time, but its head never waits longer than its life
  simfab flow add "h1 mlx5_1" "h2 mlx5_0"
  simfab flow run 5ms
  host perfquery "$sw" 3 >"$tmp/busy"
  simfab fault host h2 slow=1000
  simfab flow run 20ms
  host perfquery "$sw" 3 >"$tmp/blocked"
  host perfquery -D "$sw" 3 >"$tmp/details"
  simfab flow list >"$tmp/flows"
}
cat >"$tmp/unequal.yaml" <<'EOF2'
name: unequal
link: {width: 4, speed: QDR, mtu: 2048, vls: 8}
ports:
- {node: "h2 mlx5_0", port: 1, vls: 2, mtu: 1024, width: 1, speed: SDR}
EOF2
export -f unequal
fabric unequal "$tmp/unequal.yaml" "head_of_queue_lifetime 0x0d" "leaf_head_of_queue_lifetime 0x05" \
  "packet_life_time 0x0e" "leaf_vl_stall_count 0x03"
like "LifeTimeValue is as opensm was told" 'LifeTime:\.+14$' "$tmp/switch"
like "so is HOQLife" 'HoqLife:\.+5$' "$tmp/port3"
like "and VLStallCount" 'VLStallCount:\.+3$' "$tmp/port3"
like "the switch's end can do 8 lanes" 'VLCap:\.+VL0-7$' "$tmp/port3"
like "and operates the two that both have" 'OperVLs:\.+VL0-1$' "$tmp/port3"
like "with the neighbour's MTU" 'NeighborMTU:\.+1024$' "$tmp/port3"
like "and width" 'LinkWidthActive:\.+1X$' "$tmp/port3"
like "and speed" 'LinkSpeedActive:\.+2.5 Gbps$' "$tmp/port3"
like "other cables are what they were" 'OperVLs:\.+VL0-7$' "$tmp/port1"
# 1024 packets of 1024 + 30 bytes at 2 Gbit/s: 4317 us for a message of 1 MiB, and less than 10 us besides
like "a slow link is as fast as its bytes take" ' = 19(39|4[0-3])\.[0-9]+ Mbit/sec' "$tmp/slow"
like "a busy lane loses nothing" 'PortXmitDiscards:\.+0$' "$tmp/busy"
like "a blocked one does" 'PortXmitDiscards:\.+[1-9]' "$tmp/blocked"
like "for the time at its head" 'PortSwHOQLifetimeLimitDiscards:\.+[1-9]' "$tmp/details"
like "and for nothing else" 'PortNeighborMTUDiscards:\.+0$' "$tmp/details"
is "all discards have that reason" "$(sed -n 's/^PortXmitDiscards:\.*//p' "$tmp/blocked")" \
  "$(sed -n 's/^PortSwHOQLifetimeLimitDiscards:\.*//p' "$tmp/details")"

# ---- levels without a lane, lanes that are off --------------------------------------------------------------------------

levels() {
  host smpquery sl2vl "$(switch_lid)" 3 >"$tmp/sl2vl"
  pingpong level1 -l 1 -n 10
  pingpong level2 -l 2 -n 10
  pingpong level3 -l 3 -n 10
  simfab status --counters >"$tmp/counters"
  host perfquery "$(host ibaddr | sed -n 's/.*LID start \(0x[0-9a-f]*\).*/\1/p')" 1 >"$tmp/h1"
}
export -f levels
fabric levels sdr-pcix "qos TRUE" "qos_sl2vl 0,1,2,15,0,0,0,0,0,0,0,0,0,0,0,0" "qos_vlarb_high 0:64" \
  "qos_vlarb_low 0:64,1:64,2:0" "qos_high_limit 10"
like "opensm has mapped level 3 to no lane" '\| 0\| 1\| 2\|15\|' "$tmp/sl2vl"
like "level 1 has its lane" 'exit status 0' "$tmp/level1"
like "a lane without weight carries nothing" 'Failed status transport retry counter exceeded' "$tmp/level2"
like "nor does a level without a lane" 'Failed status transport retry counter exceeded' "$tmp/level3"
like "whose packets the adapter discards and counts" 'PortXmitDiscards:\.+[1-9]' "$tmp/h1"
done_testing
