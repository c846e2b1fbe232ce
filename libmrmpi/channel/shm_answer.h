/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copy of an answer: a packet of 1 to 4 KiB to a peer that has sent something since the last such packet. The time
 * of the writer's stores (shm_copy.h) proves little about so few bytes: the stores wait in the core, and the program
 * that waits for the answer waits for its lines to come back, too. Half a round trip of 1 KiB takes .35 us by cached
 * stores and .65 by streaming stores between cores that share a cache, .85 and .75 between others (AMD EPYC, family 25
 * model 1), and the cached stores often take as long in both cases.
 *
 * Answers therefore go in blocks, both kinds of stores in turn at first. The kind with the faster blocks of round trips
 * is kept; the other has a block now and then. Of each kind the shortest block is known, and grows with longer blocks:
 * an interrupted block counts little. Pure.
 */
#ifndef MRMPI_SHM_ANSWER_H
#define MRMPI_SHM_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#define MR_ANSWER_BELOW 4096u /* bytes */
#define MR_ANSWER_BLOCK 32u   /* answers */
#define MR_ANSWER_FIRST 8u    /* blocks, by turns; */
#define MR_ANSWER_EVERY 32u   /* then one in this number uses the other mode */

struct mr_answer_copies {
    uint64_t began_ns;   /* the block; 0: none is timed */
    uint64_t took_ns[2]; /* a block of cached stores, of streaming ones; 0: not known */
    uint32_t left;       /* answers of this block to come */
    uint32_t blocks;     /* timed blocks */
    bool streams;        /* this block */
    bool best;           /* does streaming take less? */
};

/* The packet was no answer: the block under way says nothing. */
static inline void mr_answer_copies_break(struct mr_answer_copies *a)
{
    a->left = 0;
    a->began_ns = 0;
}

static inline void mr_answer_copies_judge(struct mr_answer_copies *a, uint64_t ns)
{
    uint64_t *took = &a->took_ns[a->streams], more = *took + *took / 8, other;

    *took = !*took || ns < more ? ns : more;
    a->blocks++;
    other = a->took_ns[!a->best];
    if (other && other + other / 32 < a->took_ns[a->best])
        a->best = !a->best;
}

/* An answer: is it streamed? The clock is read once in a block. */
static inline bool mr_answer_copies_stream(struct mr_answer_copies *a, uint64_t (*clock_ns)(void))
{
    uint64_t now;

    if (a->left) {
        a->left--;
        return a->streams;
    }
    now = clock_ns();
    if (a->began_ns)
        mr_answer_copies_judge(a, now - a->began_ns);
    a->began_ns = now;
    a->left = MR_ANSWER_BLOCK - 1;
    a->streams = a->blocks < MR_ANSWER_FIRST ? a->blocks % 2 : a->best != (a->blocks % MR_ANSWER_EVERY == 0);
    return a->streams;
}

#endif
