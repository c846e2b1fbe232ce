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
done_testing
