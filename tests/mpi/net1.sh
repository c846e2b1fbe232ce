#!/usr/bin/env bash
# timeout: 900
# The MPI programs, mode net1 (see run-mpi.sh).
exec bash "$(dirname "$0")/run-mpi.sh" net1 "$@"
