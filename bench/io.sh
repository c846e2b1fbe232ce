#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# One file of all ranks (bench/io.c), written and read alone and together, in one stretch and in blocks that are the ranks'
# in turn, beside Debian's MPICH (ROMIO) and Open MPI (OMPIO), turn by turn: medians of $RUNS runs, ms, the ratio to the
# better of the two (> 1: mrmpi is better). In real time, inside this host, in DIR (what /tmp is on): the pages of the system
# are what is measured, not a device. RANKS: how many ("2", "2 4"); MIB of each rank (8). With more ranks than cores MPICH
# stays away: its waiting ranks never give up a core.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=3}" "${RANKS:=2}" "${MIB:=8}" "${DIR:=/tmp}"
export PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH
cd "$(dirname "$0")/.." || exit 1
tmp=$(mktemp -d) || exit 1
file=$(mktemp "$DIR/mrmpi-io-XXXXXX") || exit 1
trap 'rm -rf "$tmp" "$file"' EXIT
mpicc.mpich -O2 -Wall -o "$tmp/io.mpich" bench/io.c && mpicc.openmpi -O2 -Wall -o "$tmp/io.ompi" bench/io.c || exit 1
ln "$tmp/io.mpich" "$tmp/io.mrmpi"

once() { # mrmpi|mpich|ompi RANKS
  local start
  case $1 in
    mrmpi) start="mrrun" ;;
    mpich) start="mpiexec.hydra" ;;
    ompi) start="mpirun.openmpi --allow-run-as-root --oversubscribe" ;;
  esac
  timeout 600 $start -n "$2" "$tmp/io.$1" "$file" "$MIB" >>"$tmp/$1" 2>"$tmp/err" ||
    echo "bench/io.sh: failed under ${start%% *}: $(tail -n 1 "$tmp/err")" >&2
}

for n in $RANKS; do
  whos="mrmpi ompi"
  [ "$n" -le "$(nproc)" ] && whos="mrmpi mpich ompi"
  rm -f "$tmp"/{mrmpi,mpich,ompi}
  for ((i = 0; i < RUNS; i++)); do for who in $whos; do once "$who" "$n"; done; done
  printf '%6s %-6s %-6s %10s %10s %10s %7s   (%s ranks, %s MiB each)\n' block way what 'mrmpi ms' MPICH 'Open MPI' ratio "$n" "$MIB"
  awk 'function median(who, key,   v, n, i, j, t) {
         n = split(all[who, key], v, " ")
         for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) { t = v[j]; v[j] = v[j - 1]; v[j - 1] = t }
         return n ? v[int((n + 1) / 2)] : ""
       }
       FNR == 1 { who = FILENAME; sub(/.*\//, "", who) }
       { key = $1 " " $2 " " $3; if (!(key in seen)) { seen[key] = 1; order[++k] = key } all[who, key] = all[who, key] " " $4 }
       END {
         for (i = 1; i <= k; i++) {
           split(order[i], f, " "); a = median("mrmpi", order[i]); b = median("mpich", order[i]); c = median("ompi", order[i])
           best = b == "" ? c : c == "" || b < c ? b : c
           printf "%6d %-6s %-6s %10s %10s %10s %7s\n", f[1], f[2], f[3], a, b == "" ? "-" : b, c == "" ? "-" : c,
             a && best ? sprintf("%.2f", best / a) : "-"
         }
       }' $(for who in $whos; do echo "$tmp/$who"; done)
done
