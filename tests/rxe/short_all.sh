#!/usr/bin/env bash
# What `make check-all` tries on the kernel's soft-RoCE, in one machine; `make check-rxe` tries all of it.
# timeout: 1500
. "$(dirname "$0")/lab.sh"
lab_tap 1480 'netpipe 250: bash tests/rxe/netpipe.sh inside' \
  'addresses 250: bash tests/rxe/addresses.sh inside' \
  'faults 500: bash tests/rxe/faults.sh inside middle' \
  'down 250: bash tests/rxe/down.sh inside' \
  'mpi 120: bash tests/mpi/run-mpi.sh rxe2 "^request$"'
