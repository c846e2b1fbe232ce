/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words of a command (`simfab fault ...`, `simfab flow ...`). Newlines separate words, because words such as node
 * names may contain spaces. Pure: independent of the fabric.
 */
#ifndef SIMFAB_WORDS_H
#define SIMFAB_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simfab/engine/base/text.h"

#define WORDS_MAX 32
#define WORD_MAX  80 /* with the terminating zero */

struct words {
    char word[WORDS_MAX][WORD_MAX];
    unsigned n;
};

/* False: too many words, or a word too long; t has the text. Words beyond n are empty. */
bool words_split(const char *line, struct words *w, struct text *t);

/* "name=value": the value if word begins with name and '=', else NULL. */
const char *word_value(const char *word, const char *name);

/* A number from min to max, and nothing after it. */
bool word_real(const char *text, double min, double max, double *out);
bool word_whole(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* A time: a number and ps, ns, us, ms or s; at most a day. */
bool word_time(const char *text, uint64_t *ps);

#endif
