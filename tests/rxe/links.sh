#!/usr/bin/env bash
# timeout: 3600
# Datagrams and unreliable connections of the kernel's soft-RoCE: the MPI programs, wires that lose, double, reorder and
# change packets, and wires that are cut. (Not p2p_huge: its gigabyte takes a quarter of an hour in packets of this processor.)
. "$(dirname "$0")/lab.sh"
lab_tap 3550 --memory 4096 \
  'ud 1000: MRMPI_LINKS=ud MPI_TEST_TIMEOUT=240 MPI_TEST_NOT="^p2p_huge" bash tests/mpi/run-mpi.sh rxe2' \
  'uc 1000: MRMPI_LINKS=uc MPI_TEST_TIMEOUT=240 MPI_TEST_NOT="^p2p_huge" bash tests/mpi/run-mpi.sh rxe1' \
  'ud-faults 400: MRMPI_LINKS=ud bash tests/rxe/faults.sh inside' \
  'uc-faults 400: MRMPI_LINKS=uc bash tests/rxe/faults.sh inside' \
  'ud-down 200: MRMPI_LINKS=ud bash tests/rxe/down.sh inside' \
  'uc-down 200: MRMPI_LINKS=uc bash tests/rxe/down.sh inside'
