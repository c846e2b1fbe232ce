/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reason that a job does not go on: the answers of its ranks to an inquiry (libmrmpi/api/inquiry.h), read, compared
 * and put in words. Pure: texts in, text out. Invalid lines of an answer are skipped.
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
/* Takes a rank's answer to the inquiry of this number. False: another inquiry's, or invalid. */
bool waits_answer(struct waits *w, int rank, unsigned asked, const char *text, size_t len);
/* A rank that has not answered, and why in words: "computes". */
void waits_silent(struct waits *w, int rank, const char *why);
/* A rank that has ended well and keeps no other rank waiting. */
void waits_ended(struct waits *w, int rank);
/*
 * The report; each line begins with prefix. Ranks with the same text share their lines. simulated: times are virtual.
 */
void waits_write(const struct waits *w, const char *prefix, bool simulated, FILE *out);

/* Ranks with is[r]: "rank 3", "ranks 0-2,7". */
void waits_ranks(const bool *is, int ranks, FILE *out);

#endif
