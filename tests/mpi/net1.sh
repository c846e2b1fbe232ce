#!/usr/bin/env bash
# timeout: 900
# The MPI programs, mode net1 (see run-mpi.sh). Without a pattern with two ranks and with seven; the other numbers of ranks
# are left to net1_all.sh: shm.sh has them.
[ $# -gt 0 ] || export MPI_TEST_RANKS='2 7'
exec bash "$(dirname "$0")/run-mpi.sh" net1 "$@"
