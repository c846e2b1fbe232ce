/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A policy is put in force, or looked at. Everything here takes time and belongs to the manager's thread (work.h), and
 * manager_say tells how far it is.
 */
#ifndef FABRICD_APPLY_H
#define FABRICD_APPLY_H

#include "fabricd/manager.h"
#include "fabricd/fabric/sms.h"
#include "fabricd/fabric/verify.h"

struct applier {
    struct manager *m;
    const struct conf *conf;
    struct sms sms; /* ours that run here: then this host manages their subnets */
};

/*
 * How to look at the fabric. The host that manages looks at the whole subnets that it manages. Others, and in other
 * subnets, look at their own ports and those at the other ends of their cables, if the lock tells what they cannot see.
 */
struct verify_options apply_look_options(const struct applier *a, const struct policy_lock *lock, bool others);
void apply_take_result(struct manager_event *e, struct verify_result *r, bool verified);

/*
 * The task's policy. On success out has what is in force from now on, which is kept, and which all ports have. Else all
 * is as before, or store_intent remains: opensm or ports are not, and apply_finish is to be called until they are.
 * Where opensm is elsewhere the ports must have the policy already, or get it within the time allowed.
 */
void apply_policy(struct applier *a, struct task *t, struct manager_event *out);

/*
 * A change that was interrupted (store_intent): brings opensm's files, opensm and the ports to what is in force, be it
 * the policy of before the change or the new one. 0, or a negative errno: not yet.
 */
struct store_intent;
int apply_finish(struct applier *a, struct task *t, struct store_intent *i, struct manager_event *out);

/* What apply_policy would change: the plan against the ports, and nothing is written. */
void apply_diff(struct applier *a, struct task *t, struct manager_event *out);

/* Look until the ports have the tables of f, or the time allowed is up: 0 or -ETIMEDOUT, -ECANCELED. */
int apply_wait(struct applier *a, struct task *t, const struct in_force *f, struct manager_event *out);

#endif
