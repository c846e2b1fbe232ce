/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Construction of a datatype: begin with the shape of the recipe and the old types, note the arguments in the order of
 * MPI_Type_get_contents, add blocks (length copies of a type at a displacement), end. Bounds, alignment and layout are
 * computed block by block. A maker without memory accepts everything and ends with NULL.
 */
#ifndef MRMPI_CORE_MAKER_H
#define MRMPI_CORE_MAKER_H

#include "libmrmpi/core/core.h"
#include "libmrmpi/core/layout.h"

enum { MAKER_HIDDEN = 2 }; /* intermediate types that a recipe may keep besides the user's */

/* How many arguments of each kind: plain integers, counts, displacements in bytes, types. */
struct shape {
    enum mr_combiner combiner;
    bool large;
    int64_t ints, counts, aints;
    int types;
};

struct maker {
    struct mr_type *t;
    int types;
    bool failed;
    bool any, any_lb, any_ub; /* blocks seen; sticky bounds seen */
    ptrdiff_t lb, ub;
};

struct maker maker_begin(struct shape shape, struct mr_type *const *types); /* references the types */
void maker_int(struct maker *m, int64_t value);
void maker_count(struct maker *m, int64_t value);
void maker_counts(struct maker *m, int64_t n, const int64_t *values);
void maker_aint(struct maker *m, int64_t value);
/*
 * Keeps an intermediate type that the layout points into; takes the reference. False, and the maker failed: step is
 * NULL.
 */
bool maker_hide(struct maker *m, struct mr_type *step);
void maker_block(struct maker *m, ptrdiff_t disp, size_t length, const struct mr_type *child);
void maker_bounds(struct maker *m, ptrdiff_t lb, ptrdiff_t ub); /* regardless of the blocks */
struct mr_type *maker_end(struct maker *m);

void mr_recipe_free(struct mr_recipe *r); /* without its types */

#endif
