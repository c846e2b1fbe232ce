/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory shared by the ranks of a node, a part for each: that of windows allocated by MPI. */
#ifndef MRMPI_WINMEM_H
#define MRMPI_WINMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/coll/coll.h"

struct mr_winmem;

/* Of one rank. */
struct mr_winmem_part {
    size_t size;
    /* both NULL on other nodes */
    void *header; /* so many bytes as all headers have, zeros: at a cache line */
    char *at;
};

/*
 * Collective over c. part: of all ranks, with their sizes, equal everywhere; gives the ranks of this node one memory,
 * and returns the places of the parts: one behind the other in order of ranks, or each from a page on. The caller drops
 * the memory. MR_ERR_RMA_SHARED: the memory cannot be shared, by all ranks alike; nothing is left.
 */
enum mr_err mr_winmem_make(struct mr_comm *c, size_t header_bytes, bool page_aligned, struct mr_winmem_part *part,
                           struct mr_winmem **out);
void mr_winmem_drop(struct mr_winmem *m); /* NULL is fine */

/* A lock in such memory for one process at a time: 0, or the holder. The holder may die. */
void mr_winmem_take(uint32_t *holder);
void mr_winmem_give(uint32_t *holder);

#endif
