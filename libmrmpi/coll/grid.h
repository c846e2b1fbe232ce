/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking collectives of few bytes in two levels, over a communicator of several nodes with equally many ranks each
 * (place.h): in the row, the ranks of a node, through the row's node area; in the columns, one rank of every node, by
 * messages. The file of each collective combines both.
 *
 * Either all ranks have their row's area, or there is no grid. Both levels of an operation continue after an error,
 * with notices of the error, so that no rank waits for ever.
 */
#ifndef MRMPI_COLL_GRID_H
#define MRMPI_COLL_GRID_H

#include "libmrmpi/coll/place.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/coll/node/area.h"

struct mr_grid {
    const struct mr_place *place; /* the communicator's */
    struct mr_comm *row, *column; /* this rank in the row: place->local; in the column: place->node */
    bool in_order;                /* the ranks of a node follow each other, and so do nodes */
    char *scratch;
    size_t room;
};

/* True for several nodes with equally many ranks each, and areas worth while. */
bool mr_grid_suits(struct mr_comm *c);
/* Makes the grid of such a communicator, with its row; without an area so far. Without memory the job ends. */
struct mr_grid *mr_grid_new(struct mr_comm *c);
void mr_grid_free(struct mr_grid *g); /* NULL is fine */

/* So many bytes until the next call. Without memory the job ends, since others wait for this rank. */
char *mr_grid_scratch(struct mr_grid *g, size_t bytes);

/* Where a rank of the communicator is. */
struct mr_grid_spot {
    int node, local;
};
struct mr_grid_spot mr_grid_find(const struct mr_grid *g, int rank);

/* With an error, this rank's data for its row in the next operation is missing: the row gets a notice. */
static inline void mr_grid_failed(struct mr_grid *g, enum mr_err err)
{
    g->row->node->failed = err;
}

#endif
