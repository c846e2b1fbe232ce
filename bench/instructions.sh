#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The processor cost of a short message: instructions of the MPI library for a round trip of 8 bytes, by rank 0, over
# one rail, for an MPI_Isend of 8 bytes until it returns, over one, two and four rails, and for an MPI_Put of 8 bytes,
# of 64 in a row that are not adjacent, between two simulated hosts; for mrmpi, Open MPI and MPICH (both over UCX, one
# rail). Rows "node": inside this host (Open MPI over vader), MPI_Isend and MPI_Wait of 8 bytes, and of a message that
# has come before, MPI_Irecv and MPI_Wait, or MPI_Recv; 2,000 of each. Counted by callgrind as the difference of a long
# and a short run of bench/pair.c, rma.c or calls.c, so that start and end fall out. Only the MPI library with its own
# libraries (UCX), not the verbs below, here the simulator's, nor the C library. Code counts for its library, including
# code inlined from a header, where callgrind_annotate names no library. Polls in vain are counted too; Open MPI's
# differ by a tenth from run to run, the others' by one in a thousand, whatever else the machine does. Ratio > 1: mrmpi
# takes fewer than the better peer.
set -u
: "${BUILD:?set BUILD to the build directory}"
PATH=$BUILD/bin:$PATH
cd "$(dirname "$0")/.." || exit 1
command -v valgrind >/dev/null || { echo "bench/instructions.sh: skipped: valgrind is not installed"; exit 0; }
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
for m in mpich openmpi; do
  for p in pair rma calls; do "mpicc.$m" -O2 -Wall -o "$tmp/$p.$m" "bench/$p.c" || exit 1; done
done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MRMPI_LOG_LEVEL=0
export UCX_LOG_LEVEL=error UCX_TLS=rc_v,self UCX_NET_DEVICES=mlx5_0:1
program=pair osc=^ucx
short=900 long=4500 # multiples of nine: bench/pair.c measures in nine parts

{ # two hosts with four adapters on one switch
  printf 'switchguid=0x1000\nSwitch 8 "S-1000" # "leaf" base port 0 lid 0 lmc 0\n'
  for i in 1 2 3 4 5 6 7 8; do echo "[$i] \"H-20${i}0\"[1]"; done
  for i in 1 2 3 4 5 6 7 8; do
    printf '\ncaguid=0x20%d0\nCa 1 "H-20%d0" # "h%d mlx5_%d"\n[1](20%d1) "S-1000"[%d]\n' \
      $i $i $(((i + 3) / 4)) $(((i - 1) % 4)) $i $i
  done
} >"$tmp/hosts.net"

run() { # MPI RAILS OUT SPEC [OPTION OF CALLGRIND]: of the program $program
  local count=(valgrind -q --tool=callgrind "${@:5}" "--callgrind-out-file=$3.%p") spec=$4 rails i a b
  rails=mlx5_0
  for ((i = 1; i < $2; i++)); do rails+=+mlx5_$i; done
  a="simfab exec h1 --" b="simfab exec h2 --"
  # shellcheck disable=SC2086  # words
  case $1 in
    mrmpi) set -- mrrun -n 2 --hosts "h1=$rails,h2=$rails" "${count[@]}" "$tmp/$program.mpich" "$spec" ;;
    openmpi)
      set -- mpirun.openmpi --oversubscribe --mca pml ucx --mca btl ^openib --mca osc $osc --mca opal_common_ucx_tls any \
        --mca opal_common_ucx_devices any \
        -n 1 $a "${count[@]}" "$tmp/$program.openmpi" "$spec" : -n 1 $b "${count[@]}" "$tmp/$program.openmpi" "$spec" ;;
    mpich)
      set -- mpiexec.hydra -genv MPIR_CVAR_NOLOCAL 1 \
        -n 1 $a "${count[@]}" "$tmp/$program.mpich" "$spec" : -n 1 $b "${count[@]}" "$tmp/$program.mpich" "$spec" ;;
  esac
  timeout 300 simfab run --topology "$tmp/hosts.net" --model hdr -- "$@" >"$tmp/out" 2>&1 </dev/null ||
    { echo "bench/instructions.sh: failed: $*"; tail -n 5 "$tmp/out"; exit 1; }
}
# Instructions by library, of all files. In callgrind's format "ob=(ID) NAME" (later "ob=(ID)") names the library of all
# that follows; a line of figures is a position and the instructions there, but after "calls=" it is what the callee took.
# cob= names the callee's library.
by_library() { # FILE...
  awk '
    FNR == 1 {split("", name)}
    /^c?ob=/ {
      id = $0; sub(/^c?ob=/, "", id); sub(/ .*/, "", id)
      if (NF > 1) { name[id] = $0; sub(/^[^ ]* /, "", name[id]); sub(/.*\//, "", name[id]) }
      if (/^ob=/) lib = name[id]
    }
    /^calls=/ {callee = 1; next}
    /^[0-9+*-]/ {if (!callee) sum[lib] += $2; callee = 0}
    END {for (l in sum) print l, sum[l]}' "$@"
}
counted='^(libmrmpi|libmpi|libmpich|libopen-|mca_|libuc[pstm])'
# Per one of TIMES more, by library: what the files of the long run have more than those of the short one.
more() { # NAME TIMES SHORT-FILES -- LONG-FILES
  local name=$1 times=$2 few=()
  shift 2
  while [ "$1" != -- ]; do few+=("$1"); shift; done
  shift
  { by_library "${few[@]}" | sed 's/^/s /'; by_library "$@" | sed 's/^/l /'; } |
    awk -v n="$times" -v want="$counted" '
      $2 ~ want {d[$2] += $1 == "l" ? $3 : -$3}
      END {for (l in d) if (d[l] / n >= 0.5) printf "%s %.0f\n", l, d[l] / n}' | sort -k2nr >"$tmp/$name.each"
  [ -s "$tmp/$name.each" ] || { echo "bench/instructions.sh: nothing was counted for $name"; exit 1; }
}
first() { echo "$1"; } # both ranks do the same: the first process's file will do
round_trip() { # MPI
  local n
  for n in $short $long; do run "$1" 1 "$tmp/$1.trip.$n" latency:8:$n; done
  more "$1.trip" $((long - short)) "$(first "$tmp/$1.trip.$short".*)" -- "$(first "$tmp/$1.trip.$long".*)"
}
# What is counted is only while MPI_Isend runs, and only rank 0 calls that: WINDOW times for each of COUNT.
isend() { # MPI RAILS
  local n window=8
  for n in $short $long; do run "$1" "$2" "$tmp/$1.isend$2.$n" rate:8:$n '--toggle-collect=*MPI_Isend'; done
  more "$1.isend$2" $(((long - short) * window)) "$tmp/$1.isend$2.$short".* -- "$tmp/$1.isend$2.$long".*
}
# The same for MPI_Put: 64 to each of COUNT.
put() { # MPI
  local n few=90 many=450
  program=rma osc=ucx
  for n in $few $many; do run "$1" 1 "$tmp/$1.put.$n" apart:8:$n '--toggle-collect=*MPI_Put'; done
  program=pair osc=^ucx
  more "$1.put" $(((many - few) * 64)) "$tmp/$1.put.$few".* -- "$tmp/$1.put.$many".*
}
# Inside a host (calls.c): without a simulator, Open MPI over vader.
node_run() { # MPI OUT KIND COUNT CALL...
  local mpi=$1 out=$2 kind=$3 n=$4 count=(valgrind -q --tool=callgrind "--callgrind-out-file=$2.%p") c
  shift 4
  for c in "$@"; do count+=("--toggle-collect=*$c"); done
  case $mpi in
    mrmpi) set -- mrrun -n 2 "${count[@]}" "$tmp/calls.mpich" ;;
    openmpi)
      set -- mpirun.openmpi --oversubscribe --mca pml ob1 --mca btl vader,self -n 2 "${count[@]}" "$tmp/calls.openmpi"
      ;;
    mpich) set -- mpiexec.hydra -n 2 "${count[@]}" "$tmp/calls.mpich" ;;
  esac
  timeout 300 env -u UCX_TLS -u UCX_NET_DEVICES "$@" "$kind" 8 "$n" "$out.turns" >"$tmp/out" 2>&1 </dev/null ||
    { echo "bench/instructions.sh: failed: $*"; tail -n 5 "$tmp/out"; exit 1; }
  rm "$out.turns"
}
on_node() { # MPI KIND CALL...
  local n mpi=$1 kind=$2 few=200 many=2200
  shift 2
  for n in $few $many; do node_run "$mpi" "$tmp/$mpi.node-$kind.$n" "$kind" "$n" "$@"; done
  more "$mpi.node-$kind" $((many - few)) "$tmp/$mpi.node-$kind.$few".* -- "$tmp/$mpi.node-$kind.$many".*
}
for m in mrmpi openmpi mpich; do
  on_node $m isend MPI_Isend MPI_Wait
  on_node $m irecv MPI_Irecv MPI_Wait
  on_node $m recv MPI_Recv
  round_trip $m
  isend $m 1
  put $m
done
isend mrmpi 2
isend mrmpi 4
sum() { awk '{s += $2} END {print s}' "$tmp/$1.each"; }
row() { # TEXT MRMPI OPENMPI MPICH
  awk -v text="$1" -v a="$(sum "$2")" -v b="$(sum "$3")" -v c="$(sum "$4")" \
    'BEGIN {printf "%-20s %8d %9d %8d %8.2f\n", text, a, b, c, (b < c ? b : c) / a}'
}
printf '%-20s %8s %9s %8s %8s\n' instructions mrmpi "Open MPI" MPICH ratio
row "round trip" mrmpi.trip openmpi.trip mpich.trip
for r in 1 2 4; do row "MPI_Isend, $r rail$([ $r = 1 ] || echo s)" mrmpi.isend$r openmpi.isend1 mpich.isend1; done
row "MPI_Put, 1 rail" mrmpi.put openmpi.put mpich.put
row "node: Isend, Wait" mrmpi.node-isend openmpi.node-isend mpich.node-isend
row "node: Irecv, Wait" mrmpi.node-irecv openmpi.node-irecv mpich.node-irecv
row "node: Recv" mrmpi.node-recv openmpi.node-recv mpich.node-recv
for m in mrmpi openmpi mpich; do
  printf 'round trip, %s: %s\n' $m "$(awk '{printf "%s%s %s", sep, $1, $2; sep = ", "}' "$tmp/$m.trip.each")"
done
