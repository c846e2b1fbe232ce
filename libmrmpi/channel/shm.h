/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What waiting (progress/progress.c) needs of shared memory: sleeping until a peer on this node rings.
 */
#ifndef MRMPI_SHM_H
#define MRMPI_SHM_H

#include <stdbool.h>
#include <stdint.h>

/* More ranks on this node than cores: decided by the first of them, the same for all. Only then do senders ring. */
bool mr_shm_oversubscribed(void);

/*
 * Sleep until a packet from this node arrives or the time is over. Called with the library's lock, which is given away
 * meanwhile. Returns at once when there is something to do, when packets of ours wait for space in a ring, or when done
 * says so, which may look at other memory (NULL: it does not).
 */
void mr_shm_sleep(uint32_t timeout_us, bool (*done)(void *arg), void *arg);

/*
 * These ranks of the node (world ranks) shall look again: something has changed in memory that they may wait for.
 * Written before the call, it is seen by whoever then goes to sleep.
 */
void mr_shm_ring(const int *world, int n);

/* Wake the other threads of this process that sleep: one of them may wait for what this one has just found. */
void mr_shm_wake(void);

#endif
