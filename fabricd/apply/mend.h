/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is in force is brought to opensm's files, to opensm and to the ports again: after a change that failed or was
 * interrupted, and where somebody else has written. For the manager's thread. Errors are negative errnos.
 */
#ifndef FABRICD_MEND_H
#define FABRICD_MEND_H

#include "fabricd/apply/settle.h"
#include "fabricd/apply/store.h"

/* The files are right: opensm takes them, and the ports get what is in force; without a policy what they had before. */
int mend_ports(struct applier *a, struct task *t, const struct snapshot *before, bool restart,
               struct manager_event *out);

/*
 * A change that was interrupted (store_intent): files, opensm and ports are brought to what is in force, be it the
 * policy of before the change or the new one. 0; else not yet.
 */
int mend_interrupted(struct applier *a, struct task *t, struct store_intent *i, struct manager_event *out);

/*
 * What ports or opensm's files have lost of the policy in force is written again. 0: done, or there was nothing that
 * could be mended from here; else they have not got it.
 */
int mend_lost(struct applier *a, struct task *t, struct manager_event *out);

/* Opensm's files that are not what f makes of them, and planes without a subnet manager, as differences. */
void mend_note(struct applier *a, const struct in_force *f, struct verify_result *r);

#endif
