#!/usr/bin/env bash
# What the shipped models give, beside the figures that they are calibrated to: perftest and ibv_rc_pingpong between two
# hosts, and our own streams over one rail and two. All figures of ours are simulated (virtual time).
set -u
cd "$(dirname "$0")/.." || exit 2

row() { # NAME HERE REFERENCE
  awk -v name="$1" -v got="$2" -v ref="$3" 'BEGIN {printf "%-52s %10s %10s %8s\n", name, got, ref, ref == "-" || got == "-" ? "" : sprintf("%.3f", got / ref)}'
}

if [ -z "${SIMFAB_DIR:-}" ]; then
  net=$(mktemp --suffix=.net)
  trap 'rm -f "$net"' EXIT
  { # four HCAs of one host, for two hosts with two each
    printf 'Switch 8 "S1" # "leaf1"\n'
    for i in 1 2 3 4; do printf '[%d] "H%d"[1]\n' $i $i; done
    for i in 1 2 3 4; do printf '\nCa 1 "H%d" # "h1 mlx5_%d"\n[1] "S1"[%d]\n' $i $((i - 1)) $i; done
  } >"$net"
  for model in sdr-pcix ddr-connectx hdr; do
    printf '%-52s %10s %10s %8s\n' "simulated, $model" here reference ratio
    simfab run --topology two-hosts-two-rails --model $model -- bash bench/models.sh $model tools
    simfab run --topology "$net" --model $model -- bash bench/models.sh $model streams
  done
  exit
fi

. tests/tap.sh # $tmp, listening
pair() { # PROGRAM ARGS: the client's output in $tmp/client
  local port server
  port=$(free_port)
  timeout 60 simfab exec h1 -- "$@" -p $port >"$tmp/server" 2>&1 &
  server=$!
  for _ in $(seq 1000); do listening $port && break; sleep 0.01; done
  timeout 60 simfab exec h2 -- "$@" -p $port h1 >"$tmp/client" 2>&1 || echo "$* failed" >&2
  wait $server
}
perf() { # COLUMN FACTOR PROGRAM ARGS: a figure of perftest's last line
  local column=$1 factor=$2
  shift 2
  [ -n "$how" ] || { printf -- -; return; }
  pair "$@"
  awk -v c="$column" -v f="$factor" '$1 ~ /^[0-9]+$/ && NF > 3 {v = $c} END {printf((f > 1 ? "%.0f" : "%.2f"), v * f)}' "$tmp/client"
}
how=$(counter) || { echo "no figures of perftest: $how"; how=; } # it reads the time stamp counter
latency() { perf 6 1 "$@" -n 500; }
bandwidth() { perf 4 1.048576 "$@" -n 500 -s 1048576; } # perftest's MB are 2^20 bytes
rate() { perf 5 1 "$@" -n 5000 -s 8; }                  # million messages a second
pingpong() { # BYTES ITERATIONS: microseconds per round trip
  pair ibv_rc_pingpong -s "$1" -n "$2"
  sed -n 's/.*= \([0-9.]*\) usec\/iter/\1/p' "$tmp/client"
}
stream() { # RAILS uni|both: MB/s
  simfab exec h1 -- "$BUILD/tests/simfab/test_host_rates" stream "$1" "$2" 64 | awk '/in all/ {print $1}'
}
connections() { # N rc|ud: messages per second
  simfab exec h1 -- "$BUILD/tests/simfab/test_host_rates" connections "$1" "$2" 2048 8 | awk '{print $1}'
}

tools_sdr_pcix() {
  row "ibv_rc_pingpong 4 B, one way, us" "$(pingpong 4 1000 | awk '{printf "%.2f", $1 / 2}')" 5.9
  row "ibv_rc_pingpong 1 MiB, MB/s" "$(pingpong 1048576 30 | awk '{printf "%.0f", 2 * 1048576 / $1}')" 870
  row "ib_send_lat 4 B inline, us" "$(latency ib_send_lat -s 4)" -
  row "ib_read_lat 4 B, us" "$(latency ib_read_lat -s 4)" -
  row "ib_write_bw, MB/s" "$(bandwidth ib_write_bw)" 884
  row "ib_write_bw both ways, MB/s" "$(bandwidth ib_write_bw -b)" 943
}
streams_sdr_pcix() {
  row "two HCAs, writes, MB/s" "$(stream 2 uni)" 1723
  row "two HCAs, writes both ways, MB/s" "$(stream 2 both)" 1877
}
tools_ddr_connectx() {
  row "ib_write_lat 4 B inline, us" "$(latency ib_write_lat -s 4)" 1.3
  row "ib_send_lat 4 B inline, us" "$(latency ib_send_lat -s 4)" 1.5
  row "ib_send_lat 4 B inline, UC, us" "$(latency ib_send_lat -c UC -s 4)" 1.5
  row "ib_send_lat 4 B inline, UD, us" "$(latency ib_send_lat -c UD -s 4)" 1.5
  row "ib_read_lat 4 B, us" "$(latency ib_read_lat -s 4)" -
  row "ib_write_bw, MB/s" "$(bandwidth ib_write_bw)" 1500
  row "ib_write_bw both ways, MB/s" "$(bandwidth ib_write_bw -b)" 2700
  local rc uc
  rc=$(rate ib_send_bw) uc=$(rate ib_send_bw -c UC)
  row "ib_send_bw 8 B, million messages/s" "$rc" -
  row "UC : RC of it" "$(awk -v a="$uc" -v b="$rc" 'BEGIN {if (b > 0) printf "%.3f", a / b; else printf "-"}')" 1.1
}
streams_ddr_connectx() {
  local n
  for n in 1 16 64 128 160 256 512; do row "8 B over $n RC connections, messages/s" "$(connections $n rc)" -; done
  row "8 B to 512 peers over UD, messages/s" "$(connections 512 ud)" -
}
tools_hdr() {
  row "ib_write_lat 4 B inline, us" "$(latency ib_write_lat -s 4)" 0.9
  row "ib_send_lat 4 B inline, us" "$(latency ib_send_lat -s 4)" 1.0
  row "ib_read_lat 4 B, us" "$(latency ib_read_lat -s 4)" 1.8
  row "ib_atomic_lat, us" "$(latency ib_atomic_lat)" 1.8
  row "ib_write_bw, MB/s" "$(bandwidth ib_write_bw)" 24600
  row "ib_write_bw both ways, MB/s" "$(bandwidth ib_write_bw -b)" 49000
  row "ib_write_bw 8 B, million messages/s" "$(rate ib_write_bw)" -
}
streams_hdr() {
  row "8 B over 512 RC connections, messages/s" "$(connections 512 rc)" -
}
"$2_${1//-/_}"
