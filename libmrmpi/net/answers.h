/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers that are sent from the program's memory. Such a send is complete when the packet has been delivered, a round
 * trip later. A program that waits for the next message does not notice: that comes later still. One that sends again
 * as soon as its send is complete, with what has come meanwhile, waits for the loan, not for a message: then nothing
 * has come since the loan has ended. Its answers are copied for a while, and ever longer. Pure.
 */
#ifndef MRMPI_ANSWERS_H
#define MRMPI_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#define MR_ANSWERS_REST  64u /* answers that are copied when one was waited for, at first and at most */
#define MR_ANSWERS_RESTS 4096u

struct mr_answers {
    bool ended;           /* a loan has, since the last answer, */
    uint32_t arrived;     /* when so many packets had come */
    unsigned rest, rests; /* answers that are copied still; as many when the next one is waited for */
};

/* So many packets have come; so in both. */
static inline void mr_answers_ended(struct mr_answers *a, uint32_t arrived)
{
    a->ended = true;
    a->arrived = arrived;
}

/* The next answer may be sent from the program's memory. */
static inline bool mr_answers_lend(struct mr_answers *a, uint32_t arrived)
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
