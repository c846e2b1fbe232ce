#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# timeout: 1800
# All MPI programs of shm, started by MPICH's launcher (see tests/mpi/run-mpi.sh).
exec bash "$(dirname "$0")/../mpi/run-mpi.sh" hydra "$@"
