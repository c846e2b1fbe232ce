/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The box of a rank in its node's memory: its senders, and its sleep. Senders write there.
 *
 * A receiver polls only the rings of ranks that have ever sent to it: the first packet of a pair puts the sender's bit
 * into the receiver's box.
 */
#ifndef MRMPI_SHM_BOX_H
#define MRMPI_SHM_BOX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libmrmpi/channel/shm_claim.h"

#define MR_BOX_RANKS 1024 /* on one node */

struct mr_box {
    _Alignas(64) uint32_t asleep; /* futex */
    _Alignas(64) uint32_t senders_version;
    uint64_t senders[MR_BOX_RANKS / 64];
    struct mr_claims claims; /* of messages to this rank */
};

/* ---- senders ----------------------------------------------------------------------------------------------------- */

/* The owner polls that rank's ring from now on. */
static inline void mr_box_announce(struct mr_box *b, int from)
{
    __atomic_fetch_or(&b->senders[from / 64], UINT64_C(1) << (from % 64), __ATOMIC_RELEASE);
    __atomic_fetch_add(&b->senders_version, 1, __ATOMIC_RELEASE);
}

/* By the owner: true if the set of senders has changed since version. */
static inline bool mr_box_changed(const struct mr_box *b, uint32_t version)
{
    return __atomic_load_n(&b->senders_version, __ATOMIC_RELAXED) != version;
}
static inline uint32_t mr_box_version(const struct mr_box *b)
{
    return __atomic_load_n(&b->senders_version, __ATOMIC_ACQUIRE);
}
static inline bool mr_box_has(const struct mr_box *b, int from)
{
    return __atomic_load_n(&b->senders[from / 64], __ATOMIC_ACQUIRE) >> (from % 64) & 1;
}

/* ---- sleep ------------------------------------------------------------------------------------------------------- */

static inline long mr_box_futex(struct mr_box *b, int op, uint32_t value, const struct timespec *timeout)
{
    return syscall(SYS_futex, &b->asleep, op, value, timeout, NULL, 0);
}

static inline void mr_box_wake(struct mr_box *b)
{
    mr_box_futex(b, FUTEX_WAKE, INT_MAX, NULL);
}

/*
 * By a sender: wakes a sleeping owner. The fence orders the packet before the check; the sleeper does the reverse. One
 * fence serves the owners of several boxes; shm_sleep.c has the cases without a fence.
 */
static inline void mr_box_order(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void mr_box_rouse(struct mr_box *b)
{
    if (__atomic_load_n(&b->asleep, __ATOMIC_RELAXED) && __atomic_exchange_n(&b->asleep, 0, __ATOMIC_ACQ_REL))
        mr_box_wake(b);
}

/*
 * By the owner: announces its sleep, polls again for packets, sleeps until it is woken or the time is over, and rises.
 */
static inline void mr_box_doze(struct mr_box *b)
{
    __atomic_store_n(&b->asleep, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
/* No ring has come since. */
static inline bool mr_box_dozes(const struct mr_box *b)
{
    return __atomic_load_n(&b->asleep, __ATOMIC_RELAXED);
}
static inline void mr_box_sleep(struct mr_box *b, uint32_t timeout_us)
{
    struct timespec timeout = {.tv_sec = timeout_us / 1000000, .tv_nsec = timeout_us % 1000000 * 1000};

    mr_box_futex(b, FUTEX_WAIT, 1, &timeout);
}
static inline void mr_box_rise(struct mr_box *b)
{
    __atomic_store_n(&b->asleep, 0, __ATOMIC_RELAXED);
}

#endif
