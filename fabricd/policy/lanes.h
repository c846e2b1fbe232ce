/* SPDX-License-Identifier: BSD-3-Clause */
/* Part of the compiler (see compile.h): the virtual lane of each service level, and the high-priority table. */
#ifndef FABRICD_LANES_H
#define FABRICD_LANES_H

#include "fabricd/policy/compile.h"

/*
 * Fill classes, sl2vl and the high-priority table. priority: of each class. low_cap, high_cap: entries of the tables.
 * The bulk of all classes is known to fit into p->vls lanes, and all classes are in the lock. Warnings go to d.
 */
void lanes_assign(const struct policy *p, const struct policy_lock *lock, const uint8_t *priority, unsigned low_cap,
                  unsigned high_cap, struct qos_tables *t, struct diag *d);

/* True if the level has a lane other than the bulk's. */
bool lanes_medium_own(const struct class_levels *l, unsigned n);

#endif
