/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running a built schedule (sched.h): to its end (blocking), started (nonblocking, continues in the progress engine) or
 * kept to be started many times (persistent); all three take the schedule over. Callers hold the library's lock.
 */
#ifndef MRMPI_SCHEDULE_RUN_H
#define MRMPI_SCHEDULE_RUN_H

#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/pt2pt.h"

struct mr_schedule;

/*
 * In *out of a function that builds: the caller is blocking. Then the operation may be done when the function returns;
 * *out is NULL and the result its error, for mr_coll_run to pass on. *out is NULL or this value before.
 */
#define MR_COLL_AT_ONCE ((struct mr_schedule *)-1)

/* To the end; the operation's error. If building failed (s NULL), that error: mr_coll_run(mr_coll_x(..., &s), s) must
 * be two statements. */
enum mr_err mr_coll_run(enum mr_err built, struct mr_schedule *s);
/* The same after an error `before` of an earlier part of the operation: the others get notices of it instead of data.
 */
enum mr_err mr_coll_run_after(enum mr_err before, enum mr_err built, struct mr_schedule *s);
enum mr_err mr_coll_start(struct mr_schedule *s, struct mr_request **req);
/*
 * A persistent request. mr_coll_restart starts its schedule (not while it runs), mr_coll_drop frees the schedule (after
 * a run under way).
 */
enum mr_err mr_coll_keep(struct mr_schedule *s, struct mr_request **req);
enum mr_err mr_coll_restart(struct mr_schedule *s, struct mr_request **req);
void mr_coll_drop(struct mr_schedule *s);

#endif
