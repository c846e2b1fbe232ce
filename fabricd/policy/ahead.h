/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ahead budgets: the part of a link that each class may send on levels ahead of bulk (small messages in the
 * high-priority table, medium messages on lanes of their own) without spoiling shares. Pure.
 *
 * Bulk lanes divide the rest of the link by shares s. If the classes send a of the link ahead, A in all, class i has
 * a_i + s_i (1 - A), or a_i - s_i A off its share. The worst cases: class i alone sends ahead, or all others do:
 *     a_i (1 - s_i) <= D    and    s_i (A - a_i) <= D    for all i
 * keep every class within D, whichever budgets are used.
 */
#ifndef FABRICD_AHEAD_H
#define FABRICD_AHEAD_H

#include "fabricd/policy/compile.h"

#define AHEAD_POINTS 1.2 /* D, in percent of a link; rounding in the tables has the rest of two points */
#define AHEAD_MOST   50  /* percent, for a class with nearly all of the link */

/*
 * The budgets of all classes, in percent of a link, for the traffic of one host over one rail. The budgets are divided
 * by the fabric's oversubscription: as many hosts share a cable between switches, and all may use their budgets. 0: the
 * class has no such levels, or is the only class and needs no budget.
 */
void ahead_budgets(const struct qos_tables *t, double percent[POLICY_CLASSES_MAX]);
/*
 * The budget of one of several processes, on each level, in the units of fd_rail.ahead. 0: no budget is needed. The
 * same for the part of an adapter's messages: of the share, on one level.
 */
uint16_t ahead_part(double percent, unsigned levels, unsigned sharers);

#endif
