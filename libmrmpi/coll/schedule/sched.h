/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A schedule: the list of steps that a collective takes on this rank, in phases. Sends and receives of a phase run at
 * the same time; copies and reductions happen when their turn comes; a fence waits for all sends and receives before
 * it, a wait for one of them. Algorithms only append steps; memory that runs out is remembered and reported by
 * mr_schedule_built, so they need not check.
 *
 * A schedule owns its temporary buffers, holds references to communicator, types and operation, and frees itself when
 * it is done; a persistent one when it is dropped.
 */
#ifndef MRMPI_SCHEDULE_SCHED_H
#define MRMPI_SCHEDULE_SCHED_H

#include "libmrmpi/core/objects.h"
#include "libmrmpi/coll/schedule/run.h"

void mr_schedules_init(void); /* hooks into progress */
void mr_schedules_finalize(void);

struct mr_schedule *mr_schedule_new(struct mr_comm *c); /* NULL: no memory; takes the communicator's next tag */
void mr_schedule_skip(struct mr_comm *c); /* takes that tag: others may have a schedule for this operation */
/* The end of building: *out is s, or s is freed and *out NULL when memory has run out. */
enum mr_err mr_schedule_built(struct mr_schedule *s, struct mr_schedule **out);
/*
 * Steps that follow are over c: the schedule's own communicator, or one second one (the local group of an
 * intercommunicator), whose next tag is taken. Both must see the same order of collectives at all their members.
 */
void mr_schedule_on(struct mr_schedule *s, struct mr_comm *c);
/*
 * Receives may get less than they have room for. The standard wants equal amounts, but where each rank gives its own
 * count programs have long got away with too large ones, and nothing comes to lie in a wrong place.
 */
void mr_schedule_allow_less(struct mr_schedule *s);

/* At some rank so many messages as those of the next steps go at a time, or come; 1: it is not known. All ranks say
 * alike; where they do not, and all messages are equally long, announcements are in vain. */
void mr_schedule_crowd(struct mr_schedule *s, int num);

void mr_schedule_send(struct mr_schedule *s, const void *buf, size_t count, struct mr_type *t, int dest);
void mr_schedule_recv(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int src);
void mr_schedule_copy(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                      size_t ocount, struct mr_type *ot);
/* inout = in op inout */
void mr_schedule_reduce(struct mr_schedule *s, struct mr_op *op, const void *in, void *inout, size_t count,
                        struct mr_type *t);
void mr_schedule_fence(struct mr_schedule *s);
/* The step that was appended last. A wait: what follows begins when that send or receive is done; others go on. */
size_t mr_schedule_last(const struct mr_schedule *s);
void mr_schedule_wait(struct mr_schedule *s, size_t step);
/* Keep an object until the schedule is done (once per type or op used). */
void mr_schedule_hold_type(struct mr_schedule *s, struct mr_type *t);
void mr_schedule_hold_op(struct mr_schedule *s, struct mr_op *op);

/* Memory that lives as long as the schedule; for `count` elements of t, such that it can be used as their buffer. Never
 * NULL. */
bool mr_schedule_no_memory(const struct mr_schedule *s); /* for who writes to a temporary buffer while building */
void *mr_schedule_temp(struct mr_schedule *s, size_t bytes);
void *mr_schedule_temp_for(struct mr_schedule *s, const struct mr_type *t, size_t count);

static inline const void *mr_at(const void *buf, size_t n, const struct mr_type *t)
{
    return (const char *)buf + (ptrdiff_t)n * t->extent;
}

static inline void *mr_at_mut(void *buf, size_t n, const struct mr_type *t)
{
    return (char *)buf + (ptrdiff_t)n * t->extent;
}

#endif
