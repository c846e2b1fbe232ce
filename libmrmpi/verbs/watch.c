/* SPDX-License-Identifier: BSD-3-Clause */
/* From the interposed calls to the registration cache. */
#include "libmrmpi/verbs/watch.h"

#include <stdatomic.h>

#include "libmrmpi/verbs/regcache.h"

static atomic_bool watched;
static struct mr_regcache *_Atomic listener;

void mr_memory_watch_begin(void)
{
    atomic_store(&watched, true);
}

bool mr_memory_watched(void)
{
    return atomic_load(&watched);
}

void mr_memory_watch_for(struct mr_regcache *c)
{
    atomic_store(&listener, c);
}

void mr_memory_unmapped(const void *addr, size_t len)
{
    struct mr_regcache *c = atomic_load_explicit(&listener, memory_order_acquire);

    if (__builtin_expect(c != NULL, 0))
        mr_regcache_unmapped(c, addr, len);
}
