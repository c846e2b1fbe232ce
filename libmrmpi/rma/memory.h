/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of a node share of a window that MPI allocates. */
#ifndef MRMPI_RMA_MEMORY_H
#define MRMPI_RMA_MEMORY_H

#include "libmrmpi/rma/internal.h"

struct mr_node_memory;
/*
 * Collective over c. sizes: of all ranks. Gives all that are on this node one memory; *mine, and local and mutex of the
 * targets on it. MR_ERR_RMA_SHARED: it cannot be shared, by all ranks alike; nothing is left.
 */
enum mr_err mr_node_memory_make(struct mr_win *w, bool page_aligned);
void mr_node_memory_drop(struct mr_node_memory *m);
/* Between processes; the holder may die. */
void mr_rma_mutex_take(struct mr_rma_mutex *g);
void mr_rma_mutex_give(struct mr_rma_mutex *g);

#endif
