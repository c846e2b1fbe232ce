#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Collectives (coll.c) under mrmpi, Open MPI and MPICH on simulated hosts: virtual time, in which copying and computing on a
# host are free and a rank of the same host hears of memory after about 0.5 us. The last column: the better peer's time and
# mrmpi's, above 1 mrmpi is ahead; a missing figure is a failure.
# CASES, "hosts x ranks a host x rails" each ("8x1x1 8x1x2 8x4x1 8x4x2"), MODEL (hdr), COLLS, BYTES, WHO: less of it.
#
# Each peer has its best of several set-ups: UCX as it is, and large messages written by the sender. To both the simulated
# hosts look like one machine. So UCX reads another boot_id on each host, for which a mount namespace is needed, and
# shares memory inside a host only. MPICH's own shared memory, and its collectives of two levels, need ranks in turn over
# the hosts (MPIR_CVAR_NUM_CLIQUES): that is one more set-up.
set -u
cd "$(dirname "$0")/.." || exit 2
. tests/tap.sh
. tests/simfab/peers.inc
. bench/peers_mpi.inc
: "${CASES:=8x1x1 8x1x2 8x4x1 8x4x2}" "${MODEL:=hdr}" "${WHO:=mrmpi openmpi mpich}" "${BYTES:=8 1024 65536 1048576}"
: "${COLLS:=barrier,bcast,reduce,allreduce,gather,scatter,allgather,alltoall}"
export UCX_LOG_LEVEL=error OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MRMPI_LOG_LEVEL=0
for program in mpicc.mpich mpicc.openmpi mpiexec.hydra mpirun.openmpi unshare; do
  command -v $program >/dev/null || { echo "bench/coll_hosts.sh: $program is not installed (packaging/install-deps)"; exit 1; }
done
unshare --mount true || { echo "bench/coll_hosts.sh: needs mount namespaces (root)"; exit 1; }
for mpi in mpich openmpi; do mpicc.$mpi -O2 -w -o "$tmp/coll.$mpi" bench/coll.c || exit 1; done
bad=0

cat >"$tmp/on" <<'END' # HOST DEVICES PROGRAM...: a rank of a peer, on a host that is a machine of its own to UCX
#!/bin/sh
mount --bind "${0%/*}/boot.$1" /proc/sys/kernel/random/boot_id || exit 1
host=$1
export UCX_NET_DEVICES=$2
shift 2
exec simfab exec "$host" -- "$@"
END
chmod +x "$tmp/on"

# LIBRARY blocks|turns SETTING...: ranks in blocks or in turn over the hosts; appends to $tmp/all
run() {
  local mpi=$1 order=$2 bin=$tmp/coll.mpich devices i h ranks=()
  shift 2
  [ "$mpi" != openmpi ] || bin=$tmp/coll.openmpi
  devices=$(mpi_devices "$rails" , "" :1)
  if [ "$mpi" = mrmpi ]; then
    set -- env "$@" MRMPI_RAILS_MAX="$rails" mrrun -n $((hosts * each)) --ppn "$each" "$bin" -q
  else
    for ((i = 0; i < hosts * each; i++)); do
      [ "$order" = blocks ] && h=$((i / each + 1)) || h=$((i % hosts + 1))
      # shellcheck disable=SC2206  # words
      ranks+=(${ranks:+:} -n 1 unshare --mount "$tmp/on" "h$h" "$devices" "$bin" -q "$COLLS" $BYTES)
    done
    set -- env UCX_TLS=rc_v,sm,self UCX_MAX_RNDV_RAILS="$rails" "$@"
    case $mpi in
      openmpi) set -- "$@" mpirun.openmpi --oversubscribe --mca pml ucx --mca btl '^vader,tcp,openib' ;;
      mpich) set -- "$@" mpiexec.hydra ;;
    esac
  fi
  # shellcheck disable=SC2086  # words
  [ "$mpi" != mrmpi ] || ranks=("$COLLS" $BYTES)
  timeout 600 simfab run --topology "$tmp/net" --model "$MODEL" -- "$@" "${ranks[@]}" >"$tmp/out" 2>"$tmp/err" </dev/null ||
    echo "($mpi $order: $(tail -n 1 "$tmp/err"))" >&2
  awk -v m="$mpi" 'NF == 3 && $3 > 0 { print m, $1, $2, $3 }' "$tmp/out" >>"$tmp/all"
}

peers() {
  [[ $WHO != *openmpi* ]] || run openmpi blocks UCX_RNDV_SCHEME=auto
  [[ $WHO != *openmpi* ]] || run openmpi blocks UCX_RNDV_SCHEME=put_zcopy UCX_RNDV_THRESH=16k
  [[ $WHO != *mpich* ]] || run mpich blocks MPIR_CVAR_NOLOCAL=1
  [[ $WHO != *mpich* ]] || run mpich blocks MPIR_CVAR_NOLOCAL=1 UCX_RNDV_SCHEME=put_zcopy UCX_RNDV_THRESH=16k
  [[ $WHO != *mpich* ]] || [ "$each" = 1 ] || run mpich turns MPIR_CVAR_NUM_CLIQUES="$hosts"
}

for case in $CASES; do
  IFS=x read -r hosts each rails <<<"$case"
  simfab topology star --hosts "$hosts" --rails "$rails" >"$tmp/net" || exit 1
  for ((h = 1; h <= hosts; h++)); do printf '%08x-0000-4000-8000-%012x\n' $h $h >"$tmp/boot.h$h"; done
  : >"$tmp/all"
  [[ $WHO != *mrmpi* ]] || run mrmpi blocks MRMPI_LOG_LEVEL=0
  peers
  printf '\nsimulated, %s: %s hosts, ranks on each: %s, rails: %s; us\n%-10s %8s %10s %10s %10s %7s\n' \
    "$MODEL" "$hosts" "$each" "$rails" "" bytes mrmpi "Open MPI" MPICH ratio
  for c in ${COLLS//,/ }; do for b in $BYTES; do echo "$c $b"; done; done >"$tmp/order"
  awk -v who="$WHO" '
    function text(who_, x) { return x != "" ? sprintf("%.2f", x) : index(who, who_) ? "failed" : "-" }
    FILENAME == ARGV[1] { k = $1 " " $2 " " $3; if (!(k in v) || $4 < v[k]) v[k] = $4; next }
    { a = v["mrmpi " $0]; b = v["openmpi " $0]; c = v["mpich " $0]
      best = b == "" || c != "" && c < b ? c : b
      r = a == "" || best == "" ? "" : sprintf("%.2f", best / a)
      line = sprintf("%-10s %8d %10s %10s %10s %7s%s", $1, $2, text("mrmpi", a), text("openmpi", b), text("mpich", c), r, r != "" && r < 1 ? " <" : "")
      bad += line ~ /failed/
      print line }
    END { exit bad > 0 }' "$tmp/all" "$tmp/order" || bad=1
done
exit $bad
