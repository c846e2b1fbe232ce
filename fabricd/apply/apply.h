/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A policy is put in force, or looked at. Everything here takes time and belongs to the manager's thread (work.h), and
 * manager_say tells how far it is.
 */
#ifndef FABRICD_APPLY_H
#define FABRICD_APPLY_H

#include "fabricd/apply/settle.h"

/*
 * Puts the task's policy in force. On success out has the new policy in force, which is kept, and which all ports have.
 * Otherwise all is as before, or store_intent remains: opensm or ports differ, and mend_interrupted is to be called
 * until they agree. With opensm on another host the ports must have the policy already, or get it within the allowed
 * time.
 */
void apply_policy(struct applier *a, struct task *t, struct manager_event *out);

/*
 * Back to the state before the first policy: opensm's files, and the tables of ports. as: the generation by another
 * host's count; 0: the next.
 */
void apply_nothing(struct applier *a, struct task *t, uint64_t as, struct manager_event *out);

/* The effect of apply_policy, with the same refusals. */
void apply_dry(struct applier *a, struct task *t, struct manager_event *out);

/* The changes of apply_policy: the plan against the ports, without any write. */
void apply_diff(struct applier *a, struct task *t, struct manager_event *out);

#endif
