/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The threads that post semaphores and signal conditions: see preload.h. A table of addresses without a lock, because
 * sem_post may be called in signal handlers. Without room an object stays UNKNOWN.
 *
 * Helpers of the launcher's library have objects of their own. A thread that became a helper because it computes for
 * actors shares objects with actors, and may be the next caller where only actors called so far: then all objects are
 * UNKNOWN, and also before, while a guest may become such a helper.
 */
#include "simfab/preload/callers.h"

#include "simfab/preload/attach.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/slots.h"

#define ENTRIES 1024u /* a power of two */
#define PROBES  32u   /* places to search for an object */

static struct entry {
    uintptr_t what; /* 0: free */
    uint32_t callers;
} entries[ENTRIES];

static bool mixed;
static uint32_t doubts;

static struct entry *find_entry(const void *what, bool add)
{
    uint32_t at = (uint32_t)(((uintptr_t)what >> 3) * 2654435761u);

    for (uint32_t i = 0; i < PROBES; i++) {
        struct entry *e = &entries[(at + i) & (ENTRIES - 1)];
        uintptr_t was = __atomic_load_n(&e->what, __ATOMIC_ACQUIRE);

        if (!was && add &&
            __atomic_compare_exchange_n(&e->what, &was, (uintptr_t)what, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return e;
        if (was == (uintptr_t)what)
            return e;
        if (!was)
            return NULL;
    }
    return NULL;
}

void sfp_callers_doubt(bool begins)
{
    __atomic_fetch_add(&doubts, begins ? 1u : -1u, __ATOMIC_RELAXED);
}

void sfp_callers_after_fork(void)
{
    doubts = 0; /* the guests are not there */
}

void sfp_callers_mix(void)
{
    __atomic_store_n(&mixed, true, __ATOMIC_RELAXED);
}

void sfp_callers_forget(const void *what)
{
    struct entry *e = find_entry(what, false);

    if (e)
        __atomic_store_n(&e->callers, 0, __ATOMIC_RELAXED);
}

void sfp_callers_note(const void *what)
{
    struct entry *e = sfp_proc.arena ? find_entry(what, true) : NULL;
    uint32_t callers = sfp_is_actor() ? SFP_CALLERS_ACTORS : SFP_CALLERS_HELPERS;

    if (e && !(__atomic_load_n(&e->callers, __ATOMIC_RELAXED) & callers))
        __atomic_fetch_or(&e->callers, callers, __ATOMIC_RELAXED);
}

enum sfp_callers sfp_callers_of(const void *what)
{
    bool known = !__atomic_load_n(&mixed, __ATOMIC_RELAXED) && !__atomic_load_n(&doubts, __ATOMIC_RELAXED);
    const struct entry *e = known ? find_entry(what, false) : NULL;
    uint32_t callers = e ? __atomic_load_n(&e->callers, __ATOMIC_RELAXED) : 0;

    return callers & SFP_CALLERS_HELPERS ? SFP_CALLERS_HELPERS : (enum sfp_callers)callers;
}

bool sfp_helpers_call(const void *what)
{
    return !sfp_thread_all_act() && sfp_callers_of(what) != SFP_CALLERS_ACTORS;
}
