#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Reductions of one process: MPI_Reduce_local, GB/s by operation, type and size (bench/ops.c), under mrrun, Debian's MPICH
# and Open MPI, turn by turn; "-": that MPI does not define it. Medians of $RUNS runs. The last columns: mrmpi over the
# better peer (> 1: mrmpi is better), and over a triad of the same size. OPS_BYTES: the sizes. MPI_REAL16 is
# __float128 only here: Debian's MPICH and Open MPI add other numbers, and faster.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=3}"
: "${OPS_BYTES:=1024 65536 4194304}"
PATH=$BUILD/bin:$PATH
for program in mpicc.mpich mpiexec.hydra mpicc.openmpi mpirun.openmpi; do
  command -v "$program" >/dev/null || { echo "bench/ops.sh: $program is not installed (packaging/install-deps)"; exit 1; }
done
cd "$(dirname "$0")" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
for m in mpich openmpi; do "mpicc.$m" -O3 -march=native -Wall -o "$tmp/ops.$m" ops.c || exit 1; done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

once() { # mrmpi|mpich|openmpi
  local start
  case $1 in
    mrmpi) start=(mrrun -n 1 "$tmp/ops.mpich") ;;
    mpich) start=(mpiexec.hydra -n 1 "$tmp/ops.mpich") ;;
    openmpi) start=(mpirun.openmpi -n 1 "$tmp/ops.openmpi") ;;
  esac
  # shellcheck disable=SC2086  # words
  timeout 300 "${start[@]}" $OPS_BYTES 2>"$tmp/err" </dev/null | sed "s/^/$1 /" >>"$tmp/all" ||
    { echo "bench/ops.sh: failed under ${start[0]}:" >&2; tail -n 5 "$tmp/err" >&2; return 1; }
}

set -o pipefail
for ((i = 0; i < RUNS; i++)); do
  once mrmpi && once mpich && once openmpi || exit 1
done
printf '%-8s %-11s %8s  %8s %8s %8s  %7s %7s\n' op type bytes mrmpi MPICH 'Open MPI' peer triad
# lines of one figure together, in rising order, so that the middle one is the median
sort -k1,4 -k5,5g "$tmp/all" | awk '
  {k = $1 " " $2 " " $3 " " $4; v[k, ++n[k]] = $5}
  END {for (k in n) print k, (v[k, int((n[k] + 1) / 2)] + v[k, int(n[k] / 2) + 1]) / 2}' >"$tmp/medians"
awk 'NR == FNR {g[$1, $2 " " $3 " " $4] = $5; next}
  $1 == "mrmpi" {
    k = $2 " " $3 " " $4
    if (k in seen) next
    seen[k]
    a = value("mpich"); b = value("openmpi")
    best = a > b ? a : b
    ours = g["mrmpi", k]
    printf "%-8s %-11s %8d  %8.2f %8s %8s  %7s %7.2f\n", $2, $3, $4, ours, shown("mpich"), shown("openmpi"),
      best ? sprintf("%.2f", ours / best) : "-", ours / g["mrmpi", "triad - " $4]
  }
  function value(m) { return (m, k) in g ? g[m, k] : 0 }
  function shown(m) { return (m, k) in g ? sprintf("%.2f", g[m, k]) : "-" }' "$tmp/medians" "$tmp/all"
