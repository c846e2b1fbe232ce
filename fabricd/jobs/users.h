/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of users, looked up where the host does: that can take time, so what was found is kept for a minute. */
#ifndef FABRICD_JOBS_USERS_H
#define FABRICD_JOBS_USERS_H

#include <stddef.h>
#include <sys/types.h>

/* The name that the policy's rules know a user by; his number, if he has none. "" for FD_UID_ANY. Main thread only. */
const char *users_name(uid_t uid);

#endif
