#!/usr/bin/env bash
# The unmodified opensm and infiniband-diags on simulated hosts: bring-up, tables as configured, LMC paths, traps, two
# subnet managers. Each fabric runs a list of commands that record what they print; the checks are made outside.
# timeout: 240
. "$(dirname "$0")/../tap.sh"

for p in opensm ibnetdiscover smpquery saquery perfquery ibstat; do
  command -v $p >/dev/null || skip_all "$p is not installed"
done

on() { # HOST NAME CMD...: run CMD there, keep its output as NAME and its exit status as NAME.rc
  local host=$1 name=$2
  shift 2
  timeout 30 simfab exec "$host" -- "$@" >"$tmp/$name" 2>&1
  echo $? >"$tmp/$name.rc"
}
rc() { cat "$tmp/$1.rc" 2>/dev/null; }
fabric() { # TOPOLOGY FUNCTION [OPTION...]: run FUNCTION inside a fresh fabric
  local topology=$1 function=$2
  shift 2
  export -f on lid_of wait_for "${function?}"
  export tmp
  ok "$function: fabric $topology comes up and goes down" \
    timeout 120 simfab run --topology "$topology" --model sdr-pcix "$@" -- bash -c "$function"
}
lid_of() { simfab exec "$1" -- cat /sys/class/infiniband/mlx5_0/ports/1/lid; }
column() { awk -F: -v key="$1" '$1 == key {gsub(/^\.+/, "", $2); print $2; exit}' "$tmp/$2"; }

# ---- every tool, from both hosts ------------------------------------------------------------------------------------

tools() {
  local h
  for h in h1 h2; do
    on $h $h.ibstat ibstat
    on $h $h.ibstatus ibstatus
    on $h $h.ibnetdiscover ibnetdiscover
    on $h $h.iblinkinfo iblinkinfo
    on $h $h.ibhosts ibhosts
    on $h $h.ibswitches ibswitches
    on $h $h.ibqueryerrors ibqueryerrors
    on $h $h.sminfo sminfo
    on $h $h.nr saquery NR
    on $h $h.pr saquery -p
    on $h $h.perfquery perfquery
    on $h $h.perfquery-x perfquery -x
    on $h $h.perfquery-a perfquery -a
    on $h $h.perfquery-R perfquery -R
    on $h $h.lfts dump_lfts
    on $h $h.mfts dump_mfts
    on $h $h.ibaddr ibaddr
    on $h $h.ids ibidsverify
  done
  on h1 sysfs bash -c 'cd /sys/class/infiniband && cat */ports/1/state && [ -r mlx5_1/node_type ] && ls'
  on h1 devices bash -c 'ls -l /dev/infiniband; stat -c %F /dev/infiniband/umad0'
  local sw
  sw=$(simfab exec h1 -- ibswitches | sed -n 's/.* lid \([0-9]*\) .*/\1/p')
  on h2 ni smpquery NI "$sw"
  on h2 nd smpquery ND "$sw"
  on h2 si smpquery SI "$sw"
  on h2 pi smpquery PI "$sw" 1
  on h2 pkeys smpquery PKeys "$sw" 1
  on h2 gi smpquery GI -D 0
  on h2 route ibroute "$sw"
  on h2 trace ibtracert "$(lid_of h2)" "$(lid_of h1)"
  # requests nobody answers fail at once, not by time-out
  on h2 refused bash -c 'time (perfquery --xmtsl; vendstat -N '"$sw"'; ibccquery CongestionInfo '"$sw"')'
  # an agent on another host
  simfab exec h1 -- ibping -S & local server=$!
  wait_for 5 bash -c "simfab exec h2 -- ibping -t 20000 -c 1 $(lid_of h1) 2>/dev/null | grep -q ' 0% packet loss'"
  on h2 ibping ibping -t 20000 -c 3 "$(lid_of h1)"
  kill $server
  wait $server 2>/dev/null
  # killed tools leave nothing that hinders others
  local pids=()
  while [ ${#pids[@]} -lt 12 ]; do
    simfab exec h2 -- ibping 47 >/dev/null 2>&1 & pids+=($!)
  done
  sleep 0.2
  kill "${pids[@]}"
  wait "${pids[@]}" 2>/dev/null
  on h2 after-kill sminfo
  return 0
}
fabric two-hosts-two-rails tools
for h in h1 h2; do
  for t in ibstat ibstatus ibnetdiscover iblinkinfo ibhosts ibswitches ibqueryerrors sminfo nr pr perfquery perfquery-x \
    perfquery-a perfquery-R lfts mfts ibaddr ids; do
    is "$t on $h" "$(rc $h.$t)" 0
  done
  is "$h: both ports are active in ibstat" "$(grep -c 'State: Active' "$tmp/$h.ibstat")" 2
  is "$h: ibnetdiscover finds 1 switch and 4 HCAs" "$(grep -cE '^(Switch|Ca)' "$tmp/$h.ibnetdiscover")" 5
  is "$h: saquery has 5 node records" "$(grep -c NodeRecord "$tmp/$h.nr")" 5
  is "$h: saquery has all 25 pairs" "$(grep -c PathRecord "$tmp/$h.pr")" 25
  like "$h: the subnet manager is master" 'SMINFO_MASTER' "$tmp/$h.sminfo"
  is "$h: 4 links at 4X SDR are up" "$(grep -c '4X *2.5 Gbps Active/  LinkUp' "$tmp/$h.iblinkinfo")" 8
done
is "the shell reads sysfs" "$(cat "$tmp/sysfs")" $'4: ACTIVE\n4: ACTIVE\nmlx5_0\nmlx5_1'
is "the shell sees device files" "$(tail -n 1 "$tmp/devices")" "character special file"
for t in ni nd si pi pkeys gi route trace; do is "smpquery and routes: $t" "$(rc $t)" 0; done
is "NodeInfo: type" "$(column NodeType ni)" Switch
is "NodeInfo: ports" "$(column NumPorts ni)" 8
is "NodeDescription" "$(column 'Node Description' nd)" leaf1
is "PortInfo: link state" "$(column LinkState pi)" Active
is "PortInfo: MTU" "$(column NeighborMTU pi)" 2048
like "P_Key table" '0: 0xffff' "$tmp/pkeys"
like "GUIDInfo" '0: 0x0002c9000000200?1' "$tmp/gi"
like "requests that nobody answers fail at once" '^real.*0m0\.' "$tmp/refused"
like "ibping reaches another host" '3 packets transmitted, 3 received, 0% packet loss' "$tmp/ibping"
is "sminfo works after a dozen tools were killed" "$(rc after-kill)" 0

# ---- quality of service --------------------------------------------------------------------------------------------

qos() {
  local port
  on h1 swlid bash -c "ibswitches | sed -n 's/.* lid \([0-9]*\) .*/\1/p'"
  for port in 1 2 3 4; do
    on h2 sl2vl.$port smpquery SL2VL "$(cat "$tmp/swlid")" $port
    on h2 vlarb.$port smpquery VLArb "$(cat "$tmp/swlid")" $port
    on h2 qospi.$port smpquery PI "$(cat "$tmp/swlid")" $port
  done
  on h1 sl2vl.ca smpquery SL2VL -D 0
  on h1 vlarb.ca smpquery VLArb -D 0
  on h1 qospi.ca smpquery PI -D 0
  # a change by SIGHUP
  sed -i 's/^qos_high_limit .*/qos_high_limit 3/; s/^qos_sl2vl .*/qos_sl2vl 3,2,1,0,3,2,1,0,3,2,1,0,3,2,1,0/' \
    "$SIMFAB_DIR/opensm/opensm.conf"
  kill -HUP "$(simfab opensm pid)"
  wait_for 10 bash -c "simfab exec h2 -- smpquery PI -D 0 | grep -q 'VLHighLimit:\.*3$'"
  wait_for 10 bash -c "simfab exec h2 -- smpquery SL2VL -D 0 | grep -q 'out  0: | 3| 2| 1| 0|'"
  on h2 sl2vl.new smpquery SL2VL "$(cat "$tmp/swlid")" 4
  on h2 qospi.new smpquery PI "$(cat "$tmp/swlid")" 4
}
fabric two-hosts-two-rails qos --opensm-option "qos TRUE" --opensm-option "qos_high_limit 7" \
  --opensm-option "qos_vlarb_high 0:4,1:64,2:10" --opensm-option "qos_vlarb_low 0:1,1:2,2:3,3:255" \
  --opensm-option "qos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,15"
weights() { # High|Low FILE: the first four
  awk -v table="$1 priority" 'index($0, table) {here = 1} here && /^WEIGHT/ {print substr($0, 9, 20); exit}' "$2"
}
for port in 1 2 3 4 ca; do
  is "high limit of port $port" "$(column VLHighLimit qospi.$port)" 7
  is "high table of port $port" "$(weights High "$tmp/vlarb.$port")" "|0x4 |0x40|0xA |0x0 "
  is "low table of port $port" "$(weights Low "$tmp/vlarb.$port")" "|0x1 |0x2 |0x3 |0xFF"
  # of a switch: from every input
  is "SL to VL of port $port" "$(grep 'in  ' "$tmp/sl2vl.$port" | sed 's/.*out[^|]*//' | sort -u)" \
    "| 0| 1| 2| 3| 0| 1| 2| 3| 0| 1| 2| 3| 0| 1| 2|15|"
done
is "SIGHUP changes the high limit" "$(column VLHighLimit qospi.new)" 3
is "SIGHUP changes SL to VL" "$(grep 'in  ' "$tmp/sl2vl.new" | sed 's/.*out[^|]*//' | sort -u)" \
  "| 3| 2| 1| 0| 3| 2| 1| 0| 3| 2| 1| 0| 3| 2| 1| 0|"

# ---- LMC -----------------------------------------------------------------------------------------------------------

lmc() {
  local h
  for h in h1 h2; do
    on $h lmc.$h cat /sys/class/infiniband/mlx5_0/ports/1/lid_mask_count
    on $h lid.$h cat /sys/class/infiniband/mlx5_0/ports/1/lid
  done
  on h1 lft ibroute -n -D 0,1
  # a second value while the fabric runs
  echo "lmc 2" >>"$SIMFAB_DIR/opensm/opensm.conf"
  simfab opensm restart
  on h1 lmc.restart cat /sys/class/infiniband/mlx5_0/ports/1/lid_mask_count
}
exits() { # the exit ports of leaf1 for the LIDs of h2, in order
  local lid=$(($(cat "$tmp/lid.h2")))
  awk -v first=$lid -v n=$((1 << $1)) 'BEGIN {for (i = 0; i < n; i++) want[sprintf("0x%04x", first + i)] = 1}
    tolower($1) in want {printf "%s%d", s, $2; s = ","}' "$tmp/lft"
}
for n in 0 1 2; do
  fabric two-switches-two-paths lmc --opensm-option "lmc $n"
  is "LMC $n on both hosts" "$(cat "$tmp/lmc.h1" "$tmp/lmc.h2" | tr -d '\n')" "$n$n"
  is "LMC $n: LIDs are aligned" "$(($(cat "$tmp/lid.h1") % (1 << n))),$(($(cat "$tmp/lid.h2") % (1 << n)))" "0,0"
  case $n in
    0) like "LMC 0: one cable" '^[35]$' <(exits 0) ;;
    1) like "LMC 1: the LIDs take different cables" '^(3,5|5,3)$' <(exits 1) ;;
    2) like "LMC 2: the LIDs take different cables" '^(3,5,3,5|5,3,5,3)$' <(exits 2) ;;
  esac
  is "LMC 2 after a restart" "$(cat "$tmp/lmc.restart")" 2
done

# ---- links go down and up -------------------------------------------------------------------------------------------

links() {
  on h1 before ibroute -n -D 0,1
  simfab exec h1 -- ibportstate -D 0,1 3 disable >/dev/null
  wait_for 10 bash -c "! simfab exec h1 -- ibroute -n -D 0,1 | grep -qE '^0x.* 003'"
  on h1 down ibroute -n -D 0,1
  on h1 down.state ibportstate -D 0,1 3 query
  simfab exec h1 -- ibportstate -D 0,1 3 enable >/dev/null
  wait_for 10 bash -c "simfab exec h1 -- ibportstate -D 0,1 3 query | grep -q 'LinkState:\.*Active'"
  wait_for 10 bash -c "simfab exec h1 -- ibroute -n -D 0,1 | grep -qE '^0x.* 003'"
  on h1 up ibroute -n -D 0,1
  on h1 up.state ibportstate -D 0,1 3 query
  grep -c 'num:128' "$SIMFAB_DIR/opensm/opensm.log" >"$tmp/traps"
  return 0
}
fabric two-switches-two-paths links
like "port 3 is used at first" '^0x.* 003' "$tmp/before"
not_ok "a disabled port is routed around" grep -E '^0x.* 003' "$tmp/down"
like "it says Disabled" 'PhysLinkState:\.*Disabled' "$tmp/down.state"
like "it is used again when enabled" '^0x.* 003' "$tmp/up"
is "both ends are active again" "$(grep -c 'LinkState:\.*Active' "$tmp/up.state")" 2
ok "opensm heard of it by traps" test "$(cat "$tmp/traps")" -ge 2

# ---- two subnet managers --------------------------------------------------------------------------------------------

managers() {
  local dir=$tmp/sm2 pid
  mkdir "$dir"
  printf 'force_log_flush TRUE\nsm_priority 9\nsminfo_polling_timeout 300\npolling_retry_number 2\n' >"$dir/conf"
  OSM_CACHE_DIR=$dir OSM_TMP_DIR=$dir SIMFAB_CLOCK=real simfab exec h2 -- opensm -F "$dir/conf" -f "$dir/log" \
    >"$dir/out" 2>&1 &
  pid=$!
  wait_for 15 bash -c "simfab exec h1 -- sminfo | grep -q 'priority 9 state 3'"
  on h1 handover sminfo
  OSM_CACHE_DIR=$dir OSM_TMP_DIR=$dir SIMFAB_CLOCK=real timeout 10 simfab exec h2 -- opensm -F "$dir/conf" -f "$dir/log2" \
    >"$dir/out2" 2>&1
  on h1 lids.before saquery NR
  kill -9 $pid
  wait $pid 2>/dev/null
  wait_for 20 bash -c "simfab exec h1 -- sminfo 2>/dev/null | grep -q 'priority 8 state 3'"
  on h1 takeover sminfo
  on h2 takeover.h2 sminfo
  on h1 lids.after saquery NR
}
fabric two-switches-two-paths managers --opensm-option "sminfo_polling_timeout 300" --opensm-option "polling_retry_number 2"
like "the manager with the higher priority takes over" 'priority 9 state 3 SMINFO_MASTER' "$tmp/handover"
like "a second manager on one port is refused" 'ERR 5426' "$tmp/sm2/log2"
like "the first one takes over when it is killed" 'priority 8 state 3 SMINFO_MASTER' "$tmp/takeover"
is "both hosts know it" "$(cut -d, -f1 "$tmp/takeover")" "$(cut -d, -f1 "$tmp/takeover.h2")"
ok "LIDs are kept" cmp "$tmp/lids.before" "$tmp/lids.after"

done_testing
