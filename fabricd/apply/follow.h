/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configured policy file and the lock beside it, as they change: copied here by configuration management, or on a
 * shared directory. A thread of its own looks every second, because a file server may not answer for minutes.
 *
 * Half a file is never handed on, nor a policy that was edited and is not in force: a lock names its policy, and only
 * the two together are handed on. A policy without a lock, or with a lock that names no policy, is handed on after some
 * looks without a change. Files that others than root can write are not followed: a user could choose his class there.
 */
#ifndef FABRICD_FOLLOW_H
#define FABRICD_FOLLOW_H

#include "fabricd/base/text.h"

struct follow;

/* Owned by the receiver: free both texts. */
struct follow_news {
    struct text problem;      /* not empty: why the files cannot be followed now; then the others are empty */
    struct text policy, lock; /* handed on once; all three empty: the problem is gone, the files are unchanged */
};

/* NULL and errno on failure. */
struct follow *follow_start(const char *policy_path);
/* Does not wait for a file server. */
void follow_stop(struct follow *f);
/* Readable while there is news. */
int follow_fd(const struct follow *f);
/* False: there is none. */
bool follow_take(struct follow *f, struct follow_news *news);
/* Hand the files on once more with the next look, though they have not changed. */
void follow_again(struct follow *f);

#endif
