/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun's standard input, copied to the pipes of ranks: if several ranks read the input, or if the input is a terminal,
 * which a rank cannot read because it is not in the foreground. A single rank gets any other input itself, so that
 * nothing is read beyond the program's own reads.
 */
#ifndef MRRUN_INPUT_H
#define MRRUN_INPUT_H

#include <stdbool.h>

#include "mrrun/output.h"

struct input {
    struct sink *reader; /* ends of the pipes; fd -1: closed */
    int *rank;           /* of each reader */
    int count, open;
    bool terminal;
    bool ended; /* no more input: pipes are closed when their readers have all waiting bytes */
};

/* A new reader: the end of a pipe that the rank reads, or -1 with errno. */
int input_add(struct input *in, int rank);
/* Whether standard input is to be read now: there are readers, none has too much waiting. */
bool input_wanted(const struct input *in);
/* Copies available input, if readable, and passes on waiting bytes. */
void input_forward(struct input *in, bool readable);
void input_clear(struct input *in);

#endif
