#!/usr/bin/env bash
# timeout: 1600
# The MPI programs over one rail of the kernel's soft-RoCE.
. "$(dirname "$0")/lab.sh"
# p2p_huge: two ranks of 1 GiB each, which takes two minutes
lab_tap 1550 --memory 4096 'mpi1 1500: MPI_TEST_TIMEOUT=240 bash tests/mpi/run-mpi.sh rxe1'
