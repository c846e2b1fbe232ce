/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers sent from the program's memory. Such a send is complete when the packet has been delivered, a round trip
 * later. A program that waits for the next message does not notice: that message comes later still. A program that
 * sends again as soon as its send is complete, after earlier arrivals, waits for the send's end, not for a message:
 * then nothing has arrived since the end. Its answers are copied for a while, and ever longer. Pure.
 */
#ifndef MRMPI_ANSWERS_H
#define MRMPI_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/backoff.h"

struct mr_answers {
    bool ended;               /* a zero-copy send has, since the last answer, */
    uint32_t arrived;         /* the number of arrived packets then */
    struct mr_backoff copies; /* of zero-copy answers */
};

/* arrived: packets so far; the same in both functions */
static inline void mr_answers_ended(struct mr_answers *a, uint32_t arrived)
{
    a->ended = true;
    a->arrived = arrived;
}

/* The next answer may be sent from the program's memory. */
static inline bool mr_answers_zsend(struct mr_answers *a, uint32_t arrived)
{
    bool ended = a->ended;

    if (mr_backoff_skips(&a->copies))
        return false;
    a->ended = false;
    if (ended && a->arrived != arrived)
        mr_backoff_succeeded(&a->copies);
    if (!ended || a->arrived != arrived)
        return true;
    mr_backoff_failed(&a->copies, MR_BACKOFF_FIRST);
    return false;
}

#endif
