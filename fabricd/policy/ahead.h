/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ahead budgets: how much of a link each class may send on the levels that go ahead of bulk (small messages in the
 * high-priority table, medium ones on lanes of their own), so that shares hold all the same. Pure.
 *
 * Bulk lanes divide what is left of the link by shares s. If the classes send a of it ahead, A in all, class i has
 * a_i + s_i (1 - A), which is a_i - s_i A off its share. At worst it alone sends ahead, or all others do:
 *     a_i (1 - s_i) <= D    and    s_i (A - a_i) <= D    for all i
 * keep everybody within D, whoever uses how much of his budget.
 */
#ifndef FABRICD_AHEAD_H
#define FABRICD_AHEAD_H

#include "fabricd/policy/compile.h"

#define AHEAD_POINTS 1.2 /* D, in percent of a link; rounding in the tables has the rest of two points */
#define AHEAD_MOST   50  /* percent, for who has nearly all of the link */

/*
 * The budgets of all classes, in percent of a link, for what one host sends over one rail. They are divided by the
 * fabric's oversubscription: so many hosts share a cable between switches, and all may use theirs. 0: the class has no
 * such levels, or is the only one and needs no budget.
 */
void ahead_budgets(const struct qos_tables *t, double percent[POLICY_CLASSES_MAX]);
/* That of one of so many processes, on each level, in the units of fd_rail.ahead. 0: no budget is needed. For its part
 * of an adapter's messages: of the share, on one level. */
uint16_t ahead_part(double percent, unsigned levels, unsigned sharers);

#endif
