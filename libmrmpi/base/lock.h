/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One lock for the whole library, taken by api/ around every MPI call that touches shared state, and only when the
 * thread level is MPI_THREAD_MULTIPLE. A waiting thread gives it away between two looks at the network
 * (p2p/progress/progress.c), so that others get on. With a lower level it costs one predictable branch.
 *
 * Nobody starves: whoever waits is in a queue. An unlock leaves the lock to whoever comes first, which is quick where
 * threads make many short calls, but only until the first of the queue has been woken for nothing. Giving way hands it
 * over without its ever being free, to the first that may do something with it: it has just called MPI, its request is
 * complete, or there is news that it has not looked at. Others that wait would find nothing new: one thread looks at
 * the network for all of them.
 */
#ifndef MRMPI_LOCK_H
#define MRMPI_LOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { MR_LOCK_HELD = 1, MR_LOCK_WANTED = 2 /* there is a queue */ };

/* What a thread that gives way waits for. */
struct mr_lock_wish {
    const volatile bool *complete; /* its request is; NULL: it has to look itself */
    uint64_t seen;        /* mr_lock_news before it last looked */
    bool at_once;         /* whatever there is */
};

extern bool mr_threaded; /* the level is MPI_THREAD_MULTIPLE; set once at init */
extern uint32_t mr_lock_word;
/* By its holder: counts what a thread that waits may have waited for, not only messages */
extern uint64_t mr_lock_news;

void mr_lock_wait(void); /* take the lock, which is not free, or others queue for it */
void mr_lock_pass(void); /* unlock, where others queue */
bool mr_lock_hand_over(struct mr_lock_wish w);
/* By its holder, who keeps it: sleep for so long, or until a thread wants the lock that may do something with it. */
void mr_lock_nap(uint64_t ns);

static inline void mr_lock(void)
{
    uint32_t free = 0;

    if (__builtin_expect(!mr_threaded, 1))
        return;
    if (!__atomic_compare_exchange_n(&mr_lock_word, &free, MR_LOCK_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        mr_lock_wait();
    mr_lock_news++;
}

/* Take it only if it is free, with threads. */
static inline bool mr_lock_try_now(void)
{
    uint32_t free = 0;

    return __atomic_compare_exchange_n(&mr_lock_word, &free, MR_LOCK_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void mr_unlock(void)
{
    uint32_t held = MR_LOCK_HELD;

    if (__builtin_expect(mr_threaded, 0) &&
        !__atomic_compare_exchange_n(&mr_lock_word, &held, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        mr_lock_pass();
}

/* Let another thread that waits have its turn. True if one had: what the caller waits for may have come. */
static inline bool mr_lock_give_way(struct mr_lock_wish w)
{
    return __builtin_expect(mr_threaded, 0) && __atomic_load_n(&mr_lock_word, __ATOMIC_RELAXED) & MR_LOCK_WANTED &&
           mr_lock_hand_over(w);
}

#endif
