#!/usr/bin/env bash
# timeout: 900
# timeout --all: 1800
# The MPI programs, mode net1 (see run-mpi.sh). Without a pattern with two ranks. Of those that move no data of a kind of their
# own, which net2.sh leaves out, communicators and collectives with seven too; the other numbers of ranks are left to --all:
# shm.sh and net2.sh have them. So are two programs that net2.sh has.
. "$(dirname "$0")/choice.inc"
[ "${1:-}" = --all ] && set -- .
[ $# -gt 0 ] || export MPI_TEST_NOT=$two_rails MPI_TEST_RANKS=2 MPI_TEST_MORE=$of_ranks MPI_TEST_MORE_RANKS='2 7'
exec bash "$(dirname "$0")/run-mpi.sh" net1 "$@"
