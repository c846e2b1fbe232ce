/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair contexts held on an adapter's chip: the most recently used. Work on a queue pair with another context
 * waits until the context is fetched; the least recently used context makes room. An entry belongs to its queue pair,
 * which takes the entry out before destruction; all zero is an entry outside the cache.
 */
#ifndef SIMFAB_QP_CACHE_H
#define SIMFAB_QP_CACHE_H

#include <stdbool.h>
#include <stdint.h>

struct qp_cache_entry {
    struct qp_cache_entry *newer, *older; /* both NULL: not in the cache */
};

struct qp_cache {
    uint32_t capacity; /* 0: everything fits, nothing is counted */
    uint32_t used;
    uint64_t hits, misses;
    struct qp_cache_entry ring; /* ring.older is the newest, ring.newer the oldest */
};

void qp_cache_init(struct qp_cache *c, uint32_t capacity);

/* Work on e: e becomes the newest. False: e was not in the cache. */
bool qp_cache_touch(struct qp_cache *c, struct qp_cache_entry *e);
void qp_cache_forget(struct qp_cache *c, struct qp_cache_entry *e);

#endif
