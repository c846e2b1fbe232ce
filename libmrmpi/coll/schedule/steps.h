/* SPDX-License-Identifier: BSD-3-Clause */
/* What a schedule is made of: its steps, what it holds, and how far it has come. For steps.c and sched.c only. */
#ifndef MRMPI_SCHEDULE_STEPS_H
#define MRMPI_SCHEDULE_STEPS_H

#include "libmrmpi/coll/schedule/sched.h"

#include "libmrmpi/core/objects.h"

enum mr_step_kind { MR_STEP_SEND, MR_STEP_RECV, MR_STEP_COPY, MR_STEP_REDUCE, MR_STEP_WAIT, MR_STEP_FENCE };

struct mr_step {
    enum mr_step_kind kind : 8;
    bool second; /* over the second communicator */
    uint8_t nth; /* of a long message: its number (mr_isend_nth); 0: none */
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
    struct mr_schedule *next; /* on the ready list or the pool */
    struct mr_schedule *next_running, *prev_running; /* while it waits for messages: see sched.c */
    struct mr_comm *comm, *second;
    struct mr_request *req; /* while it runs */
    int tag, second_tag;
    enum mr_err error;
    bool no_memory, running, queued, listed;
    bool hopeless; /* a process has failed: it waits for nobody */
    uint8_t crowd;               /* of what is appended now */
    bool crowded, kept;          /* there is one; what they fill is registered */
    bool on_second;              /* what is appended now goes over the second communicator */
    bool allow_less;             /* receives may get less than they have room for */
    bool waited;                 /* its program waits for it */
    bool past_wait;              /* a wait of this phase is over */
    bool persistent;             /* kept when it is done, to run again */
    bool dropped;                /* not needed any more after this run */
    int pending;                 /* sends and receives in flight */
    struct mr_request *awaits;   /* the one of them that the next step waits for, NULL: it waits for none or all */
    size_t num, cap, pos, phase; /* steps, room, next one, first of this phase */
    size_t looks;                /* at the network, since the next step, a long copy, had its first turn */
    size_t copied;               /* bytes of it */
    struct mr_step *steps;
    struct mr_temp *temps;
    struct mr_type **types; /* held */
    size_t num_types, cap_types;
    struct mr_op *op;
};

/* Persistent collectives keep their tag for long: they have a range of tags of their own. */
enum { MR_PERSISTENT_TAG = 0x20000000 };

/* It is not needed any more: what it holds is released, and it may become another one. */
void mr_schedule_free(struct mr_schedule *s);
/* At the end: the memory of all of them. */
void mr_schedule_free_pool(void);

#endif
