#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Two ranks inside this host (node.c): latency, bandwidth one way and both ways, fresh buffers, data with gaps, of
# every power of two, under mrmpi, Open MPI (ob1, vader) and Debian's MPICH, turn by turn, each rank bound to a core of
# its own where there are two. Medians of the blocks of $RUNS runs. ratio > 1: mrmpi is better than the better peer; <
# marks where it is not, ~ where the middle halves of the blocks overlap, so that it says little. A missing figure is a
# failure. NODE_KINDS, NODE_BYTES: some only. NODE_REALTIME=1, as root: at real-time priority, for a machine that is not
# quiet. MRMPI_SHM_COPY=push|read|split shows the ways one by one.
# cores: near or far from each other, if some blocks found them so and others not (a virtual machine's are moved by its
# host). Only what found them alike is compared, and blocks during which they were moved are left out. mixed: there are
# not enough of either for that.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=5}" "${NODE_KINDS:=latency bw bibw fresh vector}" "${NODE_BYTES:=}" "${NODE_REALTIME:=}"
export PATH=$BUILD/bin:$PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MRMPI_LOG_LEVEL=0
cd "$(dirname "$0")" || exit 1
# shellcheck source=bench/processor.sh
. ./processor.sh
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
  awk -v m=$mpi 'NF == 5 && $2 ~ /^[0-9]+$/ {print m, $0}' "$tmp/out" >>"$tmp/all"
}

processor
for kind in $NODE_KINDS; do
  for ((i = 0; i < RUNS; i++)); do
    # shellcheck disable=SC2086  # sizes are words
    for mpi in mrmpi openmpi mpich; do once $mpi "$kind" $NODE_BYTES; done
  done
done

awk '
  function better(kind, a, b) { return kind ~ /bw$|rate/ ? a > b : a < b }
  function text(x) { return x == "" ? "failed" : sprintf(x < 100 ? "%.3f" : "%.0f", x) }
  function sort(s, n,  i, j, t) {
    for (i = 2; i <= n; i++) for (j = i; j > 1 && s[j - 1] > s[j]; j--) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t }
  }
  function place(key, part,  i, n, s) { # a quantile of the figures of key
    n = num[key]
    if (!n) return ""
    for (i = 1; i <= n; i++) s[i] = v[key, i]
    sort(s, n)
    return s[1 + int(part * (n - 1) + .5)]
  }
  # hops: how many of each length, which is a logarithm, in tenths. What lies between two kinds of cores; 0: there is one.
  function divide(  total, sum, n_of, i, lo, hi, n, left, right, mid, again) {
    for (i in hops) { if (lo == "" || i + 0 < lo) lo = i + 0; if (hi == "" || i + 0 > hi) hi = i + 0; total += hops[i] }
    for (n = 0; lo < hi && (n += hops[lo]) < total / 50;) lo++ # strays
    for (n = 0; lo < hi && (n += hops[hi]) < total / 50;) hi--
    if (hi - lo < 6) return 0 # a factor of 1.8
    for (mid = (lo + hi) / 2; again++ < 20; mid = (left + right) / 2) {
      split("", sum); split("", n_of)
      for (i in hops) { sum[i + 0 > mid] += i * hops[i]; n_of[i + 0 > mid] += hops[i] }
      left = sum[0] / n_of[0]; right = sum[1] / n_of[1]
    }
    near_ns = exp(left / 10); far_ns = exp(right / 10)
    return exp(mid / 10)
  }
  function add(key, x) { v[key, ++num[key]] = x }
  function cores_of(i) {
    if (!border) return "-"
    return (before[i] > border) != (after[i] > border) ? "moved" : before[i] > border ? "far" : "near"
  }
  function row(kind, bytes, cores,  a, b, c, peer, best, r, overlap, s) {
    s = SUBSEP kind SUBSEP bytes SUBSEP cores
    a = place("mrmpi" s, .5); b = place("openmpi" s, .5); c = place("mpich" s, .5)
    if (a == "" || b == "" || c == "") bad = 1
    peer = b == "" || c != "" && better(kind, c, b) ? "mpich" : "openmpi"
    best = peer == "mpich" ? c : b
    r = a == "" || best == "" ? 0 : kind ~ /bw$|rate/ ? a / best : best / a
    overlap = place("mrmpi" s, .25) <= place(peer s, .75) && place(peer s, .25) <= place("mrmpi" s, .75)
    behind += r < 1; all++
    printf "%-8s %8d %5s %12s %12s %12s %8.2f %s%s\n", kind ~ /bw$/ ? "MB/s" : kind == "rate" ? "M/s" : "us", bytes, cores, text(a), text(b),
      text(c), r, r < 1 ? "<" : "", overlap ? "~" : ""
  }
  function enough(s) { return num["mrmpi" s] >= LEAST && num["openmpi" s] >= LEAST && num["mpich" s] >= LEAST }
  BEGIN { LEAST = 6 }
  {
    n++; who[n] = $1; what[n] = $2 SUBSEP $3; value[n] = $4; before[n] = $5; after[n] = $6
    hops[int(10 * log($5 > 1 ? $5 : 1) + .5)]++; hops[int(10 * log($6 > 1 ? $6 : 1) + .5)]++
    if (!(($2, $3) in seen)) { seen[$2, $3] = 1; order[++k] = $2 " " $3 }
  }
  END {
    if (!k) exit 1
    border = divide()
    for (i = 1; i <= n; i++) { add(who[i] SUBSEP what[i] SUBSEP cores_of(i), value[i]); add(who[i] SUBSEP what[i] SUBSEP "mixed", value[i]) }
    if (border) printf "a word from core to core: near %.0f ns, far %.0f ns\n", near_ns, far_ns
    else { for (i = 1; i <= n; i++) add("hop", before[i]); printf "a word from core to core: %.0f ns\n", place("hop", .5) }
    for (i = 1; i <= k; i++) {
      split(order[i], o, " "); s = SUBSEP o[1] SUBSEP o[2] SUBSEP
      if (o[1] != last) printf "\n%-8s %8s %5s %12s %12s %12s %8s\n", o[1], "bytes", "cores", "mrmpi", "Open MPI", "MPICH", "ratio"
      last = o[1]
      if (!border) { row(o[1], o[2], "-"); continue }
      if (enough(s "near")) row(o[1], o[2], "near")
      if (enough(s "far")) row(o[1], o[2], "far")
      if (!enough(s "near") && !enough(s "far")) row(o[1], o[2], "mixed")
    }
    printf "\n%d of %d figures behind the better peer\n", behind, all
    exit bad
  }' "$tmp/all"
