#!/usr/bin/env bash
# timeout: 1800
# The MPI programs, mode net1 (see run-mpi.sh), all of them with all their numbers of ranks.
exec bash "$(dirname "$0")/run-mpi.sh" net1 .
