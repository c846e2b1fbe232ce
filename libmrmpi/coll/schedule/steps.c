/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building schedules: steps, temporary buffers, types and operations held, and their memory. Memory of a used schedule
 * is kept for the next.
 */
#include "libmrmpi/coll/schedule/steps.h"

#include <stdlib.h>

#include "libmrmpi/base/base.h"

struct mr_temp {
    struct mr_temp *next;
    size_t room; /* bytes */
    _Alignas(16) char bytes[];
};

enum { HOLD_MAX = 2 }; /* types that are not per rank: send side, receive side */

static struct {
    struct mr_schedule *schedules;
    struct mr_temp *temps; /* long buffers: a new buffer costs its pages, and its registration on every rail */
    size_t room;           /* of these */
} pool;

enum { KEEP_MIN = 64 * 1024, KEEP_MAX = 16 * 1024 * 1024 /* all of them */ };

enum { NUMBERED_STEPS = 64, CROWDED_MIN = 4 * 1024 /* a shorter message of many is copied sooner than announced */ };

enum { POOL_STEPS_MAX = 256 }; /* larger step arrays go back to malloc */

static char no_memory_area[16]; /* the result of temp without memory: never written, the schedule does not start */

/* ---- one schedule ------------------------------------------------------------------------------------------------ */

static int next_coll_tag(struct mr_comm *c)
{
    return c->passing ? c->passing_tag : (int)(c->coll_seq++ & (MR_PERSISTENT_TAG - 1));
}

void mr_schedule_allow_less(struct mr_schedule *s)
{
    s->allow_less = true;
}

struct mr_schedule *mr_schedule_new(struct mr_comm *c)
{
    struct mr_schedule *s = pool.schedules;
    if (s)
        pool.schedules = s->next;
    else if (!(s = calloc(1, sizeof(*s))))
        return NULL;
    s->next = NULL;
    s->comm = mr_comm_get(c);
    s->tag = next_coll_tag(c);
    return s;
}

void mr_schedule_skip(struct mr_comm *c)
{
    next_coll_tag(c);
}

void mr_schedule_on(struct mr_schedule *s, struct mr_comm *c)
{
    s->on_second = c != s->comm;
    if (!s->on_second || s->second == c)
        return;
    s->second = mr_comm_get(c);
    s->second_tag = next_coll_tag(c);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void free_kept_temps(void)
{
    while (pool.temps) {
        struct mr_temp *t = pool.temps;
        pool.temps = t->next;
        free(t);
    }
    pool.room = 0;
}

/* A buffer with so much room, or up to twice as much; NULL: there is none. */
static struct mr_temp *take_kept(size_t room)
{
    for (struct mr_temp **at = &pool.temps; *at; at = &(*at)->next) {
        struct mr_temp *t = *at;
        if (t->room < room || t->room / 2 > room)
            continue;
        *at = t->next;
        pool.room -= t->room;
        return t;
    }
    return NULL;
}

static void keep_or_free(struct mr_temp *t)
{
    if (t->room < KEEP_MIN || t->room > KEEP_MAX) {
        free(t);
        return;
    }
    if (pool.room + t->room > KEEP_MAX)
        free_kept_temps(); /* of other sizes than are wanted now */
    pool.room += t->room;
    t->next = pool.temps;
    pool.temps = t;
}

void mr_schedule_free(struct mr_schedule *s)
{
    while (s->temps) {
        struct mr_temp *t = s->temps;
        s->temps = t->next;
        keep_or_free(t);
    }
    for (size_t i = 0; i < s->num_types; i++)
        mr_type_put(s->types[i]);
    if (s->op)
        mr_op_put(s->op);
    if (s->second)
        mr_comm_put(s->second);
    mr_comm_put(s->comm);
    struct mr_step *steps = s->steps;
    size_t cap = s->cap;
    struct mr_type **types = s->types;
    size_t cap_types = s->cap_types;
    if (cap > POOL_STEPS_MAX) {
        free(steps);
        steps = NULL;
        cap = 0;
    }
    *s = (struct mr_schedule){
        .next = pool.schedules, .steps = steps, .cap = cap, .types = types, .cap_types = cap_types};
    pool.schedules = s;
}

void mr_schedule_free_pool(void)
{
    free_kept_temps();
    while (pool.schedules) {
        struct mr_schedule *s = pool.schedules;
        pool.schedules = s->next;
        free(s->steps);
        free(s->types);
        free(s);
    }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static struct mr_step *add_step(struct mr_schedule *s, enum mr_step_kind kind)
{
    static _Thread_local struct mr_step nowhere;
    if (s->num == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        struct mr_step *steps = realloc(s->steps, cap * sizeof(*steps));
        if (!steps) {
            s->no_memory = true;
            return &nowhere;
        }
        s->steps = steps;
        s->cap = cap;
    }
    struct mr_step *st = &s->steps[s->num++];
    *st = (struct mr_step){.kind = kind, .second = s->on_second, .crowd = s->crowd};
    return st;
}

/*
 * The number of the last appended step's message, among those of its kind with this peer: for long messages of
 * schedules with few steps so far, because all of them may have to be examined, and with a tag of their own. 0: none.
 */
static uint8_t step_number(const struct mr_schedule *s, const struct mr_step *st)
{
    const struct mr_step *b = st;
    size_t least = st->crowd ? CROWDED_MIN : mr_config.eager_max + 1;
    if (st->count * st->type->size < least || st->peer < 0 || s->num > NUMBERED_STEPS || s->no_memory ||
        s->comm->passing)
        return 0;
    do {
        if (b-- == s->steps)
            return 1;
    } while (b->kind != st->kind || b->peer != st->peer || b->second != st->second);
    return b->nth ? b->nth + 1 : 0;
}

void mr_schedule_crowd(struct mr_schedule *s, int num)
{
    s->crowded |= num > 1;
    s->crowd = num < 2 ? 0 : num < UINT8_MAX ? (uint8_t)num : UINT8_MAX;
}

void mr_schedule_send(struct mr_schedule *s, const void *buf, size_t count, struct mr_type *t, int dest)
{
    struct mr_step *st = add_step(s, MR_STEP_SEND);
    st->in = buf;
    st->count = count;
    st->type = t;
    st->peer = dest;
    st->nth = step_number(s, st);
}

void mr_schedule_recv(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int src)
{
    struct mr_step *st = add_step(s, MR_STEP_RECV);
    st->out = buf;
    st->count = count;
    st->type = t;
    st->peer = src;
    st->nth = step_number(s, st);
}

void mr_schedule_copy(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                      size_t ocount, struct mr_type *ot)
{
    struct mr_step *st = add_step(s, MR_STEP_COPY);
    st->in = in;
    st->count = icount;
    st->type = it;
    st->out = out;
    st->out_count = ocount;
    st->out_type = ot;
}

void mr_schedule_reduce(struct mr_schedule *s, struct mr_op *op, const void *in, void *inout, size_t count,
                        struct mr_type *t)
{
    struct mr_step *st = add_step(s, MR_STEP_REDUCE);
    st->in = in;
    st->out = inout;
    st->count = count;
    st->type = t;
    st->op = op;
}

void mr_schedule_fence(struct mr_schedule *s)
{
    if (s->num && s->steps[s->num - 1].kind != MR_STEP_FENCE)
        add_step(s, MR_STEP_FENCE);
}

size_t mr_schedule_last(const struct mr_schedule *s)
{
    return s->num - 1;
}

void mr_schedule_wait(struct mr_schedule *s, size_t step)
{
    add_step(s, MR_STEP_WAIT)->count = step;
}

void mr_schedule_hold_type(struct mr_schedule *s, struct mr_type *t)
{
    if (!t || t->builtin)
        return;
    if (s->num_types == s->cap_types) {
        size_t cap = s->cap_types ? 2 * s->cap_types : HOLD_MAX;
        struct mr_type **types = realloc(s->types, cap * sizeof(struct mr_type *));
        if (!types) {
            s->no_memory = true;
            return;
        }
        s->types = types;
        s->cap_types = cap;
    }
    s->types[s->num_types++] = mr_type_get(t);
}

void mr_schedule_hold_op(struct mr_schedule *s, struct mr_op *op)
{
    s->op = mr_op_get(op);
}

bool mr_schedule_no_memory(const struct mr_schedule *s)
{
    return s->no_memory;
}

void *mr_schedule_temp(struct mr_schedule *s, size_t bytes)
{
    struct mr_temp *t = bytes >= KEEP_MIN ? take_kept(bytes) : NULL;
    if (!t) {
        t = malloc(sizeof(*t) + bytes + 1);
        if (!t) {
            s->no_memory = true;
            return no_memory_area;
        }
        t->room = bytes;
    }
    t->next = s->temps;
    s->temps = t;
    return t->bytes;
}

void *mr_schedule_temp_for(struct mr_schedule *s, const struct mr_type *t, size_t count)
{
    struct mr_span span = mr_type_span(t, count);
    return (char *)mr_schedule_temp(s, span.len) - span.lo;
}
