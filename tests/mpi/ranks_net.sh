#!/usr/bin/env bash
# timeout: 1800
# The MPI programs over one rail, with the numbers of ranks that net1.sh has not for them (see run-mpi.sh).
OTHER_RANKS=yes exec bash "$(dirname "$0")/run-mpi.sh" net1 "$@"
