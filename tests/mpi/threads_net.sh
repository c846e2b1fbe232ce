#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Many threads in both ranks, between simulated hosts: they take turns, and wait for each other in the engine (simfab/TIME.md).
. "$(dirname "$0")/../tap.sh"
topology=$(dirname "$0")/../../etc/topologies/two-hosts-two-rails.net
for rails in 1 2; do
  ok "many threads in two ranks, $rails rails" timeout -k 5 120 env MRMPI_RAILS_MAX=$rails MRMPI_LOG_LEVEL=0 \
    simfab run --topology "$topology" -- mrrun -n 2 "$BUILD/tests/mpi/p2p_threads"
done
for links in rc ud; do
  ok "other threads get on while the launcher is asked, $links" timeout -k 5 120 env MRMPI_LINKS=$links MRMPI_LOG_LEVEL=0 \
    simfab run --topology "$topology" -- mrrun -n 2 --hosts h1,h2 "$BUILD/tests/mpi/slow_card"
done
ok "both the address and the peer's request are there when a rank looks again" timeout -k 5 120 env MRMPI_LOG_LEVEL=0 \
  simfab run --topology "$topology" -- mrrun -n 2 --hosts h1,h2 "$BUILD/tests/mpi/slow_card" away
# Threads of a program wait for each other, not for helpers: the engine need not ask the kernel before it moves time (5,980 looks
# if it does, some hundreds while the job begins and ends)
looks() {
  timeout -k 5 120 env MRMPI_LOG_LEVEL=0 simfab run --topology "$topology" -- \
    bash -c 'mrrun -n 2 --ppn 1 "$BUILD/tests/mpi/p2p_threads" >&2 && simfab status | sed -n "s/looks at threads out of sight: \([0-9]*\).*/\1/p"'
}
ok "waits of threads for each other are no looks outside" test "$(looks)" -lt 2500
done_testing
