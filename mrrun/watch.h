/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors in an epoll set, each with a function for its events. The set is itself a descriptor for poll(). One
 * event at a time, so a function may close any of them.
 */
#ifndef MRRUN_WATCH_H
#define MRRUN_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct watch {
    int fd; /* -1: none */
    uint32_t events;
    void (*ready)(struct watch *w, uint32_t events);
};

/* Changes the awaited events; 0: none, not even the other end's hang-up. */
void watch_want(int set, struct watch *w, uint32_t events);
/* Closes the descriptor, too. */
void watch_close(int set, struct watch *w);
/* Waits for an event, and has its function called. False: there was none. */
bool watch_serve(int set, int timeout_ms);

/* Makes a descriptor non-blocking and close-on-exec; returns the same descriptor. The descriptor must not be shared. */
int watch_ready_fd(int fd);

#endif
