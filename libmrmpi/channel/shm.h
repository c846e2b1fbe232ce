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
 * meanwhile. Returns at once when there is something to do, or when packets of ours wait for space in a ring.
 */
void mr_shm_sleep(uint32_t timeout_us);

/* Wake the other threads of this process that sleep: one of them may wait for what this one has just found. */
void mr_shm_wake(void);

#endif
