/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Facts about users: names and groups. A look-up over the network can take long, so a thread looks up, and callers get
 * the facts known by now. Facts are kept for a minute, and longer until the next look-up is done.
 */
#ifndef FABRICD_JOBS_USERS_H
#define FABRICD_JOBS_USERS_H

#include "fabricd/proto/proto.h"

#include <sys/types.h>
#include <systemd/sd-event.h>

struct users;

struct user {
    uid_t uid;
    bool known;            /* the facts below are valid */
    bool tried;            /* looked up; without known: the directory does not answer */
    char name[FD_JOB_MAX]; /* the number for a user without a name; empty: unknown */
    const char *groups;    /* names, each zero-terminated, and an empty one at the end */
};

/*
 * changed is called in the loop when something else is known of a user than before, or it has been tried first. NULL
 * with errno set.
 */
struct users *users_start(sd_event *event, void (*changed)(void *arg, uid_t uid), void *arg);
void users_stop(struct users *u);

/*
 * The known facts of a user, valid until the loop goes on; unknown or old facts are looked up. FD_UID_ANY, and calls
 * without users (NULL), never have facts. Main thread only.
 */
const struct user *users_get(struct users *u, uid_t uid);

#endif
