/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that takes the lock of another process's part of a window by the target's adapter (part.h): its next step,
 * and its knowledge. The taker names the change to make; its owner makes the change and reports the outcome. Pure.
 *
 * A return and the next take are posted one behind the other, over one connection; the owner sees to that. After a
 * broken connection the outcome of operations under way is unknown. The target process then clears everything of ours
 * (CLEAR), which is right in all cases: nobody holds a lock whose taking has not been seen to succeed. Until the target
 * has answered nothing else begins here: a late clear would remove more.
 */
#ifndef MRMPI_WINLOCK_TAKER_H
#define MRMPI_WINLOCK_TAKER_H

#include "libmrmpi/base/packet.h"
#include "libmrmpi/rma/winlock/part.h"

enum mr_taker_state { MR_TAKER_IDLE, MR_TAKER_WANTS, MR_TAKER_HOLDS };

struct mr_taker {
    enum mr_taker_state state;
    bool alone;      /* as wanted or held */
    bool delegated;  /* held since the target process has delegated the lock (part.h) */
    uint64_t number; /* as owner; not 0 */
    uint32_t slot;
    uint32_t slots;                    /* known slots */
    bool taking;                       /* a change or a read is under way */
    bool give, giving;                 /* our words there are to be taken back, ... */
    bool gives_alone, gives_delegated; /* ... the owner, the slot, or the delegation; under way */
    bool refuses;                      /* a delegation came after the request was dropped: to be returned, too */
    bool lost, clearing;               /* an outcome is not known; the process there has been asked to clear it */
    bool polls;          /* taken at the last attempt: reads until the lock is free, and disturbs no process */
    uint8_t keeps;       /* the owner, with this number of reads left to find out whether it is alone */
    bool hints, unhints; /* with the next read: tells others that it waits; it has left the lock to others */
    bool again;          /* held before, and by no other process since, as far as known */
    unsigned tries;      /* in vain, since the beginning */
};

enum mr_taker_step {
    MR_STEP_NONE,
    MR_STEP_TAKE, /* these three are atomics: mr_taker_atomic(). Then mr_taker_posted(), and mr_taker_done() */
    MR_STEP_POLL,
    MR_STEP_GIVE,
    MR_STEP_CLEAR, /* to be asked for; then mr_taker_posted(), and mr_taker_cleared() */
};

void mr_taker_init(struct mr_taker *t, uint64_t number, uint32_t slot, uint32_t slots);
/* It may be asked to take the lock: nothing is unknown. */
bool mr_taker_is_sound(const struct mr_taker *t);
void mr_taker_begin(struct mr_taker *t, bool alone); /* idle */
void mr_taker_delegated(struct mr_taker *t);         /* idle: the process there has delegated it, to be alone */
void mr_taker_refuse(struct mr_taker *t);            /* delegated too late: returns the lock */
void mr_taker_give(struct mr_taker *t);              /* held */
void mr_taker_return(struct mr_taker *t);            /* a delegated lock, returned otherwise */
/* No longer wants the lock, because no change can be posted; nothing of it is being taken. */
void mr_taker_stop(struct mr_taker *t);
enum mr_taker_step mr_taker_next(const struct mr_taker *t);
/* result: room for 8 + mr_lock_part_bytes(t->slots) bytes. */
struct mr_atomic mr_taker_atomic(const struct mr_taker *t, enum mr_taker_step step, uint64_t *result);
void mr_taker_posted(struct mr_taker *t, enum mr_taker_step step);
/* error: the change may have been made, or not. result: as above, for a take or a poll. */
void mr_taker_done(struct mr_taker *t, enum mr_taker_step step, int error, const uint64_t *result);
/* A change could not be posted, and there are no other means: our values there have to be cleared. */
void mr_taker_lose(struct mr_taker *t);
void mr_taker_cleared(struct mr_taker *t);

#endif
