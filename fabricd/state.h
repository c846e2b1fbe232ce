/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process of the library is told: its job's class, service levels and budgets, and the rails of this host, as an
 * FD_STATE (proto.h). Pure: from the daemon's state to a message.
 */
#ifndef FABRICD_STATE_H
#define FABRICD_STATE_H

#include "fabricd/daemon.h"
#include "fabricd/proto/ratio.h"

struct state_asker {
    const char *job;             /* as it says; FD_JOB_MAX bytes, zeroed behind the text */
    unsigned class_index;        /* that it has by the policy in force; without one of no meaning */
    bool levels, spread, health; /* the parts that it understands */
    uint32_t uid;                /* its own */
    struct ratio ratio;          /* of its job; none: it may send ahead what its class may */
    unsigned job_sharers;        /* by how many that is divided */
};

/* sharers: by how many the ahead budget of each class is divided on this host. */
void state_fill(const struct daemon *d, const struct state_asker *who, const unsigned sharers[POLICY_CLASSES_MAX],
                struct fd_state_long *out);
/* FD_CHANGED_ bits: what b says that a did not. */
uint16_t state_changes(const struct fd_state *a, const struct fd_state *b);
/* The service levels that it gives out, a bit each. */
uint16_t state_levels(const struct fd_state *m);

#endif
