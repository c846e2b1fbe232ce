/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flattened layout of a datatype: a list of runs. A run is `count` pieces, `stride` bytes apart; a piece is `elem`
 * bytes of memory in one stretch (child == NULL) or another layout. Neighbouring stretches are merged and regular lists
 * of blocks become one run, so a vector of a million doubles is one run, not a million blocks. Irregular blocks are one
 * run too, with a list of the places of its pieces.
 *
 * A layout belongs to its type. A layout may point into the layouts of the types in that type's recipe, which the
 * recipe keeps alive.
 */
#ifndef MRMPI_CORE_LAYOUT_H
#define MRMPI_CORE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

struct mr_layout;

struct mr_run {
    ptrdiff_t disp;
    size_t offset; /* bytes of data in the runs before this run */
    size_t count, elem;
    ptrdiff_t stride;
    const struct mr_layout *child;
    const ptrdiff_t *at;  /* [count] where the pieces are, counted from disp; NULL: they are stride apart */
    const size_t *before; /* with at, [count + 1]: bytes of data in the pieces before each; NULL: each is elem bytes */
};

struct mr_layout {
    size_t size;      /* bytes of data */
    ptrdiff_t lo, hi; /* memory touched: [lo, hi) */
    size_t num, cap;
    struct mr_run *runs;
    ptrdiff_t *at; /* memory of the lists of its own runs */
    size_t *before;
};

static inline size_t mr_run_size(const struct mr_run *r)
{
    return r->before ? r->before[r->count] : r->count * r->elem;
}

struct mr_layout *mr_layout_new(void);
void mr_layout_free(struct mr_layout *l);
/* Append count copies of child, stride apart, the first at disp. False: no memory. */
bool mr_layout_add(struct mr_layout *l, ptrdiff_t disp, size_t count, ptrdiff_t stride, const struct mr_layout *child);
/* All blocks are added: irregular blocks become lists. False: no memory. */
bool mr_layout_finish(struct mr_layout *l);

#endif
