/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this host knows of users: their names and groups. To look that up can take long, where it comes over the
 * network; so a thread does it, and who asks gets what is known by now. It is kept for a minute, and longer until it
 * has been looked up again.
 */
#ifndef FABRICD_JOBS_USERS_H
#define FABRICD_JOBS_USERS_H

#include "fabricd/proto/proto.h"

#include <sys/types.h>
#include <systemd/sd-event.h>

struct users;

struct user {
    uid_t uid;
    bool known;            /* what follows is so */
    bool tried;            /* it has been looked up; not known then: its directory does not answer */
    char name[FD_JOB_MAX]; /* the number, if it has none; empty: not known */
    const char *groups;    /* names, each zero-terminated, and an empty one at the end */
};

/*
 * changed is called in the loop when something else is known of a user than before, or it has been tried first. NULL
 * with errno set.
 */
struct users *users_start(sd_event *event, void (*changed)(void *arg, uid_t uid), void *arg);
void users_stop(struct users *u);

/*
 * What is known of a user, valid until the loop goes on; what is not known, or was looked up long ago, is looked up.
 * Of FD_UID_ANY, and without users (NULL), nothing ever is. Main thread only.
 */
const struct user *users_get(struct users *u, uid_t uid);

#endif
