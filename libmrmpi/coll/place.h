/* SPDX-License-Identifier: BSD-3-Clause */
/* The computation of the places of ranks (coll.h). Pure. */
#ifndef MRMPI_COLL_PLACE_H
#define MRMPI_COLL_PLACE_H

#include "libmrmpi/coll/coll.h"

/* node_of[i] is the node of rank i of `size`, numbers from 0 to size - 1 or more. NULL: no memory; the caller
 * frees it. */
struct mr_place *mr_place_of(const int *node_of, int size, int me);

#endif
