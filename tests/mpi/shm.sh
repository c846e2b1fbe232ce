#!/usr/bin/env bash
# timeout: 900
# The MPI programs, mode shm (see run-mpi.sh).
exec bash "$(dirname "$0")/run-mpi.sh" shm "$@"
