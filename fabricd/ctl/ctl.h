/* SPDX-License-Identifier: BSD-3-Clause */
/* fabricctl's side of the socket: one request, its texts printed as they come, its result. */
#ifndef FABRICD_CTL_H
#define FABRICD_CTL_H

#include "fabricd/proto/proto_state.h"
#include "terminal/progress.h"

#include <stdio.h>

/* A connected socket, or a negative errno. */
int ctl_connect(const char *path);

/* The streams for the parts of an answer. */
struct ctl_sink {
    FILE *out, *found;     /* texts; the result of a look at the fabric, in YAML. found may be NULL */
    char more[FD_JOB_MAX]; /* the last job of a page; empty: it was the last page */
    bool said;             /* there was text */
    struct progress progress;
};

/*
 * Sends a message (its header is filled here). Copies the texts of the answer until the daemon is done. Returns the
 * daemon's status, or the negative errno of the conversation itself.
 */
int ctl_request_to(int fd, enum fd_type type, void *msg, size_t len, struct ctl_sink *to);
int ctl_request(int fd, enum fd_type type, void *msg, size_t len, FILE *out, FILE *found);

/* The same of all jobs, or joined jobs, page by page. */
int ctl_jobs(int fd, enum fd_type type, struct ctl_sink *to);

/* Say hello for a job, as its owner if root does; 0 with the daemon's answer in s, else a negative errno. */
int ctl_hello(int fd, const char *job, struct fd_state_long *s);

/* The state as YAML. */
void ctl_show_state(FILE *out, const char *job, const struct fd_state *s);

#endif
