/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a part of a window on another host, taken by the adapter there, while its process computes. Its owner,
 * rma/, is told when it is held, and when it has to be asked for by a packet instead: no connection leads to that
 * adapter, or one broke. All functions are called with the library's lock held; the calls to the owner come out of them
 * and of mr_progress().
 */
#ifndef MRMPI_WINLOCK_FAR_H
#define MRMPI_WINLOCK_FAR_H

#include "libmrmpi/vc/word.h"
#include "libmrmpi/winlock/taker.h"

struct mr_far_events {
    void (*held)(void *owner);
    void (*ask)(void *owner);   /* it is not, and is not tried any more: ask for it by a packet */
    void (*clear)(void *owner); /* ask the process there to clear what is ours, then mr_far_cleared() */
};

struct mr_far;

/* number, slot, slots: as in struct mr_taker; part: the keys of the lock. NULL: no memory. */
struct mr_far *mr_far_open(struct mr_vc *vc, const struct mr_remote *part, const struct mr_taker *as,
                           const struct mr_far_events *events, void *owner);
/* Nothing is told any more; what is under way ends by itself. */
void mr_far_close(struct mr_far *f);
/* False: it has to be asked for by a packet. Else held() or ask() follows, perhaps before this returns. */
bool mr_far_begin(struct mr_far *f, bool alone);
bool mr_far_holds(const struct mr_far *f);
void mr_far_give(struct mr_far *f); /* if it is held. It is free soon */
void mr_far_retry(struct mr_far *f); /* it may be free: if it waits, it tries now */
bool mr_far_waits(const struct mr_far *f); /* it is not held yet, and has been tried several times */
void mr_far_cleared(struct mr_far *f);
/* Nothing of it is under way, nor to be done there. */
bool mr_far_is_quiet(const struct mr_far *f);
void mr_far_init(void); /* before the first is opened */

#endif
