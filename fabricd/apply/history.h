/* SPDX-License-Identifier: BSD-3-Clause */
/* The kept generations, as text in YAML: policy, time, author and result. */
#ifndef FABRICD_HISTORY_H
#define FABRICD_HISTORY_H

#include "fabricd/base/conf.h"
#include "fabricd/base/text.h"

struct history_entry {
    uint64_t generation;
    int64_t at_s; /* of the epoch; 0: not known */
    char by[16];  /* apply, follow, rollback, ...; "?": not known */
    char policy[600];
    uint32_t uid; /* FD_UID_ANY: nobody has asked */
    char result[64];
    bool current;
};

/* Calls visit for each generation, oldest first. */
void history_each(const struct conf *c, void (*visit)(void *arg, const struct history_entry *e), void *arg);

/* A list of all, oldest first. */
void history_text(const struct conf *c, struct text *out);

/* One generation, with its policy, its lock and the tables read back. -ENOENT: not kept; -EUCLEAN: damaged. */
int history_show(const struct conf *c, uint64_t generation, struct text *out);

/* The generation in force before this one; 0: none. */
uint64_t history_previous(const struct conf *c, uint64_t generation);

#endif
