/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for what could keep the event loop waiting: the disk, directories of users on the network. It does one thing
 * after the other, in the order in which they were handed over.
 */
#ifndef FABRICD_JOBS_HELPER_H
#define FABRICD_JOBS_HELPER_H

#include <stdbool.h>
#include <systemd/sd-event.h>

struct helper;

/* NULL with errno set. */
struct helper *helper_start(sd_event *event);

/*
 * Wait for what it is doing, but not for ever. What was not done, or not told of, drop(arg) is called with (unless
 * NULL). False: it is still at it, so that what it was given must not be freed. h may be NULL.
 */
bool helper_stop(struct helper *h, void (*drop)(void *arg));

/* run(arg) in the thread, then done(arg) in the loop. False: no memory; neither is called. */
bool helper_do(struct helper *h, void (*run)(void *arg), void (*done)(void *arg), void *arg);

#endif
