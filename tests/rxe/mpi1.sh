#!/usr/bin/env bash
# timeout: 900
# The MPI programs over one rail of the kernel's soft-RoCE.
. "$(dirname "$0")/lab.sh"
lab_tap 850 'mpi1 800: bash tests/mpi/run-mpi.sh rxe1'
