#!/usr/bin/env bash
# What `make check` tries on the kernel's soft-RoCE, in one machine; --all: more of it, for `make check-all`. `make
# check-rxe` tries all.
# timeout: 900
# timeout --all: 1500
. "$(dirname "$0")/lab.sh"
[ "${1:-}" = --all ] && lab_tap 1480 'netpipe 250: bash tests/rxe/netpipe.sh inside' \
  'addresses 250: bash tests/rxe/addresses.sh inside' \
  'faults 500: bash tests/rxe/faults.sh inside middle' \
  'down 250: bash tests/rxe/down.sh inside' \
  'mpi 120: bash tests/mpi/run-mpi.sh rxe2 "^request$"'
lab_tap 800 \
  'addresses 120: bash tests/rxe/addresses.sh inside short' \
  'faults 150: bash tests/rxe/faults.sh inside short' \
  'down 150: bash tests/rxe/down.sh inside short' \
  'mpi 120: MPI_TEST_RANKS=4 bash tests/mpi/run-mpi.sh rxe2 "^request$"'
