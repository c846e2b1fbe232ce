/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's lock: its storage, and the way a waiting thread lets others have it. */
#include "libmrmpi/base/lock.h"

#include <sched.h>

bool mr_threaded;
pthread_mutex_t mr_lock_mutex = PTHREAD_MUTEX_INITIALIZER;
unsigned mr_lock_waiting, mr_lock_taken;

void mr_lock_contended(void)
{
    __atomic_fetch_add(&mr_lock_waiting, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&mr_lock_mutex);
    __atomic_fetch_sub(&mr_lock_waiting, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&mr_lock_taken, 1, __ATOMIC_RELAXED);
}

/*
 * A mutex alone is not fair: the thread that unlocks and locks again in a loop wins every time, because the one that
 * sleeps for it needs microseconds to wake. So the loop stands back until a sleeper had its turn, for a bounded time.
 */
void mr_lock_give_way(void)
{
    unsigned before;

    if (!mr_threaded)
        return;
    before = __atomic_load_n(&mr_lock_taken, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&mr_lock_mutex);
    for (int i = 0; i < 64; i++) {
        if (!__atomic_load_n(&mr_lock_waiting, __ATOMIC_RELAXED) ||
            __atomic_load_n(&mr_lock_taken, __ATOMIC_RELAXED) != before)
            break;
        sched_yield();
    }
    mr_lock();
}
