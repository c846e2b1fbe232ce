#!/usr/bin/env bash
# What `make check` tries on the kernel's soft-RoCE, in one machine; short_all.sh more of it, and `make check-rxe` all.
# timeout: 900
. "$(dirname "$0")/lab.sh"
lab_tap 800 \
  'addresses 120: bash tests/rxe/addresses.sh inside short' \
  'faults 150: bash tests/rxe/faults.sh inside short' \
  'down 150: bash tests/rxe/down.sh inside short' \
  'mpi 120: MPI_TEST_RANKS=4 bash tests/mpi/run-mpi.sh rxe2 "^request$"'
