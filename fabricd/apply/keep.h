/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A policy becomes a generation, and other hosts hear of it. For the manager's thread: apply.c while the fabric is
 * being changed, work.c where it is not.
 */
#ifndef FABRICD_KEEP_H
#define FABRICD_KEEP_H

#include "fabricd/apply/settle.h"
#include "fabricd/apply/store.h"

/* The same file for the same fabric. What the ports can do may have changed the tables. */
bool keep_is_same(const struct in_force *a, const struct in_force *b);

/* Stamps next with its number. As the host counts that manages the subnet, if the task's lock says so; else one more.
 */
void keep_number(const struct applier *a, const struct task *t, struct in_force *next);

/* A generation of next, with opensm's files as they are to be; not current yet. */
int keep_write(const struct applier *a, const struct task *t, const struct in_force *next,
               char name[GENERATION_NAME_MAX]);

/* The files of all opensm that run, for an intent. */
void keep_intend(const struct applier *a, struct store_intent *i);
/* How it ended, beside the generation that was tried. planes: and on each of them, a list in YAML; or NULL. */
int keep_result(const struct applier *a, const char *generation, const char *what, const struct text *planes);

/* What is in force from now on, if it is not the current generation already, where the fabric was not changed. */
int keep_save(const struct applier *a, const struct task *t, const struct in_force *next);

/* What was there before the first policy: opensm's files, and the tables of the ports. */
int keep_before(const struct applier *a, const struct snapshot *ports);
/* NULL: it is not known. */
struct snapshot *keep_load_before(const struct applier *a, char name[GENERATION_NAME_MAX]);
/* A file of opensm, of at most max bytes, as a generation has it. -ENOENT: not known, or there was none. */
int keep_load_config(const struct applier *a, const char *name, const char *config, size_t max, struct text *out);

/* After a rollback: the configured file gets its policy, so that hosts which follow that hear of it. */
void keep_publish_rollback(const struct applier *a, const struct task *t, const struct in_force *f);

/* Hosts that follow the configured file are told by the lock beside it. */
void keep_publish(const struct applier *a, const struct task *t, const struct in_force *f);

#endif
