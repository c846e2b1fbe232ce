/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that takes the lock of another one's part of a window by the adapter there (part.h): what it does next, and
 * what it knows. It says which word to change; its owner does that and tells the outcome. Pure.
 *
 * What is given back and taken again is posted one behind the other, over one connection; the owner sees to that. Where
 * a connection breaks the outcome of what was under way is not known. Then the process to whom the part belongs takes
 * back whatever there is of ours (CLEAR), which is right in all cases: nobody holds a lock whose taking has not been
 * seen to succeed. Until it has answered nothing else is begun here: a clearing that comes late would take back more.
 */
#ifndef MRMPI_WINLOCK_TAKER_H
#define MRMPI_WINLOCK_TAKER_H

#include "libmrmpi/base/packet.h"
#include "libmrmpi/rma/winlock/part.h"

enum mr_taker_state { MR_TAKER_IDLE, MR_TAKER_WANTS, MR_TAKER_HOLDS };

struct mr_taker {
    enum mr_taker_state state;
    bool alone;          /* as it wants or holds it */
    bool lent;           /* it holds it since the process there has lent it (part.h) */
    uint64_t number;     /* as owner; not 0 */
    uint32_t slot;
    uint32_t slots;      /* that there are, as far as it knows */
    bool taking;         /* a change or a look is under way */
    bool give, giving;   /* what is ours there is to be taken back, ... */
    bool gives_alone, gives_lent; /* ... which is the owner, or the slot, or what was lent; that is under way */
    bool refuses; /* it has been lent after that was not wanted any more: that is to be given back, too */
    bool lost, clearing; /* an outcome is not known; the process there has been asked to clear it */
    bool looks;          /* it was not free at the last attempt: looks until it is, and disturbs nobody */
    uint8_t keeps;       /* it is the owner, and looks so many times more whether it is alone */
    bool hints, unhints; /* with the next look: others shall know that it waits; it has left it to others */
    bool again;          /* it has had it, and nobody else since, as far as it knows */
    unsigned tries;      /* in vain, since it began */
};

enum mr_taker_step {
    MR_STEP_NONE,
    MR_STEP_TAKE, /* these three are words: mr_taker_word(). Then mr_taker_posted(), and mr_taker_done() */
    MR_STEP_LOOK,
    MR_STEP_GIVE,
    MR_STEP_CLEAR, /* to be asked for; then mr_taker_posted(), and mr_taker_cleared() */
};

void mr_taker_init(struct mr_taker *t, uint64_t number, uint32_t slot, uint32_t slots);
/* It may be asked to take the lock: nothing is unknown. */
bool mr_taker_is_sound(const struct mr_taker *t);
void mr_taker_begin(struct mr_taker *t, bool alone); /* idle */
void mr_taker_borrow(struct mr_taker *t);            /* idle: the process there has lent it, to be alone */
void mr_taker_refuse(struct mr_taker *t);            /* it has been lent too late: gives that back */
void mr_taker_give(struct mr_taker *t);              /* it holds it */
void mr_taker_return(struct mr_taker *t); /* what was lent, by another way than a word */
/* It wants it no more, since no word can be changed; nothing of it is being taken. */
void mr_taker_stop(struct mr_taker *t);
enum mr_taker_step mr_taker_next(const struct mr_taker *t);
/* result: room for 8 + mr_part_bytes(t->slots) bytes. */
struct mr_word mr_taker_word(const struct mr_taker *t, enum mr_taker_step step, uint64_t *result);
void mr_taker_posted(struct mr_taker *t, enum mr_taker_step step);
/* error: it may have been done, or not. result: as above, if it is a take or a look. */
void mr_taker_done(struct mr_taker *t, enum mr_taker_step step, int error, const uint64_t *result);
/* A word could not be posted, and there is no other way: what is there has to be cleared. */
void mr_taker_lose(struct mr_taker *t);
void mr_taker_cleared(struct mr_taker *t);

#endif
