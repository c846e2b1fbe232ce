/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at the network, and waiting. Rooms above have what they have under way looked at, too: they register it once.
 * All functions are called with the library's lock held; those that wait give it away in between.
 */
#ifndef MRMPI_PROGRESS_H
#define MRMPI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"

int mr_progress(void);                    /* one look; number of things done */
extern MR_OWN unsigned mr_progress_polls; /* so many have been made, of all kinds */
/*
 * For a caller that will come again (test, probe): looks at the network until done(arg), which is returned, or until
 * there is nothing to do; a limited number of times. Gives others a chance if it is not done.
 */
bool mr_progress_try(bool (*done)(void *arg), void *arg);
void mr_progress_some(void); /* the same, where it takes long to find out what is done */
/* Wait politely (spin, yield, sleep) until done(arg); polls the network, gives the lock away in between. */
void mr_progress_until(bool (*done)(void *arg), void *arg);
/* The same, until *complete, which other threads may set. looked: just now, for nothing. */
void mr_progress_wait(const volatile bool *complete, bool looked);
/* One look for a program that is not in an MPI function: nothing of it is called, as an operation of a reduction. */
int mr_progress_aside(void);

enum mr_progress_when {
    MR_PROGRESS_ALWAYS, /* in each look, those aside included */
    MR_PROGRESS_IN_MPI, /* in none that is aside */
};
/* What a room has under way: poll is called, and returns the number of things done, while *pending is not NULL. */
void mr_progress_register(enum mr_progress_when when, void *const *pending, int (*poll)(void));
/*
 * An inquiry: each time that *asked has another value, a waiter that finds nothing to do calls answer once, with the
 * time for which it has found nothing. asked NULL: no inquiries.
 */
void mr_progress_inquiry(const volatile uint32_t *asked, void (*answer)(uint64_t waited_ns));
void mr_progress_init(void); /* nothing is registered */

#endif
