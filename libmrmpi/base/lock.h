/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One lock for the whole library. api/ takes the lock around every MPI call that touches shared state, only at the
 * thread level MPI_THREAD_MULTIPLE. A waiting thread gives the lock away between two polls (p2p/progress/progress.c),
 * so that others make progress. At lower levels the lock costs one predictable branch.
 *
 * No thread starves: waiting threads form a queue. An unlock leaves the lock to the first thread that comes. This is
 * quick for threads with many short calls, but holds only until the first of the queue has been woken for nothing.
 * Giving way hands the lock over without freeing it, to the first thread that can use the lock: the thread has just
 * called MPI, its request is complete, or there is news that the thread has not seen. Other waiting threads would find
 * nothing new: one thread polls the network for all of them.
 */
#ifndef MRMPI_LOCK_H
#define MRMPI_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"

enum { MR_LOCK_HELD = 1, MR_LOCK_WANTED = 2 /* there is a queue */ };

/* The condition of a thread that gives way. */
struct mr_lock_wish {
    const volatile bool *complete; /* set when its request is complete; NULL: the thread has to poll itself */
    uint64_t seen;                 /* mr_lock_news before its last poll */
    bool at_once;                  /* any turn will do */
};

extern bool mr_threaded; /* the level is MPI_THREAD_MULTIPLE; set once at init */
extern uint32_t mr_lock_word;
/* Counted up by the holder for everything that a waiting thread may wait for, not only messages */
extern uint64_t mr_lock_news;

void mr_lock_wait(void); /* take the lock, which is held, or queued for */
void mr_lock_pass(void); /* unlock, where others queue */
bool mr_lock_hand_over(struct mr_lock_wish w);
/* By the holder, who keeps the lock: sleeps for ns, or until a thread wants the lock and can use it. */
void mr_lock_nap(uint64_t ns);
void mr_lock_nap_by(uint64_t ns, int fd); /* or until the descriptor is readable; -1: none */

static inline void mr_lock(void)
{
    uint32_t free = 0;

    if (likely(!mr_threaded))
        return;
    if (!__atomic_compare_exchange_n(&mr_lock_word, &free, MR_LOCK_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        mr_lock_wait();
    mr_lock_news++;
}

/* Takes the lock only if it is free, with threads. */
static inline bool mr_lock_try_now(void)
{
    uint32_t free = 0;

    return __atomic_compare_exchange_n(&mr_lock_word, &free, MR_LOCK_HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void mr_unlock(void)
{
    uint32_t held = MR_LOCK_HELD;

    if (unlikely(mr_threaded) &&
        !__atomic_compare_exchange_n(&mr_lock_word, &held, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        mr_lock_pass();
}

/* Gives another waiting thread a turn. True if a thread had a turn: the caller's condition may hold now. */
static inline bool mr_lock_yield(struct mr_lock_wish w)
{
    return unlikely(mr_threaded) && __atomic_load_n(&mr_lock_word, __ATOMIC_RELAXED) & MR_LOCK_WANTED &&
           mr_lock_hand_over(w);
}

#endif
