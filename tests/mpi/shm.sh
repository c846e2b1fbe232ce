#!/usr/bin/env bash
# timeout: 900
# The MPI programs, mode shm (see run-mpi.sh). Without a pattern with one rank, and with the most that a program is for; other
# numbers are left to --all: net1.sh and net2.sh have two, three and seven. So is a program whose windows take gigabytes.
[ "${1:-}" = --all ] && set -- .
[ $# -gt 0 ] || export MPI_TEST_RANKS='1 most' MPI_TEST_NOT='^rma_large huge$'
exec bash "$(dirname "$0")/run-mpi.sh" shm "$@"
