#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The memory cost of a flood: FLOOD_COUNT (100000) MPI_Sends of 4 KiB to a rank that receives them later
# (bench/flood.c), under mrmpi and Debian's MPICH, between two simulated hosts (model hdr, one rail) and inside this
# host. The growth of the peak of each process's memory, in MiB; ratio > 1: mrmpi takes less, of sender and receiver
# together. The receiver is away (outside MPI), or probes for another message, so that the library takes in arrivals.
# MPICH on the simulated hosts takes minutes; FLOOD_SECONDS (900) and 4 GiB of addresses beyond the size of the
# messages are its bounds.
set -u
: "${BUILD:?set BUILD to the build directory}" "${FLOOD_COUNT:=100000}" "${FLOOD_SECONDS:=900}"
export FLOOD_COUNT FLOOD_SECONDS PATH=$BUILD/bin:/usr/sbin:/sbin:$PATH
cd "$(dirname "$0")/.." || exit 1
bytes=4096

run() { # mrmpi|mpich HOW SECONDS: "SENDER RECEIVER" in KiB
  local each=("$FLOOD" "$2" "$FLOOD_COUNT" $bytes "$3")
  if [ "$1" = mrmpi ]; then
    local hosts=()
    [ "$where" = net ] && hosts=(--hosts h1=mlx5_0,h2=mlx5_0)
    set -- mrrun -n 2 "${hosts[@]}" "${each[@]}"
  elif [ "$where" = net ]; then
    set -- mpiexec.hydra -n 1 simfab exec h1 -- "${each[@]}" : -n 1 simfab exec h2 -- "${each[@]}"
  else
    set -- mpiexec.hydra -n 2 "${each[@]}"
  fi
  (ulimit -v $((4 * 1024 * 1024 + FLOOD_COUNT * bytes / 1024 * 2)) && exec timeout "$FLOOD_SECONDS" "$@") \
    2>"$FLOOD.err" </dev/null |
    awk '{for (i = 1; i < NF; i++) v[$i] = $(i + 1)} END {if (v["receiver"] == "") exit 1; print v["sender"], v["receiver"]}'
}
row() { # HOW SECONDS
  local ours theirs
  ours=$(run mrmpi "$1" "$2") || { echo "bench/flood.sh: mrmpi failed:"; tail -n 5 "$FLOOD.err"; exit 1; }
  theirs=$(run mpich "$1" "$2")
  awk -v w="$where, $1" -v a="$ours" -v b="$theirs" 'BEGIN {
    split(a, x); n = split(b, y)
    printf "%-14s %14.1f %14.1f", w, x[1] / 1024, x[2] / 1024
    if (n < 2) print "  MPICH failed, or went beyond its bounds"
    else printf " %14.1f %14.1f %8.2f\n", y[1] / 1024, y[2] / 1024, (y[1] + y[2]) / (x[1] + x[2]) }'
}
rows() { # WHERE SECONDS
  where=$1
  for how in away probing; do row $how "$2"; done
}
microseconds() { awk -v n="$FLOOD_COUNT" -v t="$1" 'BEGIN {print n * t / 1e6}'; }

if [ -n "${FLOOD:-}" ]; then # on the simulated hosts
  export MRMPI_LOG_LEVEL=0 UCX_LOG_LEVEL=error UCX_TLS=rc_v,self UCX_NET_DEVICES=mlx5_0:1 MPIR_CVAR_NOLOCAL=1
  rows net "$(microseconds 1)" # the time in which the messages could all arrive
  exit
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export FLOOD=$tmp/flood
mpicc.mpich -O2 -Wall -o "$FLOOD" bench/flood.c || exit 1
printf '%-14s %14s %14s %14s %14s %8s   (%s messages of %s bytes; net: simulated hosts)\n' "MiB" "mrmpi sender" receiver \
  "MPICH sender" receiver ratio "$FLOOD_COUNT" $bytes
simfab run --topology two-hosts-two-rails --model hdr -- bash bench/flood.sh || exit 1
rows shm "$(microseconds 5)"
