#!/usr/bin/env bash
# timeout: 900
# The MPI programs over two rails of the kernel's soft-RoCE.
. "$(dirname "$0")/lab.sh"
lab_tap 850 'mpi2 800: bash tests/mpi/run-mpi.sh rxe2'
