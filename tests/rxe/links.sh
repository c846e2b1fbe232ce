#!/usr/bin/env bash
# timeout: 4900
# Datagrams and unreliable connections of the kernel's soft-RoCE: the MPI programs, and wires that are cut; datagrams also over
# wires that lose and reorder packets. (Not p2p_huge: a gigabyte takes a quarter of an hour in packets of this processor.)
. "$(dirname "$0")/lab.sh"
lab_tap 4850 --memory 4096 \
  'ud 1900: MRMPI_LINKS=ud MPI_TEST_TIMEOUT=240 MPI_TEST_NOT="^p2p_huge" bash tests/mpi/run-mpi.sh rxe2' \
  'uc 1900: MRMPI_LINKS=uc MPI_TEST_TIMEOUT=240 MPI_TEST_NOT="^p2p_huge" bash tests/mpi/run-mpi.sh rxe1' \
  'ud-faults 400: MRMPI_LINKS=ud bash tests/rxe/faults.sh inside middle' \
  'ud-cables 200: MRMPI_LINKS=ud bash tests/rxe/down.sh inside' \
  'uc-cables 200: MRMPI_LINKS=uc bash tests/rxe/down.sh inside'
