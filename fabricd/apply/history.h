/* SPDX-License-Identifier: BSD-3-Clause */
/* The generations that are kept, as text in YAML: what was put in force, when, by whom, and how it ended. */
#ifndef FABRICD_HISTORY_H
#define FABRICD_HISTORY_H

#include "fabricd/base/conf.h"
#include "fabricd/base/text.h"

/* A list of all, oldest first. */
void history_text(const struct conf *c, struct text *out);

/* One of them, with its policy, its lock and what was read back. -ENOENT: it is not kept; -EUCLEAN: it is damaged. */
int history_show(const struct conf *c, uint64_t generation, struct text *out);

/* What was in force before this generation; 0: nothing. */
uint64_t history_previous(const struct conf *c, uint64_t generation);

#endif
