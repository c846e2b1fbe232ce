/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Brings the policy in force to opensm's files, to opensm and to the ports again: after a failed or interrupted change,
 * and after changes by others. For the manager's thread. Errors are negative errnos.
 */
#ifndef FABRICD_MEND_H
#define FABRICD_MEND_H

#include "fabricd/apply/settle.h"
#include "fabricd/apply/store.h"

/*
 * The files are right: makes opensm read them, and gives the ports the policy in force; without a policy, their tables
 * from before.
 */
int mend_ports(struct applier *a, struct task *t, const struct snapshot *before, bool restart,
               struct manager_event *out);

/*
 * After an interrupted change (store_intent): brings files, opensm and ports to the policy in force, either the old one
 * or the new one. 0; else not yet.
 */
int mend_interrupted(struct applier *a, struct task *t, struct store_intent *i, struct manager_event *out);

/*
 * Writes the policy in force again to ports or opensm's files that have lost it. 0: done, or nothing could be mended
 * from here; else the loss remains.
 */
int mend_lost(struct applier *a, struct task *t, struct manager_event *out);

/*
 * Brings the hosts of the task's jobs into opensm's partition files and the ports' tables, and others out of them. 0:
 * all ports are as they should be, but for unknown hosts (out->unknown). On failure a task with a join leaves the
 * former files.
 */
int mend_members(struct applier *a, struct task *t, struct manager_event *out);

/* Adds opensm's files other than the files of f, and planes without a subnet manager, as differences. */
void mend_note(struct applier *a, const struct in_force *f, struct verify_result *r);

#endif
