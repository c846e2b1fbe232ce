/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals to mrrun. Requests to end (SIGINT, SIGTERM, SIGHUP) have a handler, so they count during any wait of mrrun;
 * the loop reads them from a pipe. From the second request on, mrrun ends by itself after a few seconds if the loop
 * does not react, at the third at once; the janitor (scratch.h) then clears away. All other signals are blocked, and
 * read from a signalfd.
 */
#ifndef MRRUN_SIGNALS_H
#define MRRUN_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct signals {
    int fd;       /* signalfd */
    int end_fd;   /* a byte for each request to end: the signal's number */
    sigset_t old; /* the former mask */
};

/* Call while the process has one thread. 0, or -1 with errno. */
int signals_take(struct signals *s);
/* In a child before exec, with all signals blocked: as mrrun found them. */
void signals_give_back(const sigset_t *old);
/* Has SIGCONT come since the last SIGTSTP? A process that would stop now would stay stopped. */
bool signals_continued(void);
/* Has the end been asked for? For waits that are no part of the loop. */
bool signals_end_asked(void);
/* mrrun's status for this end: 128 and the number of the last such signal. */
int signals_end_status(void);

#endif
