/* SPDX-License-Identifier: BSD-3-Clause */
/* fabricctl's side of the socket: one request, its texts printed as they come, its result. */
#ifndef FABRICD_CTL_H
#define FABRICD_CTL_H

#include "fabricd/proto/proto_state.h"

#include <stdio.h>

/* A connected socket, or a negative errno. */
int ctl_connect(const char *path);

/*
 * Sends a message (its header is filled here). Copies the texts of the answer to out until the daemon is done, and the
 * result of a look at the fabric, in YAML, to found (unless NULL). Returns the daemon's status, or the negative errno
 * of the conversation itself.
 */
int ctl_request(int fd, enum fd_type type, void *msg, size_t len, FILE *out, FILE *found);

/* The same of all jobs, page by page. */
int ctl_jobs(int fd, FILE *out);

/* Say hello for a job, as its owner if root does; 0 with the daemon's answer in s, else a negative errno. */
int ctl_hello(int fd, const char *job, struct fd_state_long *s);

/* The state as YAML. */
void ctl_show_state(FILE *out, const char *job, const struct fd_state *s);

#endif
