#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Large messages between two ranks of a node (near.c): by counters, and by the order of events, on any number of cores and under
# any load. What pages of the pool cost is set, so the trial of pushes comes late, or at once.
. "$(dirname "$0")/../tap.sh"
export MRMPI_OVERSUBSCRIBED=0 MRMPI_LOG_LEVEL=0
near() { # ARGS...
  timeout -k 5 100 mrrun -n 2 "$BUILD/tests/mpi/near" "$@" >"$tmp/out" 2>&1 </dev/null
  is "near $*" "$? $(head -c 500 "$tmp/out")" "0 "
}
if ! mrrun -n 2 --stats "$BUILD/tests/mpi/p2p_truncate" 2>&1 </dev/null | grep -q ' by_single_copy=[1-9]'; then
  skip_all "the kernel refuses copies between processes"
fi
near exchanges
MRMPI_MODEL=page_ns=1000000 near meets
MRMPI_MODEL=page_ns=1000000 near cold
MRMPI_MODEL=page_ns=0 near cold pushes
done_testing
