#!/usr/bin/env bash
# Unmodified programs of others on two simulated hosts: their output beside the sum of the model's keys, and the clock
# that each reads; if simfab cannot catch the time stamp counter, no figures of programs that read the counter. Then
# mrmpi, Open MPI and MPICH on one rail and several, equal and not (peers_mpi.inc). All figures are simulated. MODELS
# names the timing models (default: sdr-pcix and hdr), CASES those of peers_mpi.inc, PARTS the parts to run: raw, mpi
# (both), COPY the copy rate of a processor, in MB/s (peers_mpi.inc).
set -u
cd "$(dirname "$0")/.." || exit 2
. tests/tap.sh
. tests/simfab/peers.inc
. bench/peers_mpi.inc
on_exit fabric_end
export UCX_LOG_LEVEL=error MPIR_CVAR_NOLOCAL=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# NAME WHAT BYTES UNIT VALUE KIND CLOCK [INLINE]
row() {
  local low high
  read -r low high < <(arith "$6" "$3" "${8:-220}")
  awk -v n="$1" -v w="$2" -v b="$3" -v u="$4" -v v="$5" -v lo="$low" -v hi="$high" -v c="$7" 'BEGIN {
    if (v == "") v = "failed"; else if (v != "no clock") v = sprintf(v < 100 ? "%.2f" : "%.0f", v)
    printf "%-18s %-14s %8s %10s %-6s %-18s %s\n", n, w, b, v, u, sprintf(hi < 100 ? "%.2f - %.2f" : "%.0f - %.0f", lo, hi), c }'
}
perftest() { # KIND BYTES WHAT CMD...: WHAT begins with the transport
  local kind=$1 bytes=$2 transport=${3%% *} what=$3 unit=us value=
  shift 3
  [ -n "$how" ] || value="no clock"
  if [ -n "$how" ] && PAIR_SECONDS=120 pair "$@" -c "$transport" >/dev/null; then
    value=$(awk -v k="$kind" '$1 ~ /^[0-9]+$/ && NF > 3 {v = k == "rate" || k == "both" ? $4 * 1.048576 : k == "atomics" ? $5 : $6} END {print v}' "$tmp/client")
  fi
  case $kind in rate | both) unit=MB/s ;; atomics) unit=M/s ;; esac
  row "$1" "$what" "$bytes" $unit "$value" "$kind" "rdtsc (${how:-not caught})"
}
pingpong() { # TRANSPORT
  pair ibv_$1_pingpong -s 4 -n 500 >/dev/null
  row ibv_$1_pingpong "${1^^}" 4 us "$(awk '/usec\/iter/ {print $(NF - 1) / 2}' "$tmp/client")" latency gettimeofday 0
}
ucx() { # KIND BYTES TRANSPORT TEST; of datagrams the median: UCX's second thread may cost some of them its timer of 100 ms
  UCX_TLS=${3,,}_v,self UCX_NET_DEVICES=mlx5_0:1 pair ucx_perftest -t "$4" -s "$2" -n 300 -w 10 >/dev/null
  if [ "$1" = rate ]; then
    row "ucx_perftest" "$3 $4" "$2" MB/s "$(awk '/^Final:/ {v = $7 * 1.048576} END {print v}' "$tmp/client")" rate gettimeofday
  else
    row "ucx_perftest" "$3 $4" "$2" us "$(awk -v t="$3" '/^Final:/ {v = t == "UD" ? $3 : $5} END {print v}' "$tmp/client")" "$1" "gettimeofday$([ "$3" = UD ] && echo ', +-0.5 us')"
  fi
}

raw() { # MODEL
  fabric "$1" || return 1
  how=$(counter) || { echo "$how"; how=; }
  printf '%-18s %-14s %8s %10s %-6s %-18s %s\n' "simulated, $1" "" bytes here "" "arithmetic" "reads"
  for t in RC UC UD; do perftest latency 4 $t ib_send_lat -n 300 -s 4; done
  for t in RC UC; do perftest write 4 $t ib_write_lat -n 100 -s 4; done
  perftest read 4 RC ib_read_lat -n 300 -s 4
  perftest atomic 8 "RC fetch-add" ib_atomic_lat -n 300 -A FETCH_AND_ADD
  perftest atomic 8 "RC cmp-swap" ib_atomic_lat -n 300 -A CMP_AND_SWAP
  for t in RC UC; do perftest rate 65536 $t ib_send_bw -n 300; done
  perftest rate 2048 UD ib_send_bw -n 500 -s 2048
  for t in RC UC; do perftest rate 1048576 $t ib_write_bw -n 50 -s 1048576; done
  perftest both 1048576 "RC both ways" ib_write_bw -n 50 -s 1048576 -b
  perftest rate 1048576 RC ib_read_bw -n 50 -s 1048576
  perftest atomics 8 RC ib_atomic_bw -n 500
  for t in rc uc ud; do pingpong $t; done
  ucx latency 8 RC tag_lat
  ucx latency 8 RC ucp_am_lat
  ucx rate 1048576 RC tag_bw
  ucx latency 8 UD tag_lat
  fabric_end
}

parts=" ${PARTS:-raw mpi} "
[[ $parts != *" mpi "* ]] || mpi_programs || exit 1
for m in ${MODELS:-sdr-pcix hdr}; do
  [[ $parts != *" raw "* ]] || raw "$m" || exit 1
  [[ $parts == *" mpi "* ]] || continue
  printf '\nmrmpi, Open MPI and MPICH: us of half a round trip, MB/s one way, MB/s both ways together; < where a peer is ahead\n'
  for c in ${CASES:-${mpi_cases[@]}}; do
    [ "$m $c" = "sdr-pcix four" ] || mpi_table $c "$m" || exit 1 # its hosts have two adapters
  done
done
