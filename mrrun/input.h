/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun's standard input, copied to the pipes of ranks: where several ranks read it, or where it is a terminal, which a
 * rank cannot read (it is not in the foreground). A single rank gets anything else itself, so that nothing is read that
 * the program does not read.
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
    bool ended; /* nothing comes any more: pipes are closed when their readers have what waits */
};

/* A new reader: the end of a pipe that the rank reads, or -1 with errno. */
int input_add(struct input *in, int rank);
/* Whether standard input is to be read now: there are readers, none has too much waiting. */
bool input_wanted(const struct input *in);
/* Copy what can be read, if so, and pass on what waits. */
void input_forward(struct input *in, bool readable);
void input_clear(struct input *in);

#endif
