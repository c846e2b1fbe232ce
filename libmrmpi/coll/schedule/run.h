/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done with a schedule (sched.h) that has been built: it is run to its end (blocking), started (nonblocking,
 * goes on in the progress engine) or kept to be started many times (persistent); all three take it over. Called with
 * the library's lock held.
 */
#ifndef MRMPI_SCHEDULE_RUN_H
#define MRMPI_SCHEDULE_RUN_H

#include "libmrmpi/core/core.h"
#include "libmrmpi/p2p/pt2pt.h"

struct mr_schedule;

/*
 * In *out of a function that builds: the caller is blocking. Then the operation may be done when the function returns;
 * *out is NULL and the result its error, for mr_coll_run to pass on. *out is NULL or this before.
 */
#define MR_COLL_AT_ONCE ((struct mr_schedule *)-1)

/* To the end; the operation's error. If building failed (s NULL), that error: mr_coll_run(mr_coll_x(..., &s), s) must
 * be two statements. */
enum mr_err mr_coll_run(enum mr_err built, struct mr_schedule *s);
/* The same after an error `before` of an earlier part of the operation: the others get notices of it instead of data.
 */
enum mr_err mr_coll_run_after(enum mr_err before, enum mr_err built, struct mr_schedule *s);
enum mr_err mr_coll_start(struct mr_schedule *s, struct mr_request **req);
/* A persistent request, whose schedule starts by mr_coll_restart (not while it runs) and goes by mr_coll_drop (at the
 * end of its run if it runs). */
enum mr_err mr_coll_keep(struct mr_schedule *s, struct mr_request **req);
enum mr_err mr_coll_restart(struct mr_schedule *s, struct mr_request **req);
void mr_coll_drop(struct mr_schedule *s);

#endif
