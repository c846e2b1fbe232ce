/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flattened layout of a datatype: a list of runs. A run is `count` pieces, `stride` bytes apart; a piece is `elem`
 * bytes of memory in one stretch (child == NULL) or another layout. Neighbouring stretches are merged and regular lists
 * of blocks become one run, so a vector of a million doubles is one run, not a million blocks.
 *
 * A layout belongs to the type that made it. It may point into the layouts of the types in that type's recipe, which
 * the recipe keeps alive.
 */
#ifndef MRMPI_CORE_LAYOUT_H
#define MRMPI_CORE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

struct mr_layout;

struct mr_run {
    ptrdiff_t disp;
    size_t offset; /* bytes of data in the runs before this one */
    size_t count, elem;
    ptrdiff_t stride;
    const struct mr_layout *child;
};

struct mr_layout {
    size_t size;      /* bytes of data */
    ptrdiff_t lo, hi; /* memory touched: [lo, hi) */
    size_t num, cap;
    struct mr_run *runs;
};

struct mr_layout *mr_layout_new(void);
void mr_layout_free(struct mr_layout *l);
/* Append count copies of child, stride apart, the first at disp. False: no memory. */
bool mr_layout_add(struct mr_layout *l, ptrdiff_t disp, size_t count, ptrdiff_t stride, const struct mr_layout *child);

#endif
