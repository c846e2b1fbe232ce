#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Inside one host: the same NPmpich2 under mrrun and under Debian's MPICH (mpiexec.hydra), turn by turn, each rank bound
# to a core of its own where there are two. Medians of $RUNS runs; ratio > 1: mrmpi is better.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=5}"
PATH=$BUILD/bin:$PATH
for program in NPmpich2 mpiexec.hydra taskset; do
  command -v "$program" >/dev/null || { echo "bench/shm.sh: $program is not installed (packaging/install-deps)"; exit 1; }
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1

# shellcheck disable=SC2016  # the inner shell expands it
if [ "$(nproc)" -ge 2 ]; then
  bind='exec taskset -c ${PMIX_RANK:-${PMI_RANK:-0}} "$@"'
else
  bind='exec "$@"'
fi

# us for one message of $2 bytes: one way, $3 times
once() { # mrmpi|mpich bytes repetitions
  local start=(mrrun)
  [ "$1" = mpich ] && start=(mpiexec.hydra)
  timeout 120 "${start[@]}" -n 2 sh -c "$bind" sh NPmpich2 -l "$2" -u "$2" -p 0 -n "$3" -o np.out >out 2>&1 ||
    { echo "bench/shm.sh: NPmpich2 under ${start[0]} failed:" >&2; tail -n 5 out >&2; return 1; }
  # np.out: bytes, Mbit/s (of 2^20), seconds
  awk '{ printf "%.4f\n", $3 * 1e6 }' np.out
}
median() { sort -n | awk '{ v[NR] = $1 } END { print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

printf '%10s  %14s %14s  %8s\n' bytes mrmpi MPICH ratio
for spec in '8 100000' '1024 50000' '8192 20000' '65536 5000' '262144 2000' '1048576 500' '4194304 200'; do
  read -r bytes reps <<<"$spec"
  : >"mrmpi.$bytes"; : >"mpich.$bytes"
  for ((i = 0; i < RUNS; i++)); do
    once mrmpi "$bytes" "$reps" >>"mrmpi.$bytes" || exit 1
    once mpich "$bytes" "$reps" >>"mpich.$bytes" || exit 1
  done
  ours=$(median <"mrmpi.$bytes") theirs=$(median <"mpich.$bytes")
  awk -v b="$bytes" -v o="$ours" -v t="$theirs" 'BEGIN {
    if (b < 65536) printf "%10d  %11.3f us %11.3f us  %8.2f\n", b, o, t, t / o
    else printf "%10d  %9.0f MB/s %9.0f MB/s  %8.2f\n", b, b / o, b / t, t / o }'
done
