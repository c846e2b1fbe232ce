#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Messages of more than 2 GiB, inside a host and over two rails. Needs some 6 GiB of memory.
. "$(dirname "$0")/../tap.sh"
avail=$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
[ "$avail" -ge 6 ] || skip_all "only $avail GiB of memory are free"
topology=$(dirname "$0")/../../etc/topologies/two-hosts-two-rails.net
ok "1 GiB + 1 and 2.25 GiB through shared memory" timeout 200 mrrun -n 2 "$BUILD/tests/mpi/p2p_huge"
ok "1 GiB + 1 over one rail" \
  timeout 200 env MRMPI_RAILS_MAX=1 simfab run --topology "$topology" -- mrrun -n 2 "$BUILD/tests/mpi/p2p_huge" 0
ok "1 GiB + 1 and 2.25 GiB over two rails" \
  timeout 200 simfab run --topology "$topology" -- mrrun -n 2 "$BUILD/tests/mpi/p2p_huge"
done_testing
