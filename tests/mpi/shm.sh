#!/usr/bin/env bash
# timeout: 900
# The MPI programs, mode shm (see run-mpi.sh). Without a pattern with one rank, with seven, sixteen and more, and with the most
# that a program is for; two, three and four are left to --all: net1.sh and net2.sh have the first two.
[ "${1:-}" = --all ] && set -- .
[ $# -gt 0 ] || export MPI_TEST_RANKS='1 7 16 64 most'
exec bash "$(dirname "$0")/run-mpi.sh" shm "$@"
