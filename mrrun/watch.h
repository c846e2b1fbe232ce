/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors in an epoll set, each with a function that is called when it is ready. The set is itself a descriptor
 * that poll() takes. One event at a time, so that a function may close any of them.
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

/* Changes what is waited for; 0: nothing, not even the other end's going. */
void watch_want(int set, struct watch *w, uint32_t events);
/* Closes the descriptor, too. */
void watch_close(int set, struct watch *w);
/* Waits for an event, and has its function called. False: there was none. */
bool watch_serve(int set, int timeout_ms);

/* A descriptor of ours alone, that never blocks and is closed on exec; it returns the same descriptor. */
int watch_ready_fd(int fd);

#endif
