/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory: what the subsystems above call beyond struct mr_channel_ops. Receives take messages out of rings,
 * large messages are moved by both sides, and waiting (p2p/progress/progress.c) sleeps until a peer on this node rings.
 */
#ifndef MRMPI_SHM_H
#define MRMPI_SHM_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/channel/channel.h"

struct mr_claims; /* shm_claim.h */

/* After the launcher's fence: attaches to the node's memory. 0 or negative errno, which has been logged. */
int mr_shm_ready(void);

static inline bool mr_shm_reaches(const struct mr_vc *vc)
{
    return vc->ops == &mr_channel_shm;
}

/*
 * Of such a peer: the payload of the next packet, if it has come, is all of an eager message and is this one (tag
 * negative: of any), and *hdr; it stays there until mr_shm_taken. NULL: none has come. MR_PEEK_OTHER: what has come is
 * left to a poll.
 */
const void *mr_shm_peek(struct mr_vc *vc, int rank, int tag, uint32_t ctx, struct mr_hdr *hdr);
void mr_shm_taken(struct mr_vc *vc); /* the message has been delivered */

/* Our claims, or the peer's, by which messages to us, or to the peer, are moved by both. */
struct mr_claims *mr_shm_claims(struct mr_vc *vc, bool ours);

/* More ranks on this node than cores that they may run on: known once all of them are here, false until then. */
bool mr_shm_oversubscribed(void);

/* There are peers on this node, which ring. */
bool mr_shm_can_sleep(void);

/*
 * With a core for each rank, around sleeps: from mr_shm_doze to mr_shm_rise peers look whether this rank sleeps, which
 * costs them something. Both with the library's lock.
 */
void mr_shm_doze(void);
void mr_shm_rise(void);

/*
 * Sleep until a packet from this node arrives or the time is over. Called with the library's lock, which is given away
 * meanwhile. False, at once, if not: there is something to do, packets of ours wait for space in a ring, done says so,
 * which may look at other memory (NULL: it does not), or a peer may not know yet that this rank sleeps: come back soon.
 */
bool mr_shm_sleep(uint32_t timeout_us, bool (*done)(void *arg), void *arg);

/* What a sender looks at: not 0 if anybody of the node sleeps, or may. */
extern MR_OWN const uint32_t *mr_shm_bell;

/* After the packet, or other memory, has been written. */
static inline bool mr_shm_bell_rings(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the compiler's order, shm_sleep.c tells of the processor's */
    return __atomic_load_n(mr_shm_bell, __ATOMIC_RELAXED);
}

void mr_shm_ring_local(int local); /* this rank of the node shall look again, if it sleeps */
void mr_shm_ring_all(const int *world, int n);

/*
 * These ranks of the node (world ranks) shall look again: something has changed in memory that they may wait for.
 * Written before the call, it is seen by whoever then goes to sleep.
 */
static inline void mr_shm_ring(const int *world, int n)
{
    if (unlikely(mr_shm_bell_rings()))
        mr_shm_ring_all(world, n);
}

/* Wake the other threads of this process that sleep: one of them may wait for what this one has just found. */
void mr_shm_wake(void);

#endif
