/* SPDX-License-Identifier: BSD-3-Clause */
/* The attachment of this process to the engine. */
#ifndef SIMFAB_PRELOAD_ATTACH_H
#define SIMFAB_PRELOAD_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simfab/preload/slots.h"
#include "simfab/proto.h"

struct sfp_proc {
    int sock; /* SF_CONN_PROC, -1 when not attached */
    int bell; /* eventfd: wakes a sleeping engine */
    struct sf_arena *arena;
    size_t arena_bytes;
    struct sf_relay *relay; /* NULL: this process has no seat */
    struct sf_welcome welcome;
    bool dead;        /* the engine went away: every verb fails from now on */
    uint32_t waiters; /* threads that have found a lock taken, or no descriptor ready */
};

extern struct sfp_proc sfp_proc;

/*
 * Helper threads that call no verbs do not count, because they may wait all the time. Pass the result of the first
 * function to the second.
 */
static inline bool sfp_waiter_begins(void)
{
    bool counts = sfp_is_actor();

    if (counts)
        __atomic_fetch_add(&sfp_proc.waiters, 1, __ATOMIC_RELAXED);
    return counts;
}

static inline void sfp_waiter_ends(bool counted)
{
    if (counted)
        __atomic_fetch_sub(&sfp_proc.waiters, 1, __ATOMIC_RELAXED);
}

extern unsigned sfp_generation; /* incremented in a forked child, which starts without an attachment */

/* Attach this process to the engine if it is not yet. 0 or an errno. */
int sfp_attach(void);

/* Wakes a sleeping engine, after a change that the engine must see. */
void sfp_ring(void);
/* Look whether the engine is still there; false marks the attachment dead. */
bool sfp_alive(void);

#endif
