/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One lock for the whole library, taken by api/ around every MPI call that touches shared state, and only when the
 * thread level is MPI_THREAD_MULTIPLE. A waiting thread gives it away between two looks at the network
 * (pt2pt/progress.c), so that others get on. With a lower level it costs one predictable branch.
 */
#ifndef MRMPI_LOCK_H
#define MRMPI_LOCK_H

#include <pthread.h>
#include <stdbool.h>

extern bool mr_threaded; /* the level is MPI_THREAD_MULTIPLE; set once at init */
extern pthread_mutex_t mr_lock_mutex;

void mr_lock_contended(void); /* waits for it, counted, so that mr_lock_give_way sees it */
void mr_lock_give_way(void);  /* unlock, let another thread that waits have a turn, lock again */

static inline void mr_lock(void)
{
    if (__builtin_expect(mr_threaded, 0) && pthread_mutex_trylock(&mr_lock_mutex))
        mr_lock_contended();
}

static inline void mr_unlock(void)
{
    if (__builtin_expect(mr_threaded, 0))
        pthread_mutex_unlock(&mr_lock_mutex);
}

#endif
