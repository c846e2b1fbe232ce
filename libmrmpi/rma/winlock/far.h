/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a part of a window on another host, while the target process computes or not. The owner, rma/, is called
 * when the lock is held, and when a packet has to ask for the lock instead: no connection leads to the target's lock
 * adapter, or a connection broke.
 *
 * There are two means. The target process delegates the lock, in the order of requests: fastest while the process
 * answers, and fair. Or its adapter takes the lock (taker.h). In either case the adapter returns the lock, so nobody
 * waits for a computing process. For an exclusive lock a process first asks the target process, if the last answer came
 * soon. Without an answer the question is withdrawn, and the adapter takes locks from then on, until an answer to the
 * withdrawal shows that the target process is back. At most two packets therefore wait there. A delegated lock and the
 * questions have serial numbers. The adapter returns a lock that was delegated although the question had been
 * withdrawn, because the target process may compute again.
 *
 * Callers hold the library's lock; calls to the owner come out of these functions and of mr_progress().
 */
#ifndef MRMPI_WINLOCK_FAR_H
#define MRMPI_WINLOCK_FAR_H

#include "libmrmpi/net/net.h"
#include "libmrmpi/rma/winlock/taker.h"

struct mr_far_events {
    void (*held)(void *owner);
    void (*ask)(void *owner); /* not held, and no further attempt: ask for the lock by a packet */
    /*
     * Ask the target process to clear our words, and to take back the delegation with this serial number; then
     * mr_far_cleared().
     */
    void (*clear)(void *owner, uint32_t delegated);
    void (*ask_delegation)(void *owner, uint32_t serial); /* then mr_far_delegated() or mr_far_queued() */
    void (*withdraw)(void *owner, uint32_t serial);       /* that is no question any more; then mr_far_withdrawn() */
    void (*give_back)(void *owner, uint32_t serial);      /* return the delegated lock; then mr_far_withdrawn(), too */
};

struct mr_far;

/* number, slot, slots: as in struct mr_taker; part: the keys of the lock. NULL: no memory, or slots are not in that. */
struct mr_far *mr_far_open(struct mr_vc *vc, const struct mr_remote *part, const struct mr_taker *as,
                           const struct mr_far_events *events, void *owner);
/* No more calls to the owner; operations under way end by themselves. */
void mr_far_close(struct mr_far *f);
/* False: it has to be asked for by a packet. Else held() or ask() follows, perhaps before this returns. */
bool mr_far_begin(struct mr_far *f, bool alone);
bool mr_far_holds(const struct mr_far *f);
void mr_far_give(struct mr_far *f); /* if held. The lock is free soon */
void mr_far_cleared(struct mr_far *f);
void mr_far_delegated(struct mr_far *f, uint32_t serial);
void mr_far_queued(struct mr_far *f, uint32_t serial, uint32_t ahead); /* the number of earlier requests of others */
void mr_far_withdrawn(struct mr_far *f);
/* From now on the lock is asked for by packets: only the process there can tell that the lock is never free again. */
void mr_far_only_ask(struct mr_far *f);
/* Nothing of it is under way, nor to be done there. */
bool mr_far_is_quiet(const struct mr_far *f);
void mr_far_init(void); /* before the first is opened */

#endif
