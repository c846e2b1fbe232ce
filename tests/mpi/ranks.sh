#!/usr/bin/env bash
# timeout: 3000
# The MPI programs over shared memory, with the numbers of ranks that shm.sh has not for them (see run-mpi.sh).
OTHER_RANKS=yes MPI_TEST_TIMEOUT=400 exec bash "$(dirname "$0")/run-mpi.sh" shm "$@"
