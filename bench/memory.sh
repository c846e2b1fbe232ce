#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What ranks that are never talked to cost in memory: a rank on each of MEMORY_HOSTS simulated hosts, right after MPI_Init. PSS by
# kind of memory (memory.c), bytes of the heap by the library that has asked for them (tests/libmrmpi/footprint.c), and what each
# further rank adds, by the smallest and the largest job; the last line extrapolates by the heap to MEMORY_RANKS. (Files, libraries
# above all, are shared by the ranks of this machine.) Seconds, of the whole job, are real.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${MEMORY_HOSTS:=64 128 256 512}" "${MEMORY_RANKS:=100000}"
export PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH MRMPI_LOG_LEVEL=1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mrcc -O2 -o "$tmp/memory" "$(dirname "$0")/memory.c" || exit 1
job() { timeout 900 simfab run --topology "$tmp/net" --model hdr -- mrrun -n "$1" "$2" 2>"$tmp/err" </dev/null || { cat "$tmp/err" >&2; exit 1; }; } # RANKS PROGRAM

printf '%5s | %8s %8s %8s %8s %8s | %9s %9s %9s %9s | %7s\n' hosts 'PSS KiB' anonym. simulat. files stack \
  'heap ours' libpmix simulat. others 'real s'
for n in $MEMORY_HOSTS; do
  simfab topology fat-tree --hosts "$n" >"$tmp/net" || exit 1
  begun=${EPOCHREALTIME//[.,]/}
  job "$n" "$tmp/memory" >"$tmp/out"
  took=$((${EPOCHREALTIME//[.,]/} - begun))
  read -r all anonymous simulator files stack <"$tmp/out" || exit 1
  job "$n" "$BUILD/tests/libmrmpi/footprint" >"$tmp/out"
  heap=$(sed -n 's/.*ours \([0-9]*\), libpmix \([0-9]*\), simulator \([0-9]*\), others \([0-9]*\) .*/\1 \2 \3 \4/p' "$tmp/out")
  # shellcheck disable=SC2086
  printf '%5d | %8d %8d %8d %8d %8d | %9d %9d %9d %9d | %7s\n' "$n" "$all" "$anonymous" "$simulator" "$files" "$stack" $heap \
    "$(awk -v us=$took 'BEGIN {printf "%.1f", us / 1e6}')"
  echo "$n $all $anonymous $simulator $files $stack $heap" >>"$tmp/rows"
done
awk -v ranks="$MEMORY_RANKS" '
  NR == 1 {for (i = 1; i <= NF; i++) first[i] = $i}
  {for (i = 1; i <= NF; i++) last[i] = $i}
  END {
    n = last[1] - first[1]
    if (n <= 0)
      exit
    for (i = 2; i <= NF; i++)
      each[i] = (last[i] - first[i]) / n * (i <= 6 ? 1024 : 1)
    heap = each[7] + each[8] + each[9] + each[10]
    printf "bytes for each further rank: %.1f anonymous; of the heap ours %.1f, libpmix %.1f, simulator %.1f, others %.1f\n", each[3], each[7], each[8], each[9], each[10]
    printf "%d ranks: %.1f MiB anonymous\n", ranks, (last[3] * 1024 + heap * (ranks - last[1])) / 2 ^ 20
  }' "$tmp/rows"
