#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# HDF5 as Debian builds it for MPICH, and a program that MPICH's compiler made: both run unchanged, their MPI is this one. On the
# node, and between two simulated hosts. What MPICH writes this library reads, and the other way round.
# timeout: 200
. "$(dirname "$0")/../tap.sh"
[ -z "$(sanitizers)" ] || skip_all "a program of others does not link a sanitizer's runtime first"
flags=$(pkg-config --cflags --libs hdf5-mpich 2>/dev/null) && command -v mpicc.mpich >/dev/null ||
  skip_all "HDF5 for MPICH is not installed (Debian's libhdf5-mpich-dev)"
here=$(cd "$(dirname "$0")" && pwd)
export MRMPI_LOG_LEVEL=0

ok "MPICH's compiler compiles it" mpicc.mpich -O1 -o "$tmp/interleaved" "$here/hdf5/interleaved.c" $flags
run() { timeout -k 5 60 "$@" "$tmp/interleaved" "$tmp/data.h5" >"$tmp/out" 2>&1; cat "$tmp/out"; grep -qx right "$tmp/out"; }
for n in 1 2 3 4 7; do ok "$n ranks on a node" run mrrun -n $n; done
ok "4 ranks on two hosts" run simfab run --topology "$here/../../etc/topologies/two-hosts-two-rails.net" -- mrrun -n 4 --ppn 2
if command -v h5dump >/dev/null; then
  # the last kind: collective, in chunks; ranks 0 to 3 in turn
  is "another program reads what was written" \
    "$(h5dump -d data -s 0,0 -c 2,6 "$tmp/data.h5" | sed -n 's/^ *([0-9],[0-9]*): //p' | tr -d ',' | xargs | sed 's/ /, /g')" \
    "3, 100003, 200003, 300003, 4, 100004, 27, 100027, 200027, 300027, 28, 100028"
else
  ok "another program reads what was written # SKIP h5dump is not installed" true
fi
done_testing
