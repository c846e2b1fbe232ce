/* SPDX-License-Identifier: BSD-3-Clause */
/* What the makers of grids (topo.c) and of graphs (graph.c) share. */
#ifndef MRMPI_API_TOPO_H
#define MRMPI_API_TOPO_H

#include "libmrmpi/api/api.h"

/* A communicator of the first ranks of c; NULL for those that have no place in the topology. */
enum mr_err api_topology_place(struct mr_comm *c, int nodes, enum mr_err wrong, struct mr_comm **made);
/* Gives made its topology (NULL: there was no memory for it) and a handle; takes both over. */
enum mr_err api_topology_attach(struct mr_comm *made, struct mr_topology *t, MPI_Comm *h);

#endif
