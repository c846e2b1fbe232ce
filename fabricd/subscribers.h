/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each client knows of the daemon's state, and telling it what has changed: an FD_STATE (state.h makes it) in
 * answer to a hello, and after each change to those to whom it matters.
 */
#ifndef FABRICD_SUBSCRIBERS_H
#define FABRICD_SUBSCRIBERS_H

#include "fabricd/jobs/claims.h"

struct client;
struct daemon;

/* Of a client. */
struct subscriber {
    bool subscribed;
    bool as_owner;             /* it asks what the job's owner would be told */
    bool levels, spread;       /* it understands levels between small and large, and struct fd_spread */
    bool health;               /* and struct fd_health */
    char job[FD_JOB_MAX];      /* that it says it is of */
    struct claim claim;        /* what there is to that */
    struct job *of_ratio;      /* its job, if that has a small ratio; of no meaning but while they are counted */
    unsigned class_index;      /* by the policy in force */
    struct fd_state_long told; /* the last FD_STATE sent */
    uint16_t levels_told;      /* service levels that any of them gave it, a bit each: its queue pairs may have them */
};

/* The job of a client that has said hello, to hear of news: the one that it says, if it is believed. NULL: none. */
const struct job *subscribers_job(const struct daemon *d, const struct client *c);

/* The index of the client's class in the policy in force; -1: there is none. */
int subscribers_class(const struct daemon *d, const struct client *c);

/* Remembers what the client says of itself and answers. Others may get a new FD_STATE: they share budgets with it. */
void subscribers_on_hello(struct daemon *d, struct client *c, const struct fd_hello *m);

/* Something in the daemon's state has changed: every subscriber to whom it matters gets a new FD_STATE. */
void subscribers_publish(struct daemon *d);
/* Now and then: budgets that clients share grow when some have left. */
void subscribers_tick(struct daemon *d);

/* How many clients have been told one of these service levels since they connected? A bit each. */
unsigned subscribers_with_levels(const struct daemon *d, uint16_t levels);

#endif
