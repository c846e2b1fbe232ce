/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines caused by users: see quota.h. */
#include "fabricd/base/quota.h"

#include <stddef.h>

#define BURST_US ((uint64_t)QUOTA_BURST * QUOTA_EVERY_US)

static struct quota_user *quota_user_of(struct quota *q, uint32_t uid, uint64_t now_us)
{
    struct quota_user *idle = NULL;
    for (unsigned i = 0; i < q->num_users; i++) {
        struct quota_user *u = &q->user[i];
        if (u->uid == uid)
            return u;
        if (u->full_us <= now_us && !u->left_out)
            idle = u;
    }
    if (q->num_users < QUOTA_USERS)
        idle = &q->user[q->num_users++];
    if (idle) {
        *idle = (struct quota_user){.uid = uid};
        return idle;
    }
    if (q->num_users == QUOTA_USERS)
        q->user[q->num_users++] = (struct quota_user){.uid = QUOTA_OTHERS};
    return &q->user[QUOTA_USERS];
}

static bool spend_quota(struct quota_user *u, uint64_t now_us)
{
    uint64_t full_us = (u->full_us > now_us ? u->full_us : now_us) + QUOTA_EVERY_US;
    if (full_us - now_us > BURST_US)
        return false;
    u->full_us = full_us;
    return true;
}

bool quota_take(struct quota *q, uint32_t uid, uint64_t now_us)
{
    struct quota_user *u = quota_user_of(q, uid, now_us);
    bool ok = !u->left_out && spend_quota(u, now_us); /* the report comes first, so that lines stay in their order */
    u->left_out += !ok;
    return ok;
}

uint64_t quota_left_out(struct quota *q, uint64_t now_us, uint32_t *uid)
{
    for (unsigned i = 0; i < q->num_users; i++) {
        struct quota_user *u = &q->user[i];
        if (u->left_out && spend_quota(u, now_us)) {
            uint64_t n = u->left_out;
            u->left_out = 0;
            *uid = u->uid;
            return n;
        }
    }
    return 0;
}
