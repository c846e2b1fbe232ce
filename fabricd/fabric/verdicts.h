/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports as each subnet manager left them: at the last look that found it master. The configuration of a subnet
 * manager on another host is not read, so this is all that is known of a foreign standby. A handover may come once in
 * months, so a host that manages keeps the verdicts in STATE/masters.yaml. For the manager's thread.
 */
#ifndef FABRICD_FABRIC_VERDICTS_H
#define FABRICD_FABRIC_VERDICTS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct sm_verdict {
    uint64_t guid; /* of the subnet manager's port */
    time_t at;     /* of the look */
    unsigned differences;
    uint64_t since_us; /* CLOCK_MONOTONIC: the first of the looks in a row that found differences; 0: none; not kept */
};

#define SM_VERDICTS_MAX 16 /* the oldest gives way */
struct sm_verdicts {
    char path[PATH_MAX];
    struct sm_verdict of[SM_VERDICTS_MAX]; /* the latest is the last */
    unsigned num;
    uint64_t generation;  /* of the policy that the ports are compared with */
    uint64_t patience_us; /* verdicts_lasts: the ports may need so long after a change of the policy */
    bool changed;         /* more than times, since the file was written */
    time_t kept_at;
    int error; /* of the last write, which was reported */
};

/* What is on disk. A damaged file is named in the log and put aside. */
void verdicts_open(struct sm_verdicts *v, const char *state_dir, unsigned patience_s);
/* Of the next looks. Differences from another policy count from now on. */
void verdicts_compare_with(struct sm_verdicts *v, uint64_t generation);
void verdicts_take(struct sm_verdicts *v, uint64_t guid, unsigned differences);
/* NULL: never seen as master. */
const struct sm_verdict *verdicts_find(const struct sm_verdicts *v, uint64_t guid);
/*
 * True if the ports have lacked the policy for longer than a roll-out takes. Hosts that follow a policy see differences
 * while its manager gives the ports another one.
 */
bool verdicts_lasts(const struct sm_verdicts *v, uint64_t guid);
/* Writes the file if there are news, or its times are old. */
void verdicts_keep(struct sm_verdicts *v);

#endif
