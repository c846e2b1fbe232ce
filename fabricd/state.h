/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The FD_STATE (proto.h) for a process of the library: its job's class, service levels and budgets, and the rails of
 * this host. Pure: from the daemon's state to a message.
 */
#ifndef FABRICD_STATE_H
#define FABRICD_STATE_H

#include "fabricd/daemon.h"
#include "fabricd/proto/ratio.h"

struct state_asker {
    const char *job;             /* as it says; FD_JOB_MAX bytes, zeroed behind the text */
    unsigned class_index;        /* its class by the policy in force; meaningless without a policy */
    uint32_t pkey;               /* partition of its job by the policy in force; 0: not given */
    bool levels, spread, health; /* the parts that the client understands */
    uint32_t uid;                /* the client's own */
    uint64_t since_us;           /* when it said hello */
    struct ratio ratio;          /* of its job; none: the budget ahead of its class */
    unsigned job_sharers;        /* the number of processes that divide the ratio */
};

/* sharers: by how many the ahead budget of each class is divided on this host. */
void state_fill(const struct daemon *d, const struct state_asker *who, const unsigned sharers[POLICY_CLASSES_MAX],
                struct fd_state_long *out);
/* FD_CHANGED_ bits: the differences from a to b. */
uint16_t state_changes(const struct fd_state *a, const struct fd_state *b);
/* The service levels in the message, a bit each. */
uint16_t state_levels(const struct fd_state *m);

#endif
