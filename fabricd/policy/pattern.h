/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's attributes in rules of the policy: patterns of the shell (fnmatch(3)); all must match. */
#ifndef FABRICD_PATTERN_H
#define FABRICD_PATTERN_H

#include "fabricd/base/keys.h"
#include "fabricd/proto/proto.h"

/* Empty: anything. */
struct pattern {
    char user[FD_JOB_MAX], group[FD_JOB_MAX];
    char account[FD_JOB_MAX], qos[FD_JOB_MAX], partition[FD_JOB_MAX], name[FD_JOB_MAX];
};

/* The facts of a job; empty: not given. groups: each zero-terminated, and an empty one at the end. */
struct pattern_job {
    const char *user, *groups, *account, *qos, *partition, *name;
};

bool pattern_matches(const struct pattern *p, const struct pattern_job *job);

/* The keys of a mapping with a pattern at offset base, for a table of keys.h. At least one key must be present. */
#define PATTERN_KEY(field, text, base)                                                                                 \
    {                                                                                                                  \
        .name = #field, .help = text, .kind = KEY_TEXT, .max = FD_JOB_MAX - 1, .some = true,                           \
        .at = (base) + offsetof(struct pattern, field)                                                                 \
    }
#define PATTERN_KEYS(base)                                                                                             \
    PATTERN_KEY(user, "The user that the job's processes run as; a pattern of the shell.", base),                      \
        PATTERN_KEY(group, "A group that the user is in on this host; a pattern of the shell.", base),                 \
        PATTERN_KEY(account, "The account that the job was registered with; a pattern of the shell.", base),           \
        PATTERN_KEY(qos,                                                                                               \
                    "The scheduler's quality of service that the job was registered with; a pattern of the "           \
                    "shell.",                                                                                          \
                    base),                                                                                             \
        PATTERN_KEY(partition, "The partition, or queue, that the job was registered with; a pattern of the shell.",   \
                    base),                                                                                             \
        PATTERN_KEY(name, "The name that the job was registered with; a pattern of the shell.", base)

#endif
