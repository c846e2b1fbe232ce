/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copy of an answer: a packet of 1 to 4 KiB to a peer that has sent something since the last such packet. The time
 * of the writer's stores (base/copier.h) proves little about so few bytes: the stores wait in the core, and the program
 * that waits for the answer waits for its lines to come back, too. Half a round trip of 1 KiB takes .35 us by cached
 * stores and .65 by streaming stores between cores that share a cache, .85 and .75 between others (AMD EPYC, family 25
 * model 1), and the cached stores often take as long in both cases.
 *
 * Answers therefore go in blocks, and the learner (base/learn.h) compares the times of blocks of round trips. Pure.
 */
#ifndef MRMPI_SHM_ANSWER_H
#define MRMPI_SHM_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/learn.h"

#define MR_ANSWER_BELOW 4096u /* bytes */
#define MR_ANSWER_BLOCK 32u   /* answers */

enum { MR_ANSWER_CACHED, MR_ANSWER_STREAMED }; /* ways */

struct mr_answer_copies {
    struct mr_learn learn; /* an operation is a block */
    uint64_t began_ns;     /* the block; 0: none is timed */
    uint32_t left;         /* answers of this block to come */
    uint8_t way;           /* of this block */
};

/* The packet was no answer: the block under way says nothing. */
static inline void mr_answer_copies_break(struct mr_answer_copies *a)
{
    a->left = 0;
    a->began_ns = 0;
}

/* An answer: is it streamed? The clock is read once in a block. */
static inline bool mr_answer_copies_stream(struct mr_answer_copies *a, uint64_t (*clock_ns)(void))
{
    uint64_t now;

    if (a->left) {
        a->left--;
        return a->way == MR_ANSWER_STREAMED;
    }
    now = clock_ns();
    if (a->began_ns)
        mr_learn_took(&a->learn, a->way, now - a->began_ns);
    a->began_ns = now;
    a->left = MR_ANSWER_BLOCK - 1;
    a->way = (uint8_t)mr_learn_next(&a->learn, 1u << MR_ANSWER_CACHED | 1u << MR_ANSWER_STREAMED, MR_LEARN_SAMPLES);
    return a->way == MR_ANSWER_STREAMED;
}

#endif
