/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of users: see users.h. */
#include "fabricd/jobs/users.h"
#include "fabricd/proto.h"

#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define KEPT   1024u /* users that are remembered: each has one place */
#define KEPT_S 60

static struct kept {
    uid_t uid;
    char name[FD_JOB_MAX]; /* empty: nobody is here */
    time_t until;
} kept[KEPT];

const char *users_name(uid_t uid)
{
    struct kept *k = &kept[uid % KEPT];
    struct passwd pw, *found = NULL;
    struct timespec now;
    char buf[4096];
    if (uid == FD_UID_ANY)
        return "";
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (*k->name && k->uid == uid && now.tv_sec < k->until)
        return k->name;
    k->uid = uid;
    k->until = now.tv_sec + KEPT_S;
    if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) || !found || !*pw.pw_name)
        snprintf(k->name, sizeof(k->name), "%u", uid);
    else
        snprintf(k->name, sizeof(k->name), "%s", pw.pw_name);
    return k->name;
}
