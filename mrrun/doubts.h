/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that cannot reach each other, as one of the two says (mrrun --recover). All ranks must take the same ranks for
 * failed, so of each such pair one rank is ended. Where a host is cut off its ranks are in most pairs: of the pairs
 * whose ranks live, the rank in most of them goes first, and of several the highest. Pure.
 */
#ifndef MRRUN_DOUBTS_H
#define MRRUN_DOUBTS_H

#include <stdbool.h>

struct doubts {
    struct {
        int by, of;
    } * pair;
    int num;
};

/* Rank `by` cannot reach rank `of`. False: no memory. */
bool doubts_add(struct doubts *d, int by, int of);
/*
 * Ends one rank: lives[ranks] loses that rank, and the pairs with ranks that do not live are dropped. Returns the rank;
 * -1: no pair is left. *by: a rank that could not reach it.
 */
int doubts_end_one(struct doubts *d, bool *lives, int ranks, int *by);
void doubts_free(struct doubts *d);

#endif
