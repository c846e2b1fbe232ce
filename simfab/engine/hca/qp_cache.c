/* SPDX-License-Identifier: BSD-3-Clause */
/* Least recently used: a ring of entries through a sentinel, from the newest to the oldest. */
#include "simfab/engine/hca/qp_cache.h"

#include <stddef.h>

void qp_cache_init(struct qp_cache *c, uint32_t capacity)
{
    *c = (struct qp_cache){.capacity = capacity};
    c->ring.newer = c->ring.older = &c->ring;
}

static void take_out(struct qp_cache_entry *e)
{
    e->newer->older = e->older;
    e->older->newer = e->newer;
    e->newer = e->older = NULL;
}

static void put_first(struct qp_cache *c, struct qp_cache_entry *e)
{
    e->older = c->ring.older;
    e->newer = &c->ring;
    e->older->newer = e;
    c->ring.older = e;
}

bool qp_cache_touch(struct qp_cache *c, struct qp_cache_entry *e)
{
    bool hit = e->newer != NULL;

    if (!c->capacity)
        return true;
    if (hit) {
        c->hits++;
        take_out(e);
    } else {
        c->misses++;
        if (c->used == c->capacity)
            take_out(c->ring.newer);
        else
            c->used++;
    }
    put_first(c, e);
    return hit;
}

void qp_cache_forget(struct qp_cache *c, struct qp_cache_entry *e)
{
    if (!e->newer)
        return;
    take_out(e);
    c->used--;
}
