/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Why a job does not go on: the answers of its ranks to an inquiry (libmrmpi/api/inquiry.h), read, compared and put in
 * words. Pure: texts in, text out. A line of an answer that is not as it should be is passed over.
 */
#ifndef MRRUN_WAITS_H
#define MRRUN_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct waits;

/* NULL: no memory. */
struct waits *waits_new(int ranks);
void waits_free(struct waits *w);
/* The answer of a rank, of an inquiry with this number. False: it answers another one, or is no answer. */
bool waits_answer(struct waits *w, int rank, unsigned asked, const char *text, size_t len);
/* A rank that has not answered, and why in words: "computes". */
void waits_silent(struct waits *w, int rank, const char *why);
/* A rank that has ended well: nobody waits for it. */
void waits_ended(struct waits *w, int rank);
/* The report; each line begins with prefix. Ranks that say the same share their lines. simulated: so are times. */
void waits_write(const struct waits *w, const char *prefix, bool simulated, FILE *out);

/* Ranks for which is[r] holds: "rank 3", "ranks 0-2,7". */
void waits_ranks(const bool *is, int ranks, FILE *out);

#endif
