/* SPDX-License-Identifier: BSD-3-Clause */
/* What fabricctl's options say of a job, as a message to the daemon. What is wrong is told on standard error. */
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
 * Fill all but the header in. type: FD_JOB_SET, GIVE, CHOOSE or DEL; class: that is given, or chosen; NULL: none. same:
 * nothing is said of it. The owner is who was asked for, else who runs this; root sets jobs for others, and must say
 * for whom.
 */
bool ask_job(const struct ask_options *o, enum fd_type type, const char *job, const char *class_name, bool same,
             struct fd_job *m);

#endif
