/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a part of a window on another host, while its process computes or not. Its owner, rma/, is told when it
 * is held, and when it has to be asked for by a packet instead: no connection leads to the adapter there that changes
 * locks, or one broke.
 *
 * There are two ways. The process there lends it, in the order of those that ask: that is soonest while it answers,
 * and fair. Or its adapter takes it (taker.h). Either way the adapter gives it back, so that nobody waits for a process
 * that computes. To be alone a process asks first, if it was answered soon the last time. Without an answer the
 * question is withdrawn, and the adapter takes it from then on: until the answer to that says that the process there
 * has come back. So no more than two packets wait there. A lent lock and the questions have serial numbers. What is
 * lent although the question has been withdrawn its adapter gives back: the process there may compute again.
 *
 * All functions are called with the library's lock held; the calls to the owner come out of them and of mr_progress().
 */
#ifndef MRMPI_WINLOCK_FAR_H
#define MRMPI_WINLOCK_FAR_H

#include "libmrmpi/channel/vc/word.h"
#include "libmrmpi/rma/winlock/taker.h"

struct mr_far_events {
    void (*held)(void *owner);
    void (*ask)(void *owner);   /* it is not, and is not tried any more: ask for it by a packet */
    /* Tell the process there to clear what is ours, and take back what it has lent with this serial number; then
     * mr_far_cleared(). */
    void (*clear)(void *owner, uint32_t lent);
    void (*borrow)(void *owner, uint32_t serial);   /* ask it to lend it, then mr_far_lent() or mr_far_queued() */
    void (*withdraw)(void *owner, uint32_t serial); /* that is no question any more; then mr_far_withdrawn() */
    void (*give_back)(void *owner, uint32_t serial); /* what was lent so is returned; then mr_far_withdrawn(), too */
};

struct mr_far;

/* number, slot, slots: as in struct mr_taker; part: the keys of the lock. NULL: no memory, or slots are not in that. */
struct mr_far *mr_far_open(struct mr_vc *vc, const struct mr_remote *part, const struct mr_taker *as,
                           const struct mr_far_events *events, void *owner);
/* Nothing is told any more; what is under way ends by itself. */
void mr_far_close(struct mr_far *f);
/* False: it has to be asked for by a packet. Else held() or ask() follows, perhaps before this returns. */
bool mr_far_begin(struct mr_far *f, bool alone);
bool mr_far_holds(const struct mr_far *f);
void mr_far_give(struct mr_far *f); /* if it is held. It is free soon */
void mr_far_cleared(struct mr_far *f);
void mr_far_lent(struct mr_far *f, uint32_t serial);
void mr_far_queued(struct mr_far *f, uint32_t serial, uint32_t ahead); /* so many others asked before */
void mr_far_withdrawn(struct mr_far *f);
/* Nothing of it is under way, nor to be done there. */
bool mr_far_is_quiet(const struct mr_far *f);
void mr_far_init(void); /* before the first is opened */

#endif
