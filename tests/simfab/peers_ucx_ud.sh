#!/usr/bin/env bash
# UCX over datagrams, unmodified: its description of them, ucx_perftest, and Open MPI and MPICH, between two simulated
# hosts. Typical times follow the model's arithmetic, a whole run need not: one of UCX's two threads is now and then
# late for the other, on a busy machine, and then a timer of 100 ms goes on.
# timeout: 600
. "$(dirname "$0")/../tap.sh"
. "$(dirname "$0")/peers.inc"
command -v opensm >/dev/null || skip_all "opensm is not installed"
command -v ucx_perftest >/dev/null || skip_all "ucx-utils is not installed"
on_exit fabric_end
export UCX_LOG_LEVEL=warn UCX_TLS=ud_v,self MPIR_CVAR_NOLOCAL=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

run() { ok "$fabric_model: ucx_perftest $*" pair ucx_perftest "$@"; }
typical() { awk '/^Final:/ {v = $3} END {print v}' "$tmp/client"; } # us, half of them are not slower
# On a busy machine there are runs in which the two threads of UCX get in each other's way at most messages.
by_arithmetic() { # LOW HIGH
  local i
  for i in 1 2 3; do
    between "$(typical)" "$1" "$2" && return
    pair ucx_perftest -t tag_lat -n 500 -w 10
  done
  return 1
}
messages() { awk '/^Final:/ {v = $2} END {print v}' "$tmp/client"; }
launch_openmpi() { timeout 100 mpirun.openmpi --oversubscribe --mca pml ucx --mca btl '^vader,tcp,openib' "$@"; }
launch_mpich() { timeout 100 mpiexec.hydra "$@"; }
ring() { launch_$1 -n 2 simfab exec h1 -- "$tmp/ring.$1" : -n 2 simfab exec h2 -- "$tmp/ring.$1" >"$tmp/mpi" 2>&1 </dev/null; }

for model in ${1:-sdr-pcix}; do
  ok "the subnet of model $model comes up" fabric "$model"
  simfab exec h1 -- ucx_info -d >"$tmp/info" 2>&1
  is "$model: ucx_info -d finds datagrams on both adapters" "$(grep -c 'Transport: ud_verbs' "$tmp/info")" 2
  run -t tag_lat -n 500 -w 10
  is "as many messages as it was told" "$(messages)" 500
  read -r low high < <(arith latency 56 0) # with UCX's header of 8 bytes and the receiver's 40 of a global one
  ok "$model: the typical one is by the model's arithmetic, rounded to what its clock counts, in one of three runs" \
    by_arithmetic "$(awk -v x="$low" 'BEGIN {print int(x)}')" "$(awk -v x="$high" 'BEGIN {print int(x) + 1}')"
  for t in "tag_bw -s 65536" "tag_lat -s 4096" stream_lat ucp_am_lat "ucp_put_lat" "tag_lat -E sleep"; do
    # shellcheck disable=SC2086
    run -n 100 -w 10 -t $t
  done
  ok "$model: who sleeps is woken by messages, not by UCX's timers of 100 ms" between "$(typical)" 0 1000
  for t in am_lat am_bw "am_lat -D bcopy -s 1000"; do
    # shellcheck disable=SC2086
    run -d mlx5_0:1 -x ud_verbs -n 200 -w 10 -t $t
  done
  for mpi in openmpi mpich; do
    if ! command -v mpicc.$mpi >/dev/null || ! command -v mpirun.$mpi >/dev/null; then
      ok "$mpi # SKIP not installed" true
      continue
    fi
    mpicc.$mpi -O1 -o "$tmp/ring.$mpi" "$(dirname "$0")/peers_ring.c"
    ok "$model: $mpi over datagrams: four ranks on two hosts" ring $mpi
    like "all of them, and what arrives is what was sent" '^4 ranks, 0 wrong$' "$tmp/mpi"
  done
  fabric_end
done
done_testing
