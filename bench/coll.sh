#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Collectives (bench/coll.c). Without SIMFAB_DIR: inside this host, the same binary under mrrun and under Debian's MPICH
# (mpiexec.hydra), turn by turn; the least of $RUNS runs, ratio > 1: mrmpi is better. RANKS: how many ("2").
# `coll.sh node`: the same beside Open MPI, too, and with the processor's name: medians of $RUNS runs, the ratio to the better of the two. RANKS: "2 4 8".
# Where each rank has a core all begin at a moment (coll -s). With more ranks than cores the barrier before each counts in
# (coll -b), and MPICH, whose waiting ranks never give up a core, stays away. "wrong": not all data was there (MPICH
# 4.0's persistent scatter and allgather move some in their first start only); such a figure is no peer's. TOUCH=yes:
# buffers are written and read between operations. BIND=no: where ranks run is the scheduler's business. COLLS (NAME,
# NAME:i nonblocking, NAME:p persistent), BYTES.
# `coll.sh algorithms`: under simfab, eight hosts (model hdr, simulated time), each algorithm of each collective as
# MRMPI_COLL names it: what the thresholds of libmrmpi/coll/select.c come from. PPN ranks a host ("1").
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${PPN:=1}"
[ "${1:-}" = node ] && : "${RUNS:=5}" "${RANKS:=2 4 8}"
: "${RUNS:=3}" "${RANKS:=2}"
export PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=bench/processor.sh
. bench/processor.sh
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mpicc.mpich -O2 -Wall -o "$tmp/coll" bench/coll.c || exit 1

# each rank on a core of its own where there are enough: neither library then waits for the scheduler
bind='exec "$@"'
# shellcheck disable=SC2016  # the inner shell expands it
[ "${1:-}" != node ] && [ "$(nproc)" -ge "$RANKS" ] && bind='exec taskset -c ${PMIX_RANK:-${PMI_RANK:-0}} "$@"'
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

trio() { # RANKS
  local i who whos="mrmpi ompi" options="-l -b" start
  [ "$1" -le "$(nproc)" ] && whos="mrmpi mpich ompi" options="-l -s"
  [ -n "${TOUCH:-}" ] && options="$options -t"
  rm -f "$tmp"/{mrmpi,mpich,ompi}
  for ((i = 0; i < RUNS; i++)); do
    for who in $whos; do
      case $who in
        mrmpi) start="mrrun" ;;
        mpich) start="mpiexec.hydra" ;;
        ompi) start="mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none" ;;
      esac
      # shellcheck disable=SC2086,SC2016
      timeout 120 $start -n "$1" sh -c "$spread" sh "$tmp/coll.$who" $options "$COLLS" $BYTES >>"$tmp/$who" 2>"$tmp/err" ||
        echo "bench/coll.sh: failed under ${start%% *}: $(tail -n 1 "$tmp/err")" >&2
    done
  done
  printf '%-12s %9s %10s %10s %10s %7s   (%s ranks%s)\n' collective bytes 'mrmpi us' MPICH 'Open MPI' ratio "$1" "${TOUCH:+, touched}"
  awk 'function median(who, key,   v, n, i, j, t) {
         n = split(all[who, key], v, " ")
         for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
         return n ? (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2 : 0
       }
       FNR == 1 { who = FILENAME; sub(/.*\//, "", who) }
       { key = $1 " " $2; if (!(key in seen)) { seen[key] = 1; order[++k] = key } all[who, key] = all[who, key] " " $3; if ($4 == "wrong") wrong[who, key] = 1 }
       function text(who, key, us) { return (who, key) in wrong ? "wrong" : us ? sprintf("%.2f", us) : "-" }
       END {
         for (i = 1; i <= k; i++) {
           split(order[i], a, " ")
           ours = median("mrmpi", order[i]); h = median("mpich", order[i]); o = median("ompi", order[i])
           best = h && (!o || h < o) && !(("mpich", order[i]) in wrong) ? h : o
           if (("mrmpi", order[i]) in wrong) bad = 1
           printf "%-12s %9d %10s %10s %10s %7.2f\n", a[1], a[2], text("mrmpi", order[i], ours), text("mpich", order[i], h),
             text("ompi", order[i], o), ours ? best / ours : 0
         }
         exit bad
       }' $(for who in $whos; do [ -s "$tmp/$who" ] && echo "$tmp/$who"; done)
}

beside_both() {
  : "${COLLS:=barrier,bcast,reduce,allreduce,gather,scatter,allgather,alltoall}" "${BYTES:=8 1024 65536 1048576}"
  local n
  # shellcheck disable=SC2016
  spread='exec taskset -c $((${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-0}}} % $(nproc))) "$@"'
  [ "${BIND:-yes}" = no ] && spread='exec "$@"'
  ln -s coll "$tmp/coll.mrmpi" && ln -s coll "$tmp/coll.mpich"
  mpicc.openmpi -O2 -Wall -o "$tmp/coll.ompi" bench/coll.c || exit 1
  mpicc.mpich -O2 -w -o "$tmp/node" bench/node.c || exit 1
  processor
  hops "$tmp/node" sh -c "$spread" sh || echo "bench/coll.sh: no figures of bench/node.c" >&2
  for n in $RANKS; do trio "$n"; done
}

try() { # COLLECTIVE ALGORITHMS BYTES...
  local alg
  for alg in $2; do
    MRMPI_COLL=$1:$alg MRMPI_LOG_LEVEL=0 timeout 1800 mrrun -n $((8 * PPN)) --ppn "$PPN" "$BENCH_COLL" -q "$1" "${@:3}" |
      awk -v a="$alg" '{ printf "%-16s %-18s %9d %10.2f\n", $1, a, $2, $3 }'
  done
}

if [ "${1:-}" = node ]; then
  beside_both
elif [ "${1:-}" != algorithms ]; then
  beside
elif [ -z "${SIMFAB_DIR:-}" ]; then
  BENCH_COLL=$tmp/coll simfab run --topology eight-hosts-two-rails --model hdr -- bash bench/coll.sh algorithms
else
  try barrier "spread dissemination" 0
  try bcast "linear binomial scatter-allgather two-level" 64 1024 8192 32768 131072 1048576
  try reduce "linear binomial ring two-level" 64 1024 16384 65536 262144 1048576
  try allreduce "spread doubling halving ring two-level" 64 1024 4096 16384 65536 262144 1048576
  for c in gather scatter; do
    try $c "binomial linear" 64 512 1024 4096 16384 65536
  done
  try allgather "bruck spread ring two-level" 64 512 1024 4096 16384 65536
  try allgatherv "spread ring two-level" 64 512 1024 4096 16384 65536
  try alltoall "bruck spread pairwise" 16 64 256 1024 4096 16384 65536 262144
  try reduce_scatter "spread pairwise two-level" 64 512 4096 32768 262144
  try scan doubling 64 4096 65536 1048576
fi
