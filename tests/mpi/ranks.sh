#!/usr/bin/env bash
# timeout: 1800
# The MPI programs over shared memory, with the numbers of ranks that shm.sh has not for them (see run-mpi.sh).
OTHER_RANKS=yes exec bash "$(dirname "$0")/run-mpi.sh" shm "$@"
