/* SPDX-License-Identifier: BSD-3-Clause */
/* Declarations shared by the makers of grids (topo.c) and of graphs (graph.c). */
#ifndef MRMPI_API_TOPO_H
#define MRMPI_API_TOPO_H

#include "libmrmpi/api/api.h"

/* A communicator of the first ranks of c; NULL for ranks without a place in the topology. */
enum mr_err api_topology_place(struct mr_comm *c, int nodes, enum mr_err wrong, struct mr_comm **made);
/* Gives made its topology (NULL: there was no memory) and a handle; takes both over. */
enum mr_err api_topology_attach(struct mr_comm *made, struct mr_topology *t, MPI_Comm *h);

#endif
