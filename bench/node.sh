#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two ranks inside this host (node.c): latency, bandwidth one way and both ways, fresh buffers, data with gaps, of every power of two,
# under mrmpi, Open MPI (ob1, vader) and Debian's MPICH, turn by turn, each rank bound to a core of its own where there are two.
# Medians of $RUNS runs. ratio > 1: mrmpi is better than the better peer; < marks where it is not, ~ where the middle halves of the
# runs overlap, so that it says little. A missing figure is a failure. NODE_KINDS, NODE_BYTES: some only. NODE_REALTIME=1, as root: at
# real-time priority, for a machine that is not quiet. MRMPI_SHM_COPY=push|read|halves shows the ways one by one.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=5}" "${NODE_KINDS:=latency bw bibw fresh vector}" "${NODE_BYTES:=}" "${NODE_REALTIME:=}"
export PATH=$BUILD/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MRMPI_LOG_LEVEL=0
cd "$(dirname "$0")" || exit 1
for program in mpicc.mpich mpicc.openmpi mpiexec.hydra mpirun.openmpi taskset; do
  command -v $program >/dev/null || { echo "bench/node.sh: $program is not installed (packaging/install-deps)"; exit 1; }
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
for mpi in mpich openmpi; do mpicc.$mpi -O2 -w -o "$tmp/node.$mpi" node.c || exit 1; done

# shellcheck disable=SC2016  # the inner shell expands it
bind='exec "$@"'
# shellcheck disable=SC2016
[ "$(nproc)" -ge 2 ] && bind='exec taskset -c ${PMIX_RANK:-${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}} "$@"'
once() { # mrmpi|mpich|openmpi KIND BYTES...
  local mpi=$1 start
  shift
  case $mpi in
    mrmpi) start=(mrrun -n 2 sh -c "$bind" sh "$tmp/node.mpich") ;;
    mpich) start=(mpiexec.hydra -n 2 sh -c "$bind" sh "$tmp/node.mpich") ;;
    openmpi) start=(mpirun.openmpi --mca pml ob1 --mca btl vader,self --bind-to none -n 2 sh -c "$bind" sh "$tmp/node.openmpi") ;;
  esac
  [ -z "$NODE_REALTIME" ] || start=(chrt -f 1 "${start[@]}")
  timeout 120 "${start[@]}" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null ||
    echo "($mpi: $(grep -v '^[-=]*$' "$tmp/err" | head -n 1))" >&2
  awk -v m=$mpi 'NF == 3 && $2 ~ /^[0-9]+$/ {print m, $0}' "$tmp/out" >>"$tmp/all"
}

for kind in $NODE_KINDS; do
  for ((i = 0; i < RUNS; i++)); do
    # shellcheck disable=SC2086  # sizes are words
    for mpi in mrmpi openmpi mpich; do once $mpi "$kind" $NODE_BYTES; done
  done
done

awk '
  function better(kind, a, b) { return kind ~ /bw$|rate/ ? a > b : a < b }
  function text(x) { return x == "" ? "failed" : sprintf(x < 100 ? "%.3f" : "%.0f", x) }
  function place(key, part,  i, j, n, s, t) { # a quantile of the figures of key
    n = num[key]
    if (!n) return ""
    for (i = 1; i <= n; i++) s[i] = v[key, i]
    for (i = 2; i <= n; i++) for (j = i; j > 1 && s[j - 1] > s[j]; j--) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t }
    return s[1 + int(part * (n - 1) + .5)]
  }
  { key = $1 SUBSEP $2 SUBSEP $3; v[key, ++num[key]] = $4; if (!(($2, $3) in seen)) { seen[$2, $3] = 1; order[++k] = $2 " " $3 } }
  END {
    if (!k) exit 1
    for (i = 1; i <= k; i++) {
      split(order[i], o, " "); s = SUBSEP o[1] SUBSEP o[2]
      if (o[1] != last) printf "\n%-8s %8s %12s %12s %12s %8s\n", o[1], "bytes", "mrmpi", "Open MPI", "MPICH", "ratio"
      last = o[1]
      a = place("mrmpi" s, .5); b = place("openmpi" s, .5); c = place("mpich" s, .5)
      if (a == "" || b == "" || c == "") bad = 1
      peer = b == "" || c != "" && better(o[1], c, b) ? "mpich" : "openmpi"
      best = peer == "mpich" ? c : b
      r = a == "" || best == "" ? 0 : o[1] ~ /bw$|rate/ ? a / best : best / a
      overlap = place("mrmpi" s, .25) <= place(peer s, .75) && place(peer s, .25) <= place("mrmpi" s, .75)
      behind += r < 1; all++
      printf "%-8s %8d %12s %12s %12s %8.2f %s%s\n", o[1] ~ /bw$/ ? "MB/s" : o[1] == "rate" ? "M/s" : "us", o[2], text(a), text(b),
        text(c), r, r < 1 ? "<" : "", overlap ? "~" : ""
    }
    printf "\n%d of %d figures behind the better peer\n", behind, all
    exit bad
  }' "$tmp/all"
