#!/usr/bin/env bash
# timeout: 1800
# The MPI programs, mode net2 (see run-mpi.sh), all of them.
exec bash "$(dirname "$0")/run-mpi.sh" net2 .
