#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# MRMPI_ASYNC_PROGRESS: targets that are in no MPI function do what is asked of their windows, on one host and between two.
# timeout: 200
. "$(dirname "$0")/../tap.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
export MRMPI_LOG_LEVEL=0 MRMPI_LEAKS=yes

quiet() { # COMMAND...: it succeeds and prints nothing
  timeout -k 5 100 "$@" >"$tmp/out" 2>&1 </dev/null
  local rc=$?
  cat "$tmp/out"
  [ $rc = 0 ] && [ ! -s "$tmp/out" ]
}
simulated() { quiet simfab run --topology "$root/etc/topologies/two-hosts-two-rails.net" -- env "$1" mrrun -n "$2" --ppn $((($2 + 1) / 2)) "${@:3}"; }

export MRMPI_ASYNC_PROGRESS=yes
for n in 1 2 4; do ok "one host, $n ranks" quiet mrrun -n $n "$BUILD/tests/mpi/rma_async"; done
for kinds in auto uc ud; do ok "two hosts, four ranks, $kinds" simulated MRMPI_LINKS=$kinds 4 "$BUILD/tests/mpi/rma_async"; done
for program in coll_i nbc p2p_sizes rma_mix rma_lock; do ok "and $program runs as ever" quiet mrrun -n 3 "$BUILD/tests/mpi/$program"; done
ok "between hosts, too" simulated MRMPI_LINKS=auto 4 "$BUILD/tests/mpi/rma_mix"
export MRMPI_ASYNC_PROGRESS=no
ok "without it windows say so" quiet mrrun -n 2 "$BUILD/tests/mpi/rma_async" no
done_testing
