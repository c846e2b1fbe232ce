#!/usr/bin/env bash
# timeout: 3000
# The MPI programs over two rails, with the numbers of ranks that net2.sh has not for them (see run-mpi.sh).
OTHER_RANKS=yes MPI_TEST_TIMEOUT=400 exec bash "$(dirname "$0")/run-mpi.sh" net2 "$@"
