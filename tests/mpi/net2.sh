#!/usr/bin/env bash
# timeout: 900
# timeout --all: 1800
# The MPI programs, mode net2 (see run-mpi.sh). Without a pattern those that move no data of a kind of their own, and one more, are
# left to --all: net1.sh has them. The others run with three ranks, collectives with sixteen, too.
. "$(dirname "$0")/choice.inc"
[ "${1:-}" = --all ] && set -- .
[ $# -gt 0 ] || export MPI_TEST_NOT="$no_data|$one_rail" MPI_TEST_RANKS=3 MPI_TEST_MORE='^coll$' MPI_TEST_MORE_RANKS='3 16'
exec bash "$(dirname "$0")/run-mpi.sh" net2 "$@"
