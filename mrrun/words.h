/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words of a file of command lines (-configfile): each line is a part of the job, '#' begins a comment, a backslash
 * at the end of a line continues it. Quotes and backslashes are the shell's. Pure.
 */
#ifndef MRRUN_WORDS_H
#define MRRUN_WORDS_H

#include <stddef.h>

struct words {
    char *text;  /* of all words, each with its end */
    char **word; /* [count + 1], NULL at the end; ":" stands between two lines */
    int count;
};

/* 0, or -1 with a message in *why that names file and line. */
int words_read(struct words *w, const char *text, const char *file, char *why, size_t cap);
void words_clear(struct words *w);

#endif
