/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for work that could keep the event loop waiting: the disk, directories of users on the network. The work is
 * done in the order of its submission.
 */
#ifndef FABRICD_JOBS_HELPER_H
#define FABRICD_JOBS_HELPER_H

#include <stdbool.h>
#include <systemd/sd-event.h>

struct helper;

/* NULL with errno set. */
struct helper *helper_start(sd_event *event);

/*
 * Waits for the running work, but not for ever. drop(arg) (unless NULL) is called for work that was not done or not
 * reported. False: the work still runs, so its data must not be freed. h may be NULL.
 */
bool helper_stop(struct helper *h, void (*drop)(void *arg));

/* run(arg) in the thread, then done(arg) in the loop. False: no memory; neither is called. */
bool helper_do(struct helper *h, void (*run)(void *arg), void (*done)(void *arg), void *arg);

#endif
