#!/usr/bin/env bash
# timeout: 900
# timeout --all: 1800
# The MPI programs, mode net1 (see run-mpi.sh). Without a pattern with two ranks and with seven; the other numbers of ranks
# are left to --all: shm.sh has them.
[ "${1:-}" = --all ] && set -- .
[ $# -gt 0 ] || export MPI_TEST_RANKS='2 7'
exec bash "$(dirname "$0")/run-mpi.sh" net1 "$@"
