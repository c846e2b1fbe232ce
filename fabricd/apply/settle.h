/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opensm takes what is in its file, and the ports are read until they have it. Everything here takes time and belongs
 * to the manager's thread (work.h); manager_say tells how far it is. Errors are negative errnos.
 */
#ifndef FABRICD_SETTLE_H
#define FABRICD_SETTLE_H

#include "fabricd/fabric/sms.h"
#include "fabricd/fabric/snapshot.h"
#include "fabricd/fabric/verify.h"
#include "fabricd/apply/manager.h"

struct applier {
    struct manager *m;
    const struct conf *conf;
    struct sms sms; /* ours that run here: then this host manages their subnets */
    bool undoes;    /* a change that began with sms_note_stopped is being rolled back */

    /* The planes as settle_ports last saw them, when all ports had what was wanted. 0: no such look. */
    unsigned num_settled;
    struct verify_plane settled[VERIFY_SUBNETS_MAX];
};

/*
 * How to look at the fabric. The host that manages looks at the whole subnets that it manages. Others, and in other
 * subnets, look at their own ports and those at the other ends of their cables, if the lock tells what they cannot see.
 */
struct verify_options settle_options(const struct applier *a, const struct policy_lock *lock, bool others);
/* All ports against what f wants; without a policy they are only looked at. As verify_fabric. */
bool settle_look(const struct applier *a, const struct in_force *f, bool others, struct verify_result *r);
void settle_take_result(struct manager_event *e, struct verify_result *r, bool verified);
/* What the planes can do that were looked at as a whole: how many. */
unsigned settle_seen(const struct verify_result *r, struct lock_plane seen[LOCK_PLANES_MAX]);

/* For programs: fabricctl's --json. */
void settle_tell_found(struct manager_event *e, const struct verify_result *r);

/* The last line of what went wrong, if anything did: rc. */
int settle_said(struct applier *a, struct task *t, int rc, struct text *why);

/* Have opensm take what is in its file. */
int settle_push(struct applier *a, struct task *t, bool restart);
/* Memberships in partitions that ports have lost or got behind opensm's back, which trusts what it wrote: written. */
void settle_pkeys(const struct applier *a, const struct in_force *want);
/*
 * Have opensm write all tables, also tables that opensm believes to be right. The files end as sms has them as new.
 * obeys: the ports have followed, so opensm has read its files, the partitions' too.
 */
int settle_rewrite(struct applier *a, struct task *t, const struct in_force *want, bool *obeys);
/*
 * Looks until all ports have the tables of want or time is up (-ETIMEDOUT, -ECANCELED), and then sets a->settled. With
 * may_push, helps opensm where opensm is known to fall short (-ESRCH: it does not run).
 */
int settle_ports(struct applier *a, struct task *t, const struct in_force *want, bool may_push,
                 struct manager_event *out);
/* What ports had before. -EIO: some could not be written; -ETIMEDOUT: an opensm is stopped; -ECANCELED. of NULL: all;
 * else those of the plane there. */
int settle_put_back(struct applier *a, struct task *t, const struct snapshot *before, const struct smp_port *of);

#endif
