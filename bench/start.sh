#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# From mrrun's start to its end of a program that does nothing but MPI_Init, MPI_Barrier, MPI_Finalize, all ranks on this host, beside
# Open MPI and Debian's MPICH, turn by turn: medians of RUNS runs, in seconds, and for each rank. START_RANKS: how many ranks; peers
# start no more than START_PEERS of them, since beyond that they take minutes on two cores.
# A run that fails, or takes more than START_SECONDS, is exit status 1.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=5}" "${START_PEERS:=64}" "${START_RANKS:=1 4 16 64 256}" "${START_SECONDS:=120}"
export PATH=$BUILD/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MRMPI_LOG_LEVEL=0
for program in mpicc.mpich mpicc.openmpi mpiexec.hydra mpirun.openmpi; do
  command -v $program >/dev/null || { echo "bench/start.sh: $program is not installed (packaging/install-deps)"; exit 1; }
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/start.c" <<'C'
#include <mpi.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C
for mpi in mpich openmpi; do mpicc.$mpi -O2 -o "$tmp/start.$mpi" "$tmp/start.c" || exit 1; done
bad=0

once() { # mrmpi|mpich|openmpi RANKS: prints the seconds
  local start begin
  case $1 in
    mrmpi) start=(mrrun -n "$2" "$tmp/start.mpich") ;;
    mpich) start=(mpiexec.hydra -n "$2" "$tmp/start.mpich") ;;
    openmpi) start=(mpirun.openmpi --oversubscribe --mca pml ob1 --mca btl vader,self -n "$2" "$tmp/start.openmpi") ;;
  esac
  begin=${EPOCHREALTIME//[.,]/}
  timeout "$START_SECONDS" "${start[@]}" >"$tmp/out" 2>&1 </dev/null ||
    { echo "($1, $2 ranks: $(tail -n 1 "$tmp/out"))" >&2; return 1; }
  awk -v us="$((${EPOCHREALTIME//[.,]/} - begin))" 'BEGIN {print us / 1e6}'
}
median() { sort -g "$1" | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
peer() { [ -s "$tmp/times.$1" ] && median "$tmp/times.$1" | awk '{printf "%.3f", $1}' || echo -; }

printf '%6s %9s %12s %9s %9s %16s\n' ranks mrmpi "us a rank" MPICH "Open MPI" "best peer's time"
for n in $START_RANKS; do
  rm -f "$tmp"/times.*
  for ((i = 0; i < RUNS; i++)); do
    for mpi in mrmpi $([ "$n" -gt "$START_PEERS" ] || echo mpich openmpi); do once $mpi "$n" >>"$tmp/times.$mpi" || { bad=1; continue 3; }; done
  done
  awk -v n="$n" -v a="$(median "$tmp/times.mrmpi")" -v b="$(peer mpich)" -v c="$(peer openmpi)" 'BEGIN {
    printf "%6d %9.3f %12.0f %9s %9s %16s\n", n, a, a * 1e6 / n, b, c, b == "-" ? b : sprintf("%.2f", (b < c ? b : c) / a)}'
done
exit $bad
