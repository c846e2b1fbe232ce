/* SPDX-License-Identifier: BSD-3-Clause */
/* From the calls that unmap memory to the registration cache. */
#include "libmrmpi/verbs/memory/watch.h"

#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "libmrmpi/verbs/memory/calls.h"
#include "libmrmpi/verbs/memory/objects.h"
#include "libmrmpi/verbs/memory/regcache.h"

static struct {
    struct mr_allocators allocators;
    struct mr_objects_count judged; /* their counts at the last check */
    unsigned long long unloaded;    /* when the cache asked */
    char why_not[MR_ALLOCATOR_NAME + 64];
} watch;
static struct mr_regcache *_Atomic listener;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* From any thread, from inside the allocator. */
static void take_note(const void *addr, size_t len)
{
    struct mr_regcache *c = atomic_load_explicit(&listener, memory_order_acquire);

    if (unlikely(c != NULL))
        mr_regcache_unmapped(c, addr, len);
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

/* A child has none of our registrations, and another thread may have been taking a note when it was made. */
static void forget_in_child(void)
{
    atomic_store(&listener, NULL);
}

static void say_unseen(const char *allocator)
{
    snprintf(watch.why_not, sizeof watch.why_not, "the allocator of %s unmaps memory by system calls of its own",
             allocator);
}

static void judge_allocators(void)
{
    watch.judged = mr_objects_count();
    mr_objects_find_allocators(&watch.allocators);
    if (*watch.allocators.unseen)
        say_unseen(watch.allocators.unseen);
}

/*
 * The C library's allocator is told to keep freed memory: up to 2 GiB at the end of its heap, and blocks of up to 32
 * MiB inside, as it would decide by itself after frequent frees. Unmapped memory has to be registered again.
 */
static void begin_watch(void)
{
    const char *failed;

    pthread_atfork(NULL, NULL, forget_in_child);
    judge_allocators();
    failed = *watch.why_not ? NULL : mr_calls_lead(take_note);
    if (failed)
        snprintf(watch.why_not, sizeof watch.why_not, "%s", failed);
    else if (!*watch.why_not && !mr_calls_try_allocator())
        say_unseen(watch.allocators.front);
    if (watch.allocators.c_library && !*watch.why_not) {
        mallopt(M_TRIM_THRESHOLD, INT_MAX);
        mallopt(M_MMAP_THRESHOLD, 32 << 20);
    }
    watch.unloaded = watch.judged.unloaded;
}

const char *mr_memory_watch_begin(void)
{
    pthread_once(&once, begin_watch);
    return *watch.why_not ? watch.why_not : NULL;
}

const char *mr_memory_allocator(void)
{
    return watch.allocators.front;
}

/* ---- for the cache ----------------------------------------------------------------------------------------------- */

/* Objects loaded meanwhile may have brought an allocator. */
static enum mr_place place_of_memory(uintptr_t start, uintptr_t end)
{
    if (mr_objects_count().loaded != watch.judged.loaded)
        judge_allocators();
    return *watch.why_not ? MR_PLACE_UNWATCHED : mr_objects_have(start, end) ? MR_PLACE_LIBRARY : MR_PLACE_WATCHED;
}

static bool was_unloaded(void)
{
    unsigned long long now = mr_objects_count().unloaded;
    bool yes = now != watch.unloaded;

    watch.unloaded = now;
    return yes;
}

void mr_memory_watch_for(struct mr_regcache *c)
{
    if (c) {
        c->place = place_of_memory;
        c->unloaded = was_unloaded;
    }
    atomic_store(&listener, c);
}
