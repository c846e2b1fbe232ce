#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The ring (MRMPI_LINKS=ring) in its four designs beside MRMPI_LINKS=rc and perftest, between two hosts over one rail, on the models
# sdr-pcix and hdr, beside the figures of J. Liu et al., "Design and Implementation of MPICH2 over InfiniBand with RDMA
# Support", IPDPS 2004, which were taken on adapters as sdr-pcix models them. All figures of ours are simulated.
#   latency    half a round trip (the paper's Figures 4, 6, 13)
#   one way    windows of 8 messages, each answered (Figures 5, 7, 8, 11)
# Copies by the processor take no time on these models, so what the paper's basic and pipelined designs lose by them does
# not show here. RING_PARTS: latency, bandwidth. RING_MODELS: sdr-pcix, hdr.
set -u
: "${BUILD:?set BUILD to the build directory}" "${RING_PARTS:=latency bandwidth}" "${RING_MODELS:=sdr-pcix hdr}"
export RING_PARTS BUILD PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH
cd "$(dirname "$0")/.." || exit 1
sizes="4 64 256 1024 4096 16384 65536"

if [ -z "${RING_PAIR:-}" ]; then
  work=$(mktemp -d) || exit 1
  trap 'rm -rf "$work"' EXIT
  export RING_PAIR=$work/pair
  mrcc -O2 -Wall -o "$RING_PAIR" bench/pair.c || exit 1
  for model in $RING_MODELS; do
    simfab run --topology two-hosts-two-rails --model "$model" -- bash bench/ring.sh "$model" || exit 1
  done
  exit
fi

. tests/tap.sh # $tmp, listening, counter
model=$1
job() { # LINKS DESIGN ARGS...
  MRMPI_LINKS=$1 MRMPI_RING_DESIGN=$2 MRMPI_RING_AFTER=0 MRMPI_EAGER_MAX=$([ "$2" = pipelined ] && echo 16K || echo 8K) \
    MRMPI_RAILS_MAX=1 MRMPI_LOG_LEVEL=0 timeout 300 mrrun -n 2 --hosts h1=mlx5_0,h2=mlx5_0 "$RING_PAIR" "${@:3}" 2>"$tmp/err" </dev/null ||
    echo "($1 $2: $(head -n 1 "$tmp/err"))" >&2
}
perf() { # COLUMN PROGRAM ARGS...: column of the client's last line, of perftest
  local column=$1 port server
  shift
  [ -n "$how" ] || { printf -- -; return; }
  port=$(free_port)
  timeout 60 simfab exec h1 -- "$@" -p $port >"$tmp/server" 2>&1 &
  server=$!
  for _ in $(seq 1000); do listening $port && break; sleep 0.01; done
  timeout 60 simfab exec h2 -- "$@" -p $port h1 >"$tmp/client" 2>&1 || echo "$* failed" >&2
  wait $server
  awk -v c="$column" '$1 ~ /^[0-9]+$/ && NF > 3 {v = $c} END {printf "%.3f", v}' "$tmp/client"
}
how=$(counter) || { echo "no figures of perftest: $how"; how=; } # it reads the time stamp counter

row() { printf '%-22s %10s %10s %10s %10s %10s %10s %10s %s\n' "$@"; }
# KIND SUFFIX: a line of figures of a job for each size
figures() { # KIND LINKS DESIGN COUNT
  local b what=()
  for b in $sizes; do what+=("$1:$b:$4"); done
  job "$2" "$3" "${what[@]}" >"$tmp/job"
  for b in $sizes; do awk -v k="$1" -v b="$b" '$1 == k && $2 == b {v = $3} END {printf "%s ", v == "" ? "-" : sprintf(k == "latency" ? "%.2f" : "%.0f", v)}' "$tmp/job"; done
}
paper() { [ "$model" = sdr-pcix ] && echo "$1"; } # only where the adapters are the paper's

latency() {
  local b raw send
  for b in $sizes; do raw+="$(perf 6 ib_write_lat -s "$b" -n 500) "; send+="$(perf 6 ib_send_lat -s "$b" -n 500) "; done
  # shellcheck disable=SC2086  # words
  {
    row "latency, us; bytes" $sizes ""
    row "ib_write_lat" $raw "$(paper 'paper, few bytes: 5.9 raw')"
    row "ib_send_lat" $send ""
    row "rc" $(figures latency rc zerocopy 180) ""
    row "ring, basic" $(figures latency ring basic 180) "$(paper 'paper: 18.6 (raw + 12.7)')"
    row "ring, piggyback" $(figures latency ring piggyback 180) "$(paper 'paper: 7.4 (raw + 1.5)')"
    row "ring, pipelined" $(figures latency ring pipelined 180) ""
    row "ring, zerocopy" $(figures latency ring zerocopy 180) "$(paper 'paper: 7.6 (raw + 1.7)')"
  } | tee "$tmp/latency"
  awk '/^ib_write_lat/ {raw = $2} /^ib_send_lat/ {send = $2} /^rc / {rc = $2} /^ring, zerocopy/ {ring = $3}
    END {if (raw > 0) printf "ring at 4 bytes: raw RDMA write + %.2f us, %.3f of rc, %.3f of ib_send_lat\n", ring - raw, ring / rc, ring / send}' "$tmp/latency"
}
bandwidth() {
  local b raw
  for b in $sizes; do raw+="$(perf 4 ib_write_bw -s "$b" -n 1000 | awk '{printf "%.0f", $1 * 1.048576}') "; done
  # shellcheck disable=SC2086
  {
    row "one way, MB/s; bytes" $sizes ""
    row "ib_write_bw" $raw "$(paper 'paper: 870 raw, at most')"
    row "rc" $(figures rate rc zerocopy 45) ""
    row "ring, basic" $(figures rate ring basic 45) "$(paper 'paper: 230, at most')"
    row "ring, piggyback" $(figures rate ring piggyback 45) ""
    row "ring, pipelined" $(figures rate ring pipelined 45) "$(paper 'paper: more than 500')"
    row "ring, zerocopy" $(figures rate ring zerocopy 45) "$(paper 'paper: 857')"
  }
}
echo "simulated, $model"
for part in $RING_PARTS; do "$part"; done
echo
