/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes and the ranks on them: place.h. */
#include "libmrmpi/coll/place.h"

#include <stdlib.h>
#include <string.h>

/* row[i]: the row of node i, or -1; have[r]: ranks of row r. Returns the number of rows. */
static int count_rows(const int *node_of, int size, int *row, int *have)
{
    int rows = 0;
    for (int i = 0; i < size; i++) {
        int *r = &row[node_of[i]];
        if (*r < 0) {
            *r = rows;
            have[rows++] = 0;
        }
        have[*r]++;
    }
    return rows;
}

static void fill_rank_place(struct mr_place *w, const int *node_of, int size, int me, const int *row, int *have)
{
    memset(have, 0, (size_t)w->nodes * sizeof(*have));
    for (int i = 0; i < size; i++) {
        int r = row[node_of[i]], column = have[r]++;
        w->rank[r * w->each + column] = i;
        if (i == me) {
            w->node = r;
            w->local = column;
        }
    }
}

struct mr_place *mr_place_of(const int *node_of, int size, int me)
{
    int most = 0;
    for (int i = 0; i < size; i++)
        most = node_of[i] > most ? node_of[i] : most;
    struct mr_place *w = calloc(1, sizeof(*w) + (size_t)size * sizeof(int));
    int *row = malloc(((size_t)most + 1 + (size_t)size) * sizeof(int)), *have = row + most + 1;
    if (!w || !row) {
        free(w);
        free(row);
        return NULL;
    }
    memset(row, -1, ((size_t)most + 1) * sizeof(int));
    w->nodes = count_rows(node_of, size, row, have);
    bool grid = true;
    for (int r = 1; r < w->nodes; r++)
        grid &= have[r] == have[0];
    if (grid) {
        w->each = have[0];
        fill_rank_place(w, node_of, size, me, row, have);
    }
    free(row);
    return w;
}
