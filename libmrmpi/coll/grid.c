/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows and columns of a communicator: see grid.h. */
#include "libmrmpi/coll/grid.h"

#include "libmrmpi/launch/launch.h"

#include <stdlib.h>

static void abort_no_memory(void)
{
    mr_launch_abort(1, "out of memory for the rows and columns of a communicator");
}

bool mr_grid_suits(struct mr_comm *c)
{
    const struct mr_place *w;

    if (c->part || c->passing || mr_comm_is_inter(c))
        return false;
    w = mr_comm_place(c);
    return w->nodes > 1 && w->each > 1 && w->each <= MR_NODE_RANKS_MAX;
}

/* Ranks of the row, or of the column, of this rank. */
static struct mr_comm *row_or_column(const struct mr_comm *c, const struct mr_place *w, enum mr_comm_parts which)
{
    int n = which == MR_COMM_ROW ? w->each : w->nodes;
    int *ranks = malloc((size_t)n * sizeof(*ranks));
    struct mr_comm *p = NULL;

    for (int i = 0; ranks && i < n; i++)
        ranks[i] = which == MR_COMM_ROW ? mr_place_rank(w, w->node, i) : mr_place_rank(w, i, w->local);
    if (ranks)
        p = mr_comm_part(c, mr_group_incl(c->group, n, ranks), which);
    free(ranks);
    if (!p)
        abort_no_memory();
    return p;
}

struct mr_grid *mr_grid_new(struct mr_comm *c)
{
    struct mr_grid *g = calloc(1, sizeof(*g));

    if (!g)
        abort_no_memory();
    g->place = mr_comm_place(c);
    g->row = row_or_column(c, g->place, MR_COMM_ROW);
    g->column = row_or_column(c, g->place, MR_COMM_COLUMN);
    g->in_order = true;
    for (int i = 0; i < c->size; i++)
        g->in_order &= g->place->rank[i] == i;
    return g;
}

void mr_grid_free(struct mr_grid *g)
{
    if (!g)
        return;
    mr_comm_put(g->row);
    mr_comm_put(g->column);
    free(g->scratch);
    free(g);
}

char *mr_grid_scratch(struct mr_grid *g, size_t bytes)
{
    if (bytes > g->room) {
        free(g->scratch);
        g->scratch = malloc(bytes);
        g->room = bytes;
        if (!g->scratch)
            abort_no_memory();
    }
    return g->scratch;
}

struct mr_grid_spot mr_grid_find(const struct mr_grid *g, int rank)
{
    int at = g->in_order ? rank : 0;

    while (g->place->rank[at] != rank)
        at++;
    return (struct mr_grid_spot){at / g->place->each, at % g->place->each};
}
