#!/usr/bin/env bash
# The papers' cluster (4X SDR, PCI-X, two HCAs a host) on simfab: raw verbs, then NPmpich2 over one rail and two, beside
# what the papers measured. All figures of ours are simulated (virtual time).
set -u
cd "$(dirname "$0")/.." || exit 2
[ -n "${SIMFAB_DIR:-}" ] || exec simfab run --topology two-hosts-two-rails --model "${MODEL:-sdr-pcix}" -- bash bench/rails.sh

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
port=$((10000 + $$ % 20000)) # below those that the kernel gives to clients

pingpong() { # BYTES ITERATIONS: microseconds per round trip
  port=$((port + 1))
  simfab exec h1 -- ibv_rc_pingpong -p $port -s "$1" -n "$2" >"$tmp/server" 2>&1 &
  local server=$!
  for _ in $(seq 100); do
    simfab exec h2 -- ibv_rc_pingpong -p $port -s "$1" -n "$2" localhost >"$tmp/client" 2>&1 && break
    sleep 0.1
  done
  wait $server
  sed -n 's/.*= \([0-9.]*\) usec\/iter/\1/p' "$tmp/client"
}
np() { # RAILS BYTES REPEATS [OPTIONS]: microseconds
  local rails=$1 size=$2 n=$3
  shift 3
  MRMPI_RAILS_MAX=$rails mrrun -n 2 --hosts h1,h2 NPmpich2 -o "$tmp/np.out" -l "$size" -u "$size" -p 0 -n "$n" "$@" >"$tmp/np" 2>&1 || { cat "$tmp/np" >&2; return 1; }
  awk '/-->/ {for (i = 1; i < NF; i++) if ($i == "in") v = $(i + 1)} END {print v}' "$tmp/np"
}
peak() { # RAILS [OPTIONS]: the best MB/s over large sizes
  local rails=$1 best=0 s
  shift
  for s in 262144 1048576 4194304; do
    best=$(awk -v b="$best" -v s=$s -v u="$(np "$rails" $s 10 "$@")" 'BEGIN {x = s / u; if (x < b) x = b; printf "%.0f", x}')
  done
  echo "$best"
}
row() { awk -v name="$1" -v got="$2" -v paper="$3" 'BEGIN {printf "%-52s %10s %10s %8s\n", name, got, paper, paper == "-" ? "" : sprintf("%.3f", got / paper)}'; }

printf '%-52s %10s %10s %8s\n' "simulated, $(simfab status | sed -n 's/^model[: ]*//p' | head -n 1)" here paper ratio
row "raw verbs, RC send 4 B, one way, us" "$(awk -v u="$(pingpong 4 1000)" 'BEGIN {printf "%.2f", u / 2}')" 5.9
row "raw verbs, RC send 1 MiB, MB/s" "$(awk -v u="$(pingpong 1048576 30)" 'BEGIN {printf "%.0f", 2 * 1048576 / u}')" 870
lat=$(np 1 4 500)
row "NPmpich2 4 B, one rail, us" "$lat" 7.6
row "NPmpich2 4 B, two rails, us" "$(np 2 4 500)" -
one=$(np 1 1048576 20)
two=$(np 2 1048576 20)
row "NPmpich2 peak, one rail, ping-pong, MB/s" "$(peak 1)" 857
row "NPmpich2 peak, two rails, ping-pong, MB/s" "$(peak 2)" 1723
row "NPmpich2 peak, one rail, streaming (-s), MB/s" "$(peak 1 -s)" 857
row "NPmpich2 peak, two rails, streaming (-s), MB/s" "$(peak 2 -s)" 1723
row "two rails : one rail at 1 MiB" "$(awk -v a="$one" -v b="$two" 'BEGIN {printf "%.3f", a / b}')" -
