/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opensm reads its file, and the ports are read until they have the tables. Everything here takes time and belongs to
 * the manager's thread (work.h); manager_say reports progress. Errors are negative errnos.
 */
#ifndef FABRICD_SETTLE_H
#define FABRICD_SETTLE_H

#include "fabricd/fabric/planes.h"
#include "fabricd/fabric/sms.h"
#include "fabricd/fabric/snapshot.h"
#include "fabricd/fabric/verify.h"
#include "fabricd/apply/manager.h"

struct applier {
    struct manager *m;
    const struct conf *conf;
    struct sms sms;               /* ours that run here: then this host manages their subnets */
    const struct host_keys *jobs; /* hosts of running jobs, for partitions */
    struct sm_verdicts *verdicts; /* on subnet managers */
    bool undoes;                  /* a change that began with sms_note_stopped is being rolled back */

    /* The planes as settle_ports last saw them, when all ports had what was wanted. 0: no such look. */
    unsigned num_settled;
    struct verify_plane settled[VERIFY_SUBNETS_MAX];

    unsigned ports_up[VERIFY_SUBNETS_MAX]; /* of each plane before the first change; 0: not known */

    struct counter *counter; /* of the client that wants to know; NULL: none does */
};

/* How far the present looks are, for FD_COUNT. */
struct counter {
    struct manager *m;
    const struct task *task;
    unsigned ports; /* of the last whole look; 0: none */
    enum fd_counted what;
    unsigned most; /* so far: a look that begins anew does not go back */
    unsigned of;
    uint64_t next_us;
};
/* What the next looks count. of 0: ports. */
void settle_count(struct applier *a, enum fd_counted what, unsigned of);

/*
 * The options of a look. The managing host reads the whole subnets that it manages. Other hosts, and other subnets,
 * read their own ports and the ports at the other ends of their cables, if the lock has the facts that they cannot see.
 */
struct verify_options settle_options(const struct applier *a, const struct policy_lock *lock, bool others);
/* Compares all ports with f; without a policy only reads them. As verify_fabric. */
bool settle_look(const struct applier *a, const struct in_force *f, bool others, struct verify_result *r);
void settle_take_result(struct manager_event *e, struct verify_result *r, bool verified);
/* The abilities of planes that were read as a whole. Returns their number. */
unsigned settle_seen(const struct verify_result *r, struct lock_plane seen[LOCK_PLANES_MAX]);

/* For programs: fabricctl's --json. */
void settle_tell_found(struct manager_event *e, const struct verify_result *r);

/* Reports the last line of why, if there is an error. Returns rc. */
int settle_said(struct applier *a, struct task *t, int rc, struct text *why);

/* Makes opensm read its file. */
int settle_push(struct applier *a, struct task *t, bool restart);
/* Writes memberships in partitions that ports have lost or got without opensm, which trusts its own writes. */
void settle_pkeys(const struct applier *a, const struct in_force *want);
/*
 * Makes opensm write all tables, including tables that opensm believes to be right. The files end with the new
 * contents of sms. obeys: the ports have followed, so opensm has read its files, the partitions' too.
 */
int settle_rewrite(struct applier *a, struct task *t, const struct in_force *want, bool *obeys);
/*
 * Looks until all ports have the tables of want or time is up (-ETIMEDOUT, -ECANCELED), and then sets a->settled. With
 * may_push, helps opensm where opensm is known to fall short (-ESRCH: it does not run).
 */
int settle_ports(struct applier *a, struct task *t, const struct in_force *want, bool may_push,
                 struct manager_event *out);
/*
 * Puts the earlier tables of ports back. -EIO: some could not be written; -ETIMEDOUT: an opensm is stopped; -ECANCELED.
 * of NULL: all ports; else those of the plane there.
 */
int settle_put_back(struct applier *a, struct task *t, const struct snapshot *before, const struct smp_port *of);

#endif
