/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * progress: one line on standard error about long work, replaced by the next and erased at the end. Nothing is written
 * unless standard error is a terminal that can erase a line. The caller owns struct progress, and erases the line
 * before it writes anything else to the terminal.
 */
#ifndef TERMINAL_PROGRESS_H
#define TERMINAL_PROGRESS_H

#include <stdbool.h>

struct progress {
    bool on; /* there is a terminal: worth finding out how far the work is */
    bool shown;
};

struct progress progress_begin(void);
/* A text of one line, cut to the width of the terminal. */
void progress_show(struct progress *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void progress_erase(struct progress *p);

#endif
