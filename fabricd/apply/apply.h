/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A policy is put in force, or looked at. Everything here takes time and belongs to the manager's thread (work.h), and
 * manager_say tells how far it is.
 */
#ifndef FABRICD_APPLY_H
#define FABRICD_APPLY_H

#include "fabricd/apply/settle.h"

/*
 * The task's policy. On success out has what is in force from now on, which is kept, and which all ports have. Else all
 * is as before, or store_intent remains: opensm or ports are not, and mend_interrupted is to be called until they are.
 * Where opensm is elsewhere the ports must have the policy already, or get it within the time allowed.
 */
void apply_policy(struct applier *a, struct task *t, struct manager_event *out);

/*
 * Back to what was there before the first policy: opensm's files, and the tables that ports had. as: the generation, as
 * another host counts; 0: the next one.
 */
void apply_nothing(struct applier *a, struct task *t, uint64_t as, struct manager_event *out);

/* What apply_policy would do, with the same refusals. */
void apply_dry(struct applier *a, struct task *t, struct manager_event *out);

/* What apply_policy would change: the plan against the ports, and nothing is written. */
void apply_diff(struct applier *a, struct task *t, struct manager_event *out);

#endif
