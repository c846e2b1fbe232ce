#!/usr/bin/env bash
# The costs of hosts: single messages are the sum of the model's keys to the picosecond; rates are those of the buses;
# connections beyond an adapter's cache cost their fetch; and the calibrated models give the published figures.
. "$(dirname "$0")/../tap.sh"
here=$(cd "$(dirname "$0")/../.." && pwd)
models=$here/etc/models

command -v opensm >/dev/null || skip_all "opensm is not installed"

# Four HCAs of one host, for two hosts with two each.
{
  printf 'Switch 8 "S1" # "leaf1"\n'
  for i in 1 2 3 4; do printf '[%d] "H%d"[1]\n' $i $i; done
  for i in 1 2 3 4; do printf '\nCa 1 "H%d" # "h1 mlx5_%d"\n[1] "S1"[%d]\n' $i $((i - 1)) $i; done
} >"$tmp/four.net"
# model NAME [KEY: VALUE]...: the model with these keys of hca instead
model() {
  local file=$tmp/model.yaml key
  cp "$models/$1.yaml" "$file"
  shift
  for key; do
    sed -i "/^  ${key%%:*}:/d; s/^hca:\$/hca:\n  $key/" "$file"
  done
  echo "$file"
}
on_four() { # MODEL CMD...: on the host
  local model=$1
  shift
  timeout 60 simfab run --topology "$tmp/four.net" --model "$model" -- bash -c "$*"
}
rates="simfab exec h1 -- $BUILD/tests/simfab/test_host_rates"
near() { # GOT WANTED PERCENT
  awk -v g="$1" -v w="$2" -v p="$3" 'BEGIN {exit !(g + 0 > w * (1 - p / 100) && g + 0 < w * (1 + p / 100))}' ||
    { echo "got $1, wanted $2 within $3 %"; return 1; }
}
# LINE, column 1 of which is the figure, of file $tmp/out: the n-th line that ends in TEXT
rate() { awk -v t="$1" -v n="${2:-1}" 'index($0, t) && !--n {print $1; exit}' "$tmp/out"; }

for m in sdr-pcix ddr-connectx hdr; do
  on_four "$models/$m.yaml" simfab exec h1 -- "$BUILD/tests/simfab/test_host_costs" "$models/$m.yaml" >"$tmp/$m" 2>&1
  is "$m: messages measured" "$(grep -c '^[0-9]' "$tmp/$m")" 29
  is "$m: each is the sum of its costs, to the picosecond" "$(awk '$1 != $2' "$tmp/$m")" ""
done
# picoseconds of what is called TEXT in the output for MODEL
cost() { awk -v t="$2" 'index($0, t) {print $1; exit}' "$tmp/$1"; }
ok "ddr-connectx: a few bytes take 1.5 us" near "$(cost ddr-connectx 'RC send of 4 bytes inline')" 1500000 5
ok "ddr-connectx: over UD as well" near "$(cost ddr-connectx 'UD send of 0 bytes')" "$(cost ddr-connectx 'RC send of 0 bytes')" 1
ok "hdr: a few bytes take 1 us" near "$(cost hdr 'RC send of 4 bytes inline')" 1000000 5
ok "hdr: a read takes 1.8 us" near "$(cost hdr 'RDMA read of 4 bytes')" 1800000 5

# What ibv_rc_pingpong measured on the papers' cluster.
on_four "$models/sdr-pcix.yaml" "$(printf '%s\n' \
  'pingpong() { # BYTES ITERATIONS' \
  '  p=$(free_port)' \
  '  simfab exec h1 -- ibv_rc_pingpong -d mlx5_0 -p $p -s $1 -n $2 >/dev/null & s=$!' \
  '  for i in $(seq 200); do' \
  '    simfab exec h1 -- ibv_rc_pingpong -d mlx5_1 -p $p -s $1 -n $2 h1 2>/dev/null && break; sleep 0.05' \
  '  done; wait $s' \
  '}' 'pingpong 4 1000; pingpong 1048576 30')" >"$tmp/out" 2>&1
round_trip() { sed -n 's/.*= \([0-9.]*\) usec\/iter/\1/p' "$tmp/out" | sed -n "$1p"; }
ok "sdr-pcix: a few bytes take 5.9 us" near "$(awk -v u="$(round_trip 1)" 'BEGIN {print u / 2}')" 5.9 1
ok "sdr-pcix: 1 MiB at 870 MB/s" near "$(awk -v u="$(round_trip 2)" 'BEGIN {print u ? 2 * 1048576 / u : 0}')" 870 1

# The papers' figures: one rail and two, one way and both, buses of their own.
on_four "$models/sdr-pcix.yaml" "for r in 1 2; do $rates stream \$r uni 16; $rates stream \$r both 16; done" >"$tmp/out" 2>&1
ok "sdr-pcix: one rail 884 MB/s one way" near "$(rate 'in all' 1)" 884 5
ok "sdr-pcix: one rail 943 MB/s both ways" near "$(rate 'in all' 2)" 943 5
ok "sdr-pcix: two rails 1723 MB/s one way" near "$(rate 'in all' 3)" 1723 5
ok "sdr-pcix: two rails 1877 MB/s both ways" near "$(rate 'in all' 4)" 1877 5

on_four "$(model sdr-pcix 'per_bus: 2')" "$rates stream 2 uni 16; $rates stream 2 both 16" >"$tmp/out" 2>&1
ok "two adapters on one bus: what the bus gives, one way" near "$(rate 'in all' 1)" 943 5
ok "both ways too" near "$(rate 'in all' 2)" 943 5
ok "and each has half of it" near "$(rate 'rail 0' 2)" "$(rate 'rail 1' 2)" 1

file=$(model sdr-pcix)
printf 'ports:\n- {node: "h1 mlx5_1", width: 1}\n- {node: "h1 mlx5_3", width: 1}\n' >>"$file"
on_four "$file" "$rates stream 2 uni 64,16; $rates stream 2 both 64,32" >"$tmp/out" 2>&1
ok "a 1X rail beside the 4X one: 246 MB/s" near "$(rate 'rail 1' 1)" 246.4 1
ok "both ways the bus makes the 4X rail a 4X one" near "$(rate 'rail 0' 2)" 943 5
ok "and the 1X rail has 2X" near "$(rate 'rail 1' 2)" 492.8 1

for m in ddr-connectx hdr; do
  on_four "$models/$m.yaml" "$rates stream 1 uni 64; $rates stream 1 both 64; $rates reads 100 5" >"$tmp/$m" 2>&1
done
one() { awk '/in all/ {print $1}' "$tmp/$1" | sed -n "$2p"; }
ok "ddr-connectx: 1500 MB/s one way" near "$(one ddr-connectx 1)" 1500 5
ok "ddr-connectx: 2700 MB/s both ways" near "$(one ddr-connectx 2)" 2700 5
ok "hdr: 24.6 GB/s one way" near "$(one hdr 1)" 24600 5
ok "hdr: 49 GB/s both ways" near "$(one hdr 2)" 49000 5
for m in ddr-connectx hdr; do
  ok "$m: reads both ways over one connection are as fast, though one side begins later" near "$(one $m 3)" "$(one $m 2)" 2
done
on_four "$(model hdr 'answers_first: true')" "$rates reads 100 5" >"$tmp/answers" 2>&1
ok "but not with adapters that answer first" near "$(one answers 1)" "$(one hdr 1)" 2

file=$(model sdr-pcix)
printf 'host:\n  memory_mbytes_per_s: 1500\n' >>"$file"
on_four "$file" "$rates stream 1 both 16; $rates stream 2 both 16" >"$tmp/out" 2>&1
ok "the memory of the host is what all buses share" near "$(rate 'in all' 2)" 750 1

# Many connections: 128 contexts are held; beyond that every message meets two misses, one at each end.
on_four "$models/ddr-connectx.yaml" "for n in 1 64 128; do $rates connections \$n rc 2048 8; done
  simfab status --counters h1 >$tmp/before
  $rates connections 256 rc 2048 8
  simfab status --counters h1 >$tmp/after
  $rates connections 256 ud 2048 8" >"$tmp/out" 2>&1
misses() { # ADAPTER FILE: "HITS MISSES"
  awk -v a="$1" '$2 == a && $3 == "contexts" {print $5, $7}' "$2"
}
grown() { paste <(misses "$1" "$tmp/before") <(misses "$1" "$tmp/after") | awk '{print $3 - $1, $4 - $2}'; }
few=$(rate '1 RC connections')
ok "64 connections are as fast as one" near "$(rate 'over 64 RC')" "$few" 1
ok "128 too" near "$(rate 'over 128 RC')" "$few" 1
ok "256: each message waits for a context as well" near "$(rate 'over 256 RC')" "$(awk -v r="$few" 'BEGIN {print 1 / (1 / r + 700e-9)}')" 3
ok "datagrams to 256 are as fast as to one, and faster than connections" near "$(rate 'over 256 UD')" "$(awk -v r="$few" 'BEGIN {print 1.09 * r}')" 3
is "the sender missed every request's context, and held each until its acknowledge came" "$(grown mlx5_0)" "2304 2304"
is "the receiver missed every one" "$(grown mlx5_1)" "0 2304"

# Limits of an adapter, and what it says of itself.
on_four "$(model ddr-connectx 'max_qp: 10')" "simfab exec h1 -- ibv_devinfo -v -d mlx5_0; $rates connections 10 rc 10 8; $rates connections 11 rc 10 8" >"$tmp/out" 2>&1
like "firmware" 'fw_ver:[[:space:]]+2\.5\.0$' "$tmp/out"
like "part" 'vendor_part_id:[[:space:]]+25418$' "$tmp/out"
like "queue pairs" 'max_qp:[[:space:]]+10$' "$tmp/out"
like "ten can be had" 'over 10 RC connections' "$tmp/out"
like "and not eleven" '^ibv_create_qp failed' "$tmp/out"
done_testing
