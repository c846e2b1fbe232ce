#!/usr/bin/env bash
# The MPI programs, mode shm (see run-mpi.sh).
exec bash "$(dirname "$0")/run-mpi.sh" shm "$@"
