/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A schedule: the list of a collective's steps on this rank, in phases. Sends and receives of a phase run at the same
 * time; copies and reductions happen in their turn; a fence waits for all sends and receives before, a wait for one of
 * them. Algorithms only append steps; lack of memory is remembered and reported by mr_schedule_built, so algorithms
 * need not check.
 *
 * A schedule owns its temporary buffers, holds references to communicator, types and operation, and frees itself when
 * done; a persistent schedule when dropped.
 */
#ifndef MRMPI_SCHEDULE_SCHED_H
#define MRMPI_SCHEDULE_SCHED_H

#include "libmrmpi/core/core.h"
#include "libmrmpi/coll/coll.h"

void mr_schedules_init(void); /* hooks into progress */
void mr_schedules_finalize(void);

struct mr_schedule *mr_schedule_new(struct mr_comm *c); /* NULL: no memory; takes the communicator's next tag */
void mr_schedule_skip(struct mr_comm *c); /* takes that tag: others may have a schedule for this operation */
/* The end of building: *out is s, or s is freed and *out NULL when memory has run out. */
enum mr_err mr_schedule_built(struct mr_schedule *s, struct mr_schedule **out);
/*
 * The following steps use c: the schedule's own communicator, or a second one (the local group of an
 * intercommunicator), whose next tag is taken. Both must have the same order of collectives at all their members.
 */
void mr_schedule_on(struct mr_schedule *s, struct mr_comm *c);
/*
 * Receives may get less than their room. The standard wants equal amounts, but where each rank gives its own count,
 * programs have long worked with larger counts, and no data comes to lie in a wrong place.
 */
void mr_schedule_allow_less(struct mr_schedule *s);

/*
 * At some rank num messages of the next steps leave or arrive at a time; 1: unknown. All ranks use the same number;
 * otherwise, with messages of equal length, announcements are in vain.
 */
void mr_schedule_crowd(struct mr_schedule *s, int num);

void mr_schedule_send(struct mr_schedule *s, const void *buf, size_t count, struct mr_type *t, int dest);
void mr_schedule_recv(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int src);
void mr_schedule_copy(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                      size_t ocount, struct mr_type *ot);
/* inout = in op inout */
void mr_schedule_reduce(struct mr_schedule *s, struct mr_op *op, const void *in, void *inout, size_t count,
                        struct mr_type *t);
void mr_schedule_fence(struct mr_schedule *s);
/* The step appended last. A wait: later steps begin when that send or receive is done; others continue. */
size_t mr_schedule_last(const struct mr_schedule *s);
void mr_schedule_wait(struct mr_schedule *s, size_t step);
/* Keep an object until the schedule is done (once per type or op used). */
void mr_schedule_hold_type(struct mr_schedule *s, struct mr_type *t);
void mr_schedule_hold_op(struct mr_schedule *s, struct mr_op *op);

/* Memory that lives as long as the schedule; for `count` elements of t, usable as their buffer. Never NULL. */
bool mr_schedule_no_memory(const struct mr_schedule *s); /* for writers to a temporary buffer while building */
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
