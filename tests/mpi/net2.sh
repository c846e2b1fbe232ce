#!/usr/bin/env bash
# timeout: 900
# timeout --all: 1800
# The MPI programs, mode net2 (see run-mpi.sh). Without a pattern those that move no data of a kind of their own are left to
# --all: net1.sh has them. The others run with three ranks and with sixteen.
[ "${1:-}" = --all ] && set -- .
[ $# -gt 0 ] || export MPI_TEST_NOT='^(env|errors|arguments|ops|ops_types|pmpi|types|types_arrays|types_large|types_life|external|mpi_t|request|request_status|handles|grequest|comm|inter|topo|idup|groups|attr|info|absent|session|refusals|mpi_t_threads|file|file_types|file_views|coll_node|coll_errors|coll_i|coll_init|coll_c|coll_i_c|coll_init_c|inter_coll_i|inter_coll_init|neighbor_init|neighbor_init_c|p2p_self)( |$)'
[ $# -gt 0 ] || export MPI_TEST_RANKS='3 16'
exec bash "$(dirname "$0")/run-mpi.sh" net2 "$@"
