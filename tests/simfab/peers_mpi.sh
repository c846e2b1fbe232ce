#!/usr/bin/env bash
# Debian's Open MPI and MPICH, unmodified, over UCX between two simulated hosts, with one rail and with two: latency and
# bandwidth of NetPIPE by the model's arithmetic, and four ranks. Open MPI's own progress reads the time stamp counter
# (answered by a trap), MPI_Wtime of both and UCX read virtual clocks.
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/peers.inc"
command -v opensm >/dev/null || skip_all "opensm is not installed"
on_exit fabric_end
export UCX_TLS=rc_v,self UCX_LOG_LEVEL=warn MPIR_CVAR_NOLOCAL=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

rails() { # N
  export UCX_MAX_RNDV_RAILS=$1 UCX_NET_DEVICES=mlx5_0:1
  [ "$1" = 1 ] || UCX_NET_DEVICES+=,mlx5_1:1
}
launch_openmpi() { timeout 100 mpirun.openmpi --oversubscribe --mca pml ucx --mca btl '^vader,tcp,openib' "$@"; }
launch_mpich() { timeout 100 mpiexec.hydra "$@"; }
# MPI RANKS PROGRAM ARGS: so many ranks on each host; output in $tmp/mpi
ranks() {
  local mpi=$1 n=$2
  shift 2
  launch_$mpi -n $n simfab exec h1 -- "$@" : -n $n simfab exec h2 -- "$@" >"$tmp/mpi" 2>&1 </dev/null || { cat "$tmp/mpi"; return 1; }
  if grep -E 'WARN|ERROR|rror:' "$tmp/mpi"; then return 1; fi
}
np() { # MPI BYTES REPEATS: microseconds, one way
  local program=NPopenmpi
  [ "$1" = openmpi ] || program=NPmpich2
  ranks $1 1 $program -o "$tmp/np" -l $2 -u $2 -p 0 -n $3 || return 1
  us=$(awk '/-->/ {for (i = 1; i < NF; i++) if ($i == "in") v = $(i + 1)} END {print v}' "$tmp/mpi")
}

check() { # MPI
  local low high us one two
  for r in 1 2; do
    rails $r
    ok "$fabric_model: $1, rails: $r: 8 bytes" np $1 8 200
    read -r low high < <(arith latency 16)
    ok "$fabric_model: the latency is by the arithmetic" between "$us" "$low" "$high"
    ok "$fabric_model: $1, rails: $r: 1 MiB" np $1 1048576 20
    [ $r = 1 ] && one=$(awk -v u="$us" 'BEGIN {print 1048576 / u}') || two=$(awk -v u="$us" 'BEGIN {print 1048576 / u}')
  done
  read -r low high < <(arith rate 1048576)
  ok "$fabric_model: the bandwidth of one rail is by the arithmetic, less 10 % for the rendezvous" \
    between "$one" "$(awk -v x="$low" 'BEGIN {print 0.9 * x}')" "$high"
  ok "$fabric_model: two rails carry from 1.75 (what is said before the data is not halved) to 2 times as much" \
    between "$(awk -v a="$two" -v b="$one" 'BEGIN {print a / b}')" 1.75 2.01
}

for model in ${1:-sdr-pcix}; do
  ok "the subnet of model $model comes up" fabric $model
  for mpi in openmpi mpich; do
    if ! command -v mpicc.$mpi >/dev/null || ! command -v mpirun.$mpi >/dev/null; then
      ok "$mpi # SKIP not installed" true
      continue
    fi
    rails 2
    ok "mpicc.$mpi compiles a program of ours" mpicc.$mpi -O1 -o "$tmp/ring.$mpi" "$(dirname "$0")/peers_ring.c"
    ok "$model: $mpi: four ranks on two hosts: everybody talks to everybody" ranks $mpi 2 "$tmp/ring.$mpi"
    like "all of them, and what arrives is what was sent" '^4 ranks, 0 wrong$' "$tmp/mpi"
    if command -v "NP${mpi/mpich/mpich2}" >/dev/null; then
      check $mpi
    else
      ok "NetPIPE for $mpi # SKIP not installed" true
    fi
  done
  fabric_end
done
done_testing
