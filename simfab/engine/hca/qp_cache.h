/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair contexts that an adapter holds on its chip: the most recently used ones. Work on a queue pair whose
 * context is elsewhere has to wait until it is fetched, and the one that was unused for longest makes room. An entry
 * belongs to its queue pair, which takes it out before it goes; all zero is an entry that is not in the cache.
 */
#ifndef SIMFAB_QP_CACHE_H
#define SIMFAB_QP_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct qp_cache_entry {
    struct qp_cache_entry *newer, *older; /* both NULL when it is not in the cache */
};

struct qp_cache {
    uint32_t capacity; /* 0: everything fits, nothing is counted */
    uint32_t used;
    uint64_t hits, misses;
    struct qp_cache_entry ring; /* ring.older is the newest, ring.newer the oldest */
};

void qp_cache_init(struct qp_cache *c, uint32_t capacity);

/* Work on e: it becomes the newest. False: it was not there. */
bool qp_cache_touch(struct qp_cache *c, struct qp_cache_entry *e);
void qp_cache_forget(struct qp_cache *c, struct qp_cache_entry *e);

#endif
