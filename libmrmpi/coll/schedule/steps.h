/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a schedule: its steps, its resources, and its progress. For steps.c and sched.c only. */
#ifndef MRMPI_SCHEDULE_STEPS_H
#define MRMPI_SCHEDULE_STEPS_H

#include "libmrmpi/coll/schedule/sched.h"

#include "libmrmpi/core/core.h"

enum mr_step_kind { MR_STEP_SEND, MR_STEP_RECV, MR_STEP_COPY, MR_STEP_REDUCE, MR_STEP_WAIT, MR_STEP_FENCE };

struct mr_step {
    enum mr_step_kind kind : 8;
    bool second;   /* over the second communicator */
    uint8_t nth;   /* of a long message: its number (mr_isend_nth); 0: none */
    uint8_t crowd; /* mr_schedule_crowd; 0: none */
    int peer;
    const void *in;
    void *out;
    size_t count, out_count;
    struct mr_type *type, *out_type;
    struct mr_op *op;
    struct mr_request *req; /* in flight, until the fence */
};

struct mr_temp;

struct mr_schedule {
    struct mr_schedule *next;                        /* on the ready list or the pool */
    struct mr_schedule *next_running, *prev_running; /* while waiting for messages: see sched.c */
    struct mr_comm *comm, *second;
    struct mr_request *req; /* while running */
    int tag, second_tag;
    enum mr_err error;
    bool no_memory, running, queued, listed;
    bool hopeless;               /* a process has failed: the schedule waits for nobody */
    uint8_t crowd;               /* of the steps appended now */
    bool crowded, kept;          /* some step has a crowd; its receive memory is registered */
    bool on_second;              /* steps appended now use the second communicator */
    bool allow_less;             /* receives may get less than their room */
    bool waited;                 /* its program waits */
    bool past_wait;              /* a wait of this phase is over */
    bool persistent;             /* kept when done, to run again */
    bool dropped;                /* not needed any more after this run */
    int pending;                 /* sends and receives in flight */
    struct mr_request *awaits;   /* the send or receive that the next step waits for, NULL: none or all */
    size_t num, cap, pos, phase; /* steps, room, next step, first step of this phase */
    size_t polls;                /* at the network, since the next step, a long copy, had its first turn */
    size_t copied;               /* bytes of the copy done */
    struct mr_step *steps;
    struct mr_temp *temps;
    struct mr_type **types; /* held */
    size_t num_types, cap_types;
    struct mr_op *op;
};

/* Persistent collectives keep their tag for long: they have a range of tags of their own. */
enum { MR_PERSISTENT_TAG = 0x20000000 };

/* The schedule is not needed any more: its resources are released, and it may become another schedule. */
void mr_schedule_free(struct mr_schedule *s);
/* At the end: frees the memory of all schedules. */
void mr_schedule_free_pool(void);

#endif
