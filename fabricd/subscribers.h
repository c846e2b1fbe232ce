/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each client's view of the daemon's state, and reports of changes: an FD_STATE (made by state.h) in answer to a hello,
 * and after each change that affects the client.
 */
#ifndef FABRICD_SUBSCRIBERS_H
#define FABRICD_SUBSCRIBERS_H

#include "fabricd/jobs/claims.h"

struct client;
struct daemon;

/* Of a client. */
struct subscriber {
    bool subscribed;
    uint64_t since_us;         /* of its first hello */
    bool as_owner;             /* asks for the state of the job's owner */
    bool levels, spread;       /* it understands levels between small and large, and struct fd_spread */
    bool health;               /* and struct fd_health */
    char job[FD_JOB_MAX];      /* its claimed job */
    struct claim claim;        /* the evidence for the claim */
    struct job *of_ratio;      /* its job, if the job has a small ratio; valid only during the count */
    unsigned class_index;      /* by the policy in force */
    struct fd_state_long told; /* the last FD_STATE sent */
    uint16_t levels_told;      /* service levels ever told to the client, a bit each: its queue pairs may have them */
};

/* The job of a client after its hello, for news: the claimed job, if the claim is believed. NULL: none. */
const struct job *subscribers_job(const struct daemon *d, const struct client *c);

/* The index of the client's class in the policy in force; -1: there is none. */
int subscribers_class(const struct daemon *d, const struct client *c);

/* Remembers the client's hello and answers. Others may get a new FD_STATE: they share budgets with the client. */
void subscribers_on_hello(struct daemon *d, struct client *c, const struct fd_hello *m);

/* The daemon's state has changed: every affected subscriber gets a new FD_STATE. */
void subscribers_publish(struct daemon *d);
/* Sends the client its FD_STATE again, with FD_CHANGED_PATHS. False: the client has not subscribed. */
bool subscribers_tell_paths(struct client *c);
/* Now and then: budgets that clients share grow when some have left. */
void subscribers_tick(struct daemon *d);

/* The number of clients that were told one of these service levels since they connected; levels: a bit each. */
unsigned subscribers_with_levels(const struct daemon *d, uint16_t levels);

#endif
