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

#define MR_ANSWERS_REST  64u /* copied answers after one was waited for, at first and at most */
#define MR_ANSWERS_RESTS 4096u

struct mr_answers {
    bool ended;           /* a zero-copy send has, since the last answer, */
    uint32_t arrived;     /* the number of arrived packets then */
    unsigned rest, rests; /* answers still to be copied; the number after the next wait */
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

    if (a->rest) {
        a->rest--;
        return false;
    }
    a->ended = false;
    if (ended && a->arrived != arrived)
        a->rests = 0;
    if (!ended || a->arrived != arrived)
        return true;
    a->rests = !a->rests ? MR_ANSWERS_REST : a->rests < MR_ANSWERS_RESTS ? 2 * a->rests : MR_ANSWERS_RESTS;
    a->rest = a->rests;
    return false;
}

#endif
