#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 600
# Both ways to copy into memory that the ranks of a node share, whatever this machine is better at, and areas for
# collectives of the size that ranks with a core each have, on any number of cores.
. "$(dirname "$0")/../tap.sh"
export MRMPI_OVERSUBSCRIBED=0
for stream in 1 0; do
  for program in coll_node coll coll_parts p2p_order; do
    export MRMPI_SHM_STREAM=$stream MPI_TEST_RANKS="2 3"
    ok "$program, MRMPI_SHM_STREAM=$stream" bash "$(dirname "$0")/run-mpi.sh" shm "^$program$"
  done
done
done_testing
