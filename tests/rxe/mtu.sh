#!/usr/bin/env bash
# The path MTU is the lower one of both ends': a wire drops packets that are longer than its other end takes. Each rail has its own.
# timeout: 300
if [ "${1:-}" != inside ]; then
  . "$(dirname "$0")/lab.sh"
  lab_tap 280 'mtu 250: bash tests/rxe/mtu.sh inside'
fi
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/rails.sh"
. "$(dirname "$0")/wires.sh"
export MRMPI_LOG_LEVEL=1

packets() { cat "/sys/class/net/$1/statistics/tx_packets"; }
active() { ibv_devinfo -d "$1" | sed -n 's/.*active_mtu:[[:space:]]*\([0-9]*\).*/\1/p'; }
# job RAILS: large messages both ways; mean[INTERFACE] is the length of a packet that it sent, header and all
job() {
  local i before=() after=()
  declare -gA mean
  for i in a0 b0 a1 b1; do before+=("$(packets $i)"); done
  wires_of timeout 60 mrrun -n 2 --hosts "$(hosts "$1")" NPmpich2 -o "$tmp/np" -l 262144 -u 1048576 -p 0 -n 3 || return
  for i in a0 b0 a1 b1; do after+=("$(packets $i)"); done
  for i in 0 1 2 3; do mean[${wires[i]}]=$((after[i] > before[i] ? sent[${wires[i]}] / (after[i] - before[i]) : 0)); done
  echo "# bytes per packet:$(for i in a0 b0 a1 b1; do echo -n " $i ${mean[$i]}"; done)"
}
long_packets() { ok "$1: packets of $2 are longer than 2048 bytes (${mean[$2]})" test "${mean[$2]}" -gt 2048; }
short_packets() { ok "$1: packets of $2 hold up to 1024 bytes (${mean[$2]})" test "${mean[$2]}" -gt 512 -a "${mean[$2]}" -le 1110; }

is "ports take the MTU of their interface" "$(active rxa0) $(active rxb0)" "4096 4096"
ok "a job" job 1
long_packets "both ends take 4096 bytes" a0
long_packets "both ends take 4096 bytes" b0
for low in a0 b0; do
  ip link set $low mtu 1500
  is "$low takes no more than 1024" "$(active "rx$low")" 1024
  ok "a job where only $low takes less" job 1
  short_packets "$low takes 1024" a0
  short_packets "$low takes 1024" b0
  ip link set $low mtu 4200
done
ip link set a0 mtu 1500
ok "a job over two rails, of which one takes less" job 2
short_packets "rail 0 takes 1024" b0
long_packets "rail 1 takes 4096" b1
done_testing
