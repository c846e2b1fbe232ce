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

#include "libmrmpi/core/core.h"

struct mr_layout *mr_layout_new(void);
void mr_layout_free(struct mr_layout *l);
/* Append count copies of child, stride apart, the first at disp. False: no memory. */
bool mr_layout_add(struct mr_layout *l, ptrdiff_t disp, size_t count, ptrdiff_t stride, const struct mr_layout *child);
/* All blocks are added: irregular blocks become lists. False: no memory. */
bool mr_layout_finish(struct mr_layout *l);

#endif
