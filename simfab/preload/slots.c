/* SPDX-License-Identifier: BSD-3-Clause */
/* Slots of actors. */
#include "simfab/preload/slots.h"

#include <errno.h>
#include <string.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/preload.h"

__thread struct sf_actor *sfp_self;

static uint32_t slots_used;       /* as many were taken at some time */
static bool taken[SF_ACTORS_MAX]; /* the engine sees a slot when its state changes, when all in it is there */
static uint32_t helpers = 1;      /* living threads that are no actors */

bool sfp_is_actor(void)
{
    return sfp_self;
}

uint64_t sfp_actor_time(void)
{
    return sfp_self ? sfp_now(sfp_self) : 0;
}

static void raise_slots_used(uint32_t to)
{
    uint32_t was = __atomic_load_n(&slots_used, __ATOMIC_RELAXED);

    while (was < to && !__atomic_compare_exchange_n(&slots_used, &was, to, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
}

uint32_t sfp_actor_slots(void)
{
    return __atomic_load_n(&slots_used, __ATOMIC_ACQUIRE);
}

struct sf_actor *sfp_slot_take(void)
{
    for (uint32_t i = 0; i < SF_ACTORS_MAX; i++)
        if (!__atomic_exchange_n(&taken[i], true, __ATOMIC_ACQUIRE)) {
            raise_slots_used(i + 1);
            return &sfp_proc.arena->actor[i];
        }
    errno = EAGAIN;
    return NULL;
}

void sfp_slot_free(const struct sf_actor *a)
{
    __atomic_store_n(&taken[a - sfp_proc.arena->actor], false, __ATOMIC_RELEASE);
}

struct sf_actor *sfp_actor_by_tid(uint32_t tid)
{
    for (uint32_t i = 0; tid && i < sfp_actor_slots(); i++) {
        struct sf_actor *a = &sfp_proc.arena->actor[i];

        if (a->tid == tid && __atomic_load_n(&a->state, __ATOMIC_RELAXED) != SF_ACTOR_FREE)
            return a;
    }
    return NULL;
}

void sfp_helpers_add(int threads)
{
    __atomic_fetch_add(&helpers, (uint32_t)threads, __ATOMIC_RELAXED);
}

bool sfp_thread_all_act(void)
{
    return !__atomic_load_n(&helpers, __ATOMIC_RELAXED);
}

void sfp_slots_after_fork(void)
{
    slots_used = 0;
    memset(taken, 0, sizeof taken);
}

void sfp_helpers_after_fork(void)
{
    helpers = 1;
}
