#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Datatypes inside one host: packing, unpacking and half a round trip (bench/types.c), in us, under mrrun, Debian's MPICH and
# Open MPI, turn by turn, each rank bound to a core of its own where there are two. The least of $RUNS runs. "peer": the
# better peer's time over mrmpi's, > 1: mrmpi is better. "copy": the time of a memcpy of as many bytes over mrmpi's; what a
# type leaves out is read with the rest of its cache lines, so doubles of which every second counts have 0.67 at most where
# memory is the limit. TYPES_BYTES: how large a type is.
set -u
: "${BUILD:?set BUILD to the build directory}"
: "${RUNS:=5}"
: "${TYPES_BYTES:=8192 65536 1048576}"
PATH=$BUILD/bin:$PATH
for program in mpicc.mpich mpiexec.hydra mpicc.openmpi mpirun.openmpi taskset; do
  command -v "$program" >/dev/null || { echo "bench/types.sh: $program is not installed (packaging/install-deps)"; exit 1; }
done
cd "$(dirname "$0")" || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
for m in mpich openmpi; do "mpicc.$m" -O2 -Wall -o "$tmp/types.$m" types.c || exit 1; done
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# shellcheck disable=SC2016  # the inner shell expands it
if [ "$(nproc)" -ge 2 ]; then
  bind='exec taskset -c ${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-0}}} "$@"'
else
  bind='exec "$@"'
fi
once() { # mrmpi|mpich|openmpi bytes
  local start program=$tmp/types.mpich
  case $1 in
    mrmpi) start=(mrrun) ;;
    mpich) start=(mpiexec.hydra) ;;
    openmpi) start=(mpirun.openmpi --bind-to none --oversubscribe) program=$tmp/types.openmpi ;;
  esac
  timeout 300 "${start[@]}" -n 2 sh -c "$bind" sh "$program" "$2" 2>"$tmp/err" </dev/null | sed "s/^/$1 /" >>"$tmp/$2" ||
    { echo "bench/types.sh: failed under ${start[0]}:" >&2; tail -n 5 "$tmp/err" >&2; return 1; }
}

set -o pipefail
for bytes in $TYPES_BYTES; do
  for ((i = 0; i < RUNS; i++)); do
    once mrmpi "$bytes" && once mpich "$bytes" && once openmpi "$bytes" || exit 1
  done
  printf '%-16s %8s' type bytes
  printf '  %8s %8s %8s %5s %5s' pack MPICH Open peer copy unpack MPICH Open peer copy
  printf '  %8s %8s %8s %5s\n' half-rtt MPICH Open peer
  awk '
    !($2 in bytes) {order[++k] = $2; bytes[$2] = $3}
    {for (f = 4; f <= 7; f++) if (!(($1, $2, f) in t) || $f < t[$1, $2, f]) t[$1, $2, f] = $f}
    END {
      for (i = 1; i <= k; i++) {
        n = order[i]
        printf "%-16s %8d", n, bytes[n]
        for (f = 4; f <= 6; f++) {
          a = t["mrmpi", n, f]; b = t["mpich", n, f]; c = t["openmpi", n, f]
          printf "  %8.2f %8.2f %8.2f %5.2f", a, b, c, (b < c ? b : c) / a
          if (f < 6) printf " %5.2f", t["mrmpi", n, 7] / a
        }
        print ""
      }
    }' "$tmp/$bytes"
done
