#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Collectives (bench/coll.c). Without SIMFAB_DIR: inside this host, the same binary under mrrun and under Debian's MPICH
# (mpiexec.hydra), turn by turn; the least of $RUNS runs, ratio > 1: mrmpi is better. RANKS: how many ("2").
# `coll.sh algorithms`: under simfab, eight hosts (model hdr, simulated time), each algorithm of each collective as
# MRMPI_COLL names it: what the thresholds of libmrmpi/coll/select.c come from. PPN ranks a host ("1").
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=3}" "${RANKS:=2}" "${PPN:=1}"
export PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mpicc.mpich -O2 -Wall -o "$tmp/coll" bench/coll.c || exit 1

# each rank on a core of its own where there are enough: neither library then waits for the scheduler
bind='exec "$@"'
# shellcheck disable=SC2016  # the inner shell expands it
[ "$(nproc)" -ge "$RANKS" ] && bind='exec taskset -c ${PMIX_RANK:-${PMI_RANK:-0}} "$@"'
once() { # mrmpi|mpich COLLECTIVES BYTES...
  local start=(mrrun)
  [ "$1" = mpich ] && start=(mpiexec.hydra)
  timeout 300 "${start[@]}" -n "$RANKS" sh -c "$bind" sh "$tmp/coll" "${@:2}" >>"$tmp/$1" 2>"$tmp/err" ||
    { echo "bench/coll.sh: failed under ${start[0]}:" >&2; tail -n 5 "$tmp/err" >&2; exit 1; }
}
least() { awk '!(($1, $2) in t) { o[++k] = $1 " " $2; t[$1, $2] = $3 } $3 < t[$1, $2] { t[$1, $2] = $3 }
  END { for (i = 1; i <= k; i++) { split(o[i], a); print o[i], t[a[1], a[2]] } }' "$1"; }

beside() {
  local i
  for ((i = 0; i < RUNS; i++)); do
    for who in mrmpi mpich; do
      once $who barrier 0
      once $who bcast,reduce,allreduce,gather,scatter,allgather,allgatherv,alltoall,reduce_scatter 64 4096 65536 1048576
    done
  done
  printf '%-16s %9s %10s %10s %7s   (%s ranks)\n' collective bytes 'mrmpi us' MPICH ratio "$RANKS"
  paste -d' ' <(least "$tmp/mrmpi") <(least "$tmp/mpich") |
    awk '{ printf "%-16s %9d %10.2f %10.2f %7.2f\n", $1, $2, $3, $6, $6 / $3 }'
}

try() { # COLLECTIVE ALGORITHMS BYTES...
  local alg
  for alg in $2; do
    MRMPI_COLL=$1:$alg MRMPI_LOG_LEVEL=0 timeout 300 mrrun -n $((8 * PPN)) --ppn "$PPN" "$BENCH_COLL" "$1" "${@:3}" |
      awk -v a="$alg" '{ printf "%-16s %-18s %9d %10.2f\n", $1, a, $2, $3 }'
  done
}

if [ "${1:-}" != algorithms ]; then
  beside
elif [ -z "${SIMFAB_DIR:-}" ]; then
  BENCH_COLL=$tmp/coll simfab run --topology eight-hosts-two-rails --model hdr -- bash bench/coll.sh algorithms
else
  try bcast "binomial scatter-allgather two-level" 1024 8192 32768 131072 1048576
  try reduce "binomial ring" 1024 16384 65536 262144 1048576
  try allreduce "doubling halving ring two-level" 64 1024 4096 16384 65536 262144 1048576
  for c in gather scatter; do
    try $c "binomial linear" 64 512 1024 4096 16384 65536
  done
  try allgather "bruck spread ring two-level" 64 512 1024 4096 16384 65536
  try allgatherv "spread ring two-level" 64 512 1024 4096 16384 65536
  try alltoall "bruck spread pairwise" 16 64 256 1024 4096 16384 65536 262144
  try reduce_scatter "spread pairwise two-level" 64 512 4096 32768 262144
fi
