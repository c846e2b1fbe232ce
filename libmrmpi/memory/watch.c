/* SPDX-License-Identifier: BSD-3-Clause */
/* From the interposed calls to the registration cache. */
#include "libmrmpi/memory/watch.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include "libmrmpi/memory/regcache.h"

static atomic_bool watched;
static bool (*doubt)(void); /* set before watched */
static struct mr_regcache *_Atomic listener;

void mr_memory_watch_begin(bool (*lost_track)(void))
{
    doubt = lost_track;
    atomic_store(&watched, true);
}

bool mr_memory_watched(void)
{
    return atomic_load(&watched);
}

/* A child has none of our registrations, and another thread may have been taking a note when it was made. */
static void forget_in_child(void)
{
    atomic_store(&listener, NULL);
}

static void prepare_for_fork(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

/*
 * The allocator shrinks its main heap by a call that cannot be interposed, so it is told not to. That also stops it
 * from moving its other limit, so blocks of up to 32 MiB are asked to stay in the heap, as it would have found by
 * itself.
 */
void mr_memory_watch_for(struct mr_regcache *c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, prepare_for_fork);
    if (c && mr_memory_watched() && !(mallopt(M_TRIM_THRESHOLD, INT_MAX) && mallopt(M_MMAP_THRESHOLD, 32 << 20)))
        c->keep = false;
    if (c)
        c->lost_track = mr_memory_watched() ? doubt : NULL;
    atomic_store(&listener, c);
}

void mr_memory_unmapped(const void *addr, size_t len)
{
    struct mr_regcache *c = atomic_load_explicit(&listener, memory_order_acquire);

    if (__builtin_expect(c != NULL, 0))
        mr_regcache_unmapped(c, addr, len);
}
