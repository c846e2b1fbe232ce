#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Collectives while the network between two hosts goes away: where the ports are up, every one
# ends with an error on every rank, and none hangs.
. "$(dirname "$0")/../tap.sh"
topology=$(cd "$(dirname "$0")/../.." && pwd)/etc/topologies/two-hosts-two-rails.net

run() {
  MRMPI_RAILS_MAX=1 MRMPI_LOG_LEVEL=0 timeout -k 5 120 simfab run --topology "$topology" -- \
    timeout -k 5 90 mrrun -n 4 --ppn 2 "$BUILD/tests/mpi/coll_lost" 'simfab fault link "h2 mlx5_0" 1 down' >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc -ne 0 ] && [ $rc -lt 124 ] # the program ends by MPI_Abort
}
ok "the job ends" run
is "each rank there has had an error from every collective" "$(grep -c '^4 errors' "$tmp/out")" 2
like "it ended as it should" 'aborted the job with code 7' "$tmp/out"
like "what has been lost is said" 'h1. error: rank [23] on h2' "$tmp/out"
done_testing
