/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns fabricctl's options about a job into a message to the daemon. Errors go to standard error. */
#ifndef FABRICD_JOBS_ASK_H
#define FABRICD_JOBS_ASK_H

#include "fabricd/proto/proto.h"

/* Options of fabricctl; NULL: not given. */
struct ask_options {
    const char *user, *account, *qos, *partition, *name, *wish, *cgroup, *lease, *small_ratio, *run;
    bool renew;
};

/* A text into a field of this size. False: it is too long. */
bool ask_text(char *to, size_t size, const char *value, const char *what);

/*
 * Fills all but the header in. type: FD_JOB_SET, GIVE, CHOOSE or DEL; class: the given or chosen class; NULL: none.
 * same: the class is not mentioned. The owner is the requested user, else the caller; root sets jobs for others, and
 * must name the user.
 */
bool ask_job(const struct ask_options *o, enum fd_type type, const char *job, const char *class_name, bool same,
             struct fd_job *m);

#endif
