#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mrmpi, Open MPI and MPICH (both over UCX) on the kernel's soft-RoCE, turn by turn in one virtual machine (tests/rxe):
# one rail and two, as fast as they go and limited to 8 and 8, or 8 and 2 MB/s. The same program for all three
# (bench/pair.c); mrmpi and MPICH run the same binary. Medians of $RUNS runs; ratio > 1: mrmpi is better than the better
# peer; ~, from 7 runs on: the middle halves of both's runs overlap. "rail 0" is the part of the bytes that went over it, from the counters of the wires.
# RXE_CASES picks some of the cases, RXE_PAIR what is measured (bench/pair.c).
set -u
cd "$(dirname "$0")/.." || exit 2
: "${BUILD:=$PWD/build}"
: "${RUNS:=3}"
: "${RXE_CASES:=one two 8 8+8 8+2}"
mpis=(mrmpi openmpi mpich)
bin=$BUILD/bench

if [ "${1:-}" != inside ]; then
  mkdir -p "$bin" || exit 1
  for m in mpich openmpi; do
    "mpicc.$m" -O2 -Wall -o "$bin/pair.$m" bench/pair.c || exit 1
  done
  tests/rxe/lab --seconds 3000 "rxe 2900: RUNS=$RUNS RXE_CASES='$RXE_CASES' RXE_PAIR='${RXE_PAIR:-}' bash bench/rxe.sh inside" |
    grep -v '^job rxe: exit 0$'
  rc=${PIPESTATUS[0]}
  [ "$rc" = 77 ] && echo "bench/rxe.sh: skipped" && rc=0 # the laboratory has said what it misses
  exit "$rc"
fi

# ---- inside the machine
. tests/rxe/rails.sh
tmp=$(mktemp -d) || exit 1
wires=(a0 b0 a1 b1)
export MRMPI_LOG_LEVEL=${MRMPI_LOG_LEVEL:-0} OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# The same GIDs for all, since IPv4 takes the kernel longer here. IPv6: UCX 1.13 gives up on datagrams with the others. rc_v
# brings ud_v with it, for connecting.
export UCX_LOG_LEVEL=error UCX_TLS=rc_v,self UCX_IB_GID_INDEX=2 MRMPI_ROCE_GID=2

limit() { # MB_PER_SECOND of rail 0 and of rail 1; 0: none
  rail_limit 0 $(($1 * 1000)) && rail_limit 1 $(($2 * 1000)) || exit 1
}
measure() { # MPI RAILS SPEC...: what pair prints
  local mpi=$1 rails=$2 a=rxa0:1 b=rxb0:1
  shift 2
  [ "$rails" = 1 ] || { a+=,rxa1:1 b+=,rxb1:1; }
  case $mpi in
    mrmpi)
      timeout 200 mrrun -n 2 --hosts "a=${a//,/+},b=${b//,/+}" "$bin/pair.mpich" "$@" ;;
    openmpi)
      timeout 200 mpirun.openmpi --oversubscribe --mca pml ucx --mca btl ^openib --mca osc ^ucx \
        --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any \
        -n 1 -x UCX_NET_DEVICES=$a "$bin/pair.openmpi" "$@" : -n 1 -x UCX_NET_DEVICES=$b "$bin/pair.openmpi" "$@" ;;
    mpich)
      timeout 200 mpiexec.hydra -genv MPIR_CVAR_NOLOCAL 1 \
        -n 1 -env UCX_NET_DEVICES $a "$bin/pair.mpich" "$@" : -n 1 -env UCX_NET_DEVICES $b "$bin/pair.mpich" "$@" ;;
  esac >"$tmp/out" 2>&1 </dev/null
}
count() { local w; for w in "${wires[@]}"; do wire_bytes "$w"; done; }
# One run of one MPI: figures to $tmp/CASE.MPI.KIND.BYTES, rail 0's part of the bytes to $tmp/CASE.MPI.share
once() { # CASE MPI RAILS SPEC...
  local case=$1 mpi=$2 rails=$3 before after kind bytes value
  shift 3
  mapfile -t before < <(count)
  measure "$mpi" "$rails" "$@" || { echo "bench/rxe.sh: $mpi, $case:"; tail -n 20 "$tmp/out"; exit 1; }
  mapfile -t after < <(count)
  while read -r kind bytes value _; do echo "$value" >>"$tmp/$case.$mpi.$kind.$bytes"; done <"$tmp/out"
  local rail0=$((after[0] + after[1] - before[0] - before[1])) rail1=$((after[2] + after[3] - before[2] - before[3]))
  # whoever falls back to TCP goes over the loopback, and the wires see nothing
  [ $((rail0 + rail1)) -gt "$(least "$@")" ] || { echo "bench/rxe.sh: $mpi, $case: only $((rail0 + rail1)) bytes on the wires"; exit 1; }
  [ "$rails" = 2 ] || [ "$rail1" -lt 100000 ] || { echo "bench/rxe.sh: $mpi, $case: $rail1 bytes on rail 1"; exit 1; }
  awk -v a=$rail0 -v b=$rail1 'BEGIN {print 100 * a / (a + b)}' >>"$tmp/$case.$mpi.share"
}
# What the program sends at least, in bytes: a round trip has two messages, a window eight; of more than nine it measures nine equal parts.
least() { printf '%s\n' "$@" | awk -F: '{n += $2 * ($3 < 9 ? $3 : $3 - $3 % 9) * ($1 == "rate" ? 8 : 2)} END {printf "%.0f", n}'; }
# the median, and the ends of the middle half
middle() { sort -n "$1" | awk '{v[NR] = $1} END {q = int((NR + 3) / 4); print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[q], v[NR + 1 - q]}'; }

table() { # CASE RAILS TITLE SPEC...
  local case=$1 rails=$2 title=$3 spec kind bytes m
  shift 3
  printf '\n%-26s %12s %12s %12s %8s\n' "$title" mrmpi "Open MPI" MPICH ratio
  for spec; do
    IFS=: read -r kind bytes _ <<<"$spec"
    for m in "${mpis[@]}"; do middle "$tmp/$case.$m.$kind.$bytes"; done | awk -v k="$kind" -v b="$bytes" -v marks=$marks '
      {v[NR] = $1; low[NR] = $2; high[NR] = $3}
      END {
        rate = k == "rate"
        best = rate == (v[2] > v[3]) ? 2 : 3
        ratio = rate ? v[1] / v[best] : v[best] / v[1]
        printf "%-7s %8d B, %-6s  ", k, b, rate ? "MB/s" : "us"
        for (i = 1; i <= 3; i++) printf " %12s", sprintf(rate ? "%.2f" : "%.1f", v[i])
        printf "%9.2f%s\n", ratio, marks && low[1] <= high[best] && low[best] <= high[1] ? " ~" : ""
      }'
  done
  [ "$rails" = 2 ] || return 0
  for m in "${mpis[@]}"; do middle "$tmp/$case.$m.share"; done |
    awk '{v[NR] = $1} END {printf "%-26s %10.0f %% %10.0f %% %10.0f %%\n", "rail 0", v[1], v[2], v[3]}'
}

echo "An emulated processor, the kernel's own verbs: ratios only. Medians of $RUNS runs; ratio > 1: mrmpi is better."
marks=$((RUNS >= 7)) # the middle half of three runs would be all of them
[ $marks = 0 ] || echo "~: this row alone does not tell, as the middle halves of the runs of mrmpi and of the better peer overlap."
fast="latency:8:200 latency:1024:200 latency:65536:50 latency:1048576:9 rate:65536:18 rate:1048576:4"
slow="latency:8:100 latency:1024:100 latency:65536:18 latency:1048576:4 rate:65536:9 rate:1048576:2"
for case in $RXE_CASES; do
  case $case in
    one) rails=1 title="one rail" specs=${RXE_PAIR:-$fast} && limit 0 0 ;;
    two) rails=2 title="two rails" specs=${RXE_PAIR:-$fast} && limit 0 0 ;;
    8) rails=1 title="one rail of 8 MB/s" specs=${RXE_PAIR:-$slow} && limit 8 8 ;;
    8+8) rails=2 title="rails of 8 and 8 MB/s" specs=${RXE_PAIR:-$slow} && limit 8 8 ;;
    8+2) rails=2 title="rails of 8 and 2 MB/s" specs=${RXE_PAIR:-$slow} && limit 8 2 ;;
    *) echo "bench/rxe.sh: no case $case"; exit 2 ;;
  esac
  for ((i = 0; i < RUNS; i++)); do
    # shellcheck disable=SC2086  # one word for each
    for m in "${mpis[@]}"; do once "$case" "$m" $rails $specs; done
  done
  # shellcheck disable=SC2086
  table "$case" $rails "$title" $specs
done
