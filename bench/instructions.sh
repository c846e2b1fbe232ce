#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What a short message costs a processor: instructions of the MPI library for each round trip of 8 bytes, by rank 0, between two
# simulated hosts over one rail, for mrmpi, Open MPI and MPICH (both over UCX). Counted by callgrind as the difference of a long and a
# short run of bench/pair.c, so that start and end fall out. Only the MPI library and what it brings (UCX), not the verbs
# below it, which here are the simulator's, nor the C library. Code counts for the library in which it is, also what was inlined
# from a header, where callgrind_annotate names no library. Looks at the network that find nothing are counted too; Open
# MPI's differ by a tenth from run to run, the others' by one in a thousand, whatever else the machine does. Ratio > 1: mrmpi
# takes fewer than the better peer.
set -u
: "${BUILD:?set BUILD to the build directory}"
PATH=$BUILD/bin:$PATH
cd "$(dirname "$0")/.." || exit 1
command -v valgrind >/dev/null || { echo "bench/instructions.sh: skipped: valgrind is not installed"; exit 0; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
for m in mpich openmpi; do "mpicc.$m" -O2 -Wall -o "$tmp/pair.$m" bench/pair.c || exit 1; done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MRMPI_LOG_LEVEL=0
export UCX_LOG_LEVEL=error UCX_TLS=rc_v,self UCX_NET_DEVICES=mlx5_0:1
short=900 long=4500 # multiples of nine: bench/pair.c measures in nine parts

run() { # MPI ROUND_TRIPS OUT
  local count=(valgrind -q --tool=callgrind "--callgrind-out-file=$3.%p") spec=latency:8:$2 a b
  a="simfab exec h1 --" b="simfab exec h2 --"
  # shellcheck disable=SC2086  # words
  case $1 in
    mrmpi) set -- mrrun -n 2 --hosts h1=mlx5_0,h2=mlx5_0 "${count[@]}" "$tmp/pair.mpich" "$spec" ;;
    openmpi)
      set -- mpirun.openmpi --oversubscribe --mca pml ucx --mca btl ^openib --mca osc ^ucx --mca opal_common_ucx_tls any \
        --mca opal_common_ucx_devices any \
        -n 1 $a "${count[@]}" "$tmp/pair.openmpi" "$spec" : -n 1 $b "${count[@]}" "$tmp/pair.openmpi" "$spec" ;;
    mpich)
      set -- mpiexec.hydra -genv MPIR_CVAR_NOLOCAL 1 \
        -n 1 $a "${count[@]}" "$tmp/pair.mpich" "$spec" : -n 1 $b "${count[@]}" "$tmp/pair.mpich" "$spec" ;;
  esac
  timeout 300 simfab run --topology two-hosts-two-rails --model hdr -- "$@" >"$tmp/out" 2>&1 </dev/null ||
    { echo "bench/instructions.sh: failed: $*"; tail -n 5 "$tmp/out"; exit 1; }
}
# Instructions by library, of the rank that printed the figure: both do the same, the first process's file will do.
# In callgrind's format "ob=(ID) NAME" (later "ob=(ID)") names the library of all that follows; a line of figures is a
# position and the instructions there, but after "calls=" it is what the callee took. cob= names the callee's library.
by_library() { # OUT
  local file
  for file in "$1".*; do break; done
  awk '
    /^c?ob=/ {
      id = $0; sub(/^c?ob=/, "", id); sub(/ .*/, "", id)
      if (NF > 1) { name[id] = $0; sub(/^[^ ]* /, "", name[id]); sub(/.*\//, "", name[id]) }
      if (/^ob=/) lib = name[id]
    }
    /^calls=/ {callee = 1; next}
    /^[0-9+*-]/ {if (!callee) sum[lib] += $2; callee = 0}
    END {for (l in sum) print l, sum[l]}' "$file"
}
counted='^(libmrmpi|libmpi|libmpich|libopen-|mca_|libuc[pstm])'
for m in mrmpi openmpi mpich; do
  run $m $short "$tmp/$m.short" && run $m $long "$tmp/$m.long"
  { by_library "$tmp/$m.short" | sed 's/^/s /'; by_library "$tmp/$m.long" | sed 's/^/l /'; } |
    awk -v n=$((long - short)) -v want="$counted" '
      $2 ~ want {d[$2] += $1 == "l" ? $3 : -$3}
      END {for (l in d) if (d[l] / n >= 0.5) printf "%s %.0f\n", l, d[l] / n}' | sort -k2nr >"$tmp/$m.each"
  [ -s "$tmp/$m.each" ] || { echo "bench/instructions.sh: nothing was counted for $m"; exit 1; }
done
sum() { awk '{s += $2} END {print s}' "$tmp/$1.each"; }
printf '%-14s %12s %12s %12s %8s\n' "round trip" mrmpi "Open MPI" MPICH ratio
awk -v a="$(sum mrmpi)" -v b="$(sum openmpi)" -v c="$(sum mpich)" \
  'BEGIN {printf "%-14s %12d %12d %12d %8.2f\n", "instructions", a, b, c, (b < c ? b : c) / a}'
for m in mrmpi openmpi mpich; do printf '%s: %s\n' $m "$(awk '{printf "%s%s %s", sep, $1, $2; sep = ", "}' "$tmp/$m.each")"; done
