/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much each user may make the daemon log: QUOTA_BURST lines at once, then one each QUOTA_EVERY_US. Lines beyond are
 * counted, and the count is reported as soon as the user has a line again. Pure: the caller tells the time.
 */
#ifndef FABRICD_QUOTA_H
#define FABRICD_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#define QUOTA_USERS    64u /* with an entry of their own; users beyond that share QUOTA_OTHERS */
#define QUOTA_BURST    20u
#define QUOTA_EVERY_US 1000000u
#define QUOTA_OTHERS   UINT32_MAX

struct quota_user {
    uint32_t uid;
    uint64_t full_us;  /* when all of the burst is there again; earlier by QUOTA_EVERY_US for each line that is */
    uint64_t left_out; /* lines since the last report */
};

/* Zero-initialised is empty. */
struct quota {
    unsigned num_users;
    struct quota_user user[QUOTA_USERS + 1];
};

/* True if a line caused by this user may be logged. Otherwise the line counts as left out. */
bool quota_take(struct quota *q, uint32_t uid, uint64_t now_us);
/* A user with left-out lines and a free line, which the report takes. Returns the number of lines; 0: no such user. */
uint64_t quota_left_out(struct quota *q, uint64_t now_us, uint32_t *uid);

#endif
