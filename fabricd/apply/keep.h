/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a policy a generation, and informs other hosts. For the manager's thread: apply.c while the fabric is being
 * changed, work.c otherwise.
 */
#ifndef FABRICD_KEEP_H
#define FABRICD_KEEP_H

#include "fabricd/apply/settle.h"
#include "fabricd/apply/store.h"

/* True for the same file for the same fabric. Abilities of the ports may have changed the tables. */
bool keep_is_same(const struct in_force *a, const struct in_force *b);

/*
 * Stamps next with its number: by the count of the host that manages the subnet, if the task's lock has it; else one
 * more.
 */
void keep_number(const struct applier *a, const struct task *t, struct in_force *next);

/* A generation of next, with opensm's files as they are to be; not current yet. */
int keep_write(const struct applier *a, const struct task *t, const struct in_force *next,
               char name[GENERATION_NAME_MAX]);

/* The files of all opensm that run, for an intent. */
void keep_intend(const struct applier *a, struct store_intent *i);
/* Writes the result beside the tried generation. planes: the result on each plane, a list in YAML; or NULL. */
int keep_result(const struct applier *a, const char *generation, const char *what, const struct text *planes);

/* Keeps the new policy in force, unless it is the current generation already, where the fabric was not changed. */
int keep_save(const struct applier *a, const struct task *t, const struct in_force *next);

/* Keeps the state before the first policy: opensm's files, and the tables of the ports. */
int keep_before(const struct applier *a, const struct snapshot *ports);
/* NULL: unknown. */
struct snapshot *keep_load_before(const struct applier *a, char name[GENERATION_NAME_MAX]);
/* A file of opensm, of at most max bytes, as a generation has it. -ENOENT: not known, or there was none. */
int keep_load_config(const struct applier *a, const char *name, const char *config, size_t max, struct text *out);

/*
 * After a rollback: the configured file gets the policy, or the lock beside it says that none is in force, so that
 * hosts which follow the file hear of the rollback. A failed write is noted and tried again by keep_publish at each
 * look; an error is that of the note.
 */
int keep_publish_rollback(const struct applier *a, const struct task *t, const struct in_force *f);

/* Writes the lock beside the configured file, for hosts that follow the file. */
void keep_publish(const struct applier *a, const struct task *t, const struct in_force *f);

#endif
