/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running schedules: see sched.h. A finished receive puts its schedule on the ready list; the progress engine runs that
 * list.
 *
 * After an error a schedule goes on sending and receiving, or its peers would wait for ever; but what it sends is a
 * notice of the error only (mr_isend_poison), which fails the receive that it meets, and nothing is copied or reduced
 * any more. So an error reaches all who would have got data that depends on it.
 */
#include "libmrmpi/coll/sched.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/coll/select.h"

#include "libmrmpi/core/objects.h"

#include <stdlib.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

enum step_kind { STEP_SEND, STEP_RECV, STEP_COPY, STEP_REDUCE, STEP_WAIT, STEP_FENCE };

struct step {
    enum step_kind kind : 8;
    bool second; /* over the second communicator */
    int peer;
    const void *in;
    void *out;
    size_t count, out_count;
    struct mr_type *type, *out_type;
    struct mr_op *op;
    struct mr_request *req; /* in flight, until the fence */
};

struct temp {
    struct temp *next;
    size_t room; /* bytes */
    _Alignas(16) char bytes[];
};

enum { HOLD_MAX = 2 }; /* types that are not per rank: send side, receive side */

struct mr_schedule {
    struct mr_schedule *next; /* on the ready list or the pool */
    struct mr_comm *comm, *second;
    struct mr_request *req; /* while it runs */
    int tag, second_tag;
    enum mr_err error;
    bool no_memory, running, queued;
    bool on_second;              /* what is appended now goes over the second communicator */
    bool allow_less;             /* receives may get less than they have room for */
    bool persistent;             /* kept when it is done, to run again */
    bool dropped;                /* not needed any more after this run */
    int pending;                 /* sends and receives in flight */
    struct mr_request *awaits;   /* the one of them that the next step waits for, NULL: it waits for none or all */
    size_t num, cap, pos, phase; /* steps, room, next one, first of this phase */
    struct step *steps;
    struct temp *temps;
    struct mr_type **types; /* held */
    size_t num_types, cap_types;
    struct mr_op *op;
};

/* The library's one collective engine. */
static struct {
    struct mr_schedule *ready, **ready_tail;
    struct mr_schedule *pool;
    struct temp *kept; /* long ones that are not in use: a new one costs its pages, and its registration on every rail */
    size_t kept_room;
} engine;

enum { KEEP_MIN = 64 * 1024, KEEP_MAX = 16 * 1024 * 1024 /* all of them */ };

enum { POOL_STEPS_MAX = 256 }; /* larger step arrays go back to malloc */

/* Persistent collectives keep their tag for long: they have a range of tags of their own. */
enum { PERSISTENT_TAG = 0x20000000 };

static char no_memory_area[16]; /* what temp returns when there is none: never written, the schedule does not start */

static int next_tag(struct mr_comm *c)
{
    return c->passing ? c->passing_tag : (int)(c->coll_seq++ & (PERSISTENT_TAG - 1));
}

void mr_schedule_allow_less(struct mr_schedule *s)
{
    s->allow_less = true;
}

struct mr_schedule *mr_schedule_new(struct mr_comm *c)
{
    struct mr_schedule *s = engine.pool;
    if (s)
        engine.pool = s->next;
    else if (!(s = calloc(1, sizeof(*s))))
        return NULL;
    s->next = NULL;
    s->comm = mr_comm_get(c);
    s->tag = next_tag(c);
    return s;
}

void mr_schedule_on(struct mr_schedule *s, struct mr_comm *c)
{
    s->on_second = c != s->comm;
    if (!s->on_second || s->second == c)
        return;
    s->second = mr_comm_get(c);
    s->second_tag = next_tag(c);
}

static void release_requests(struct mr_schedule *s)
{
    for (; s->phase < s->pos; s->phase++) {
        struct step *st = &s->steps[s->phase];
        if (st->req)
            mr_request_put(st->req);
        st->req = NULL;
    }
}

static void free_kept(void)
{
    while (engine.kept) {
        struct temp *t = engine.kept;
        engine.kept = t->next;
        free(t);
    }
    engine.kept_room = 0;
}

/* One with so much room, or up to twice as much; NULL: there is none. */
static struct temp *take_kept(size_t room)
{
    for (struct temp **at = &engine.kept; *at; at = &(*at)->next) {
        struct temp *t = *at;
        if (t->room < room || t->room / 2 > room)
            continue;
        *at = t->next;
        engine.kept_room -= t->room;
        return t;
    }
    return NULL;
}

static void keep_or_free(struct temp *t)
{
    if (t->room < KEEP_MIN || t->room > KEEP_MAX) {
        free(t);
        return;
    }
    if (engine.kept_room + t->room > KEEP_MAX)
        free_kept(); /* of other sizes than are wanted now */
    engine.kept_room += t->room;
    t->next = engine.kept;
    engine.kept = t;
}

static void sched_free(struct mr_schedule *s)
{
    while (s->temps) {
        struct temp *t = s->temps;
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
    struct step *steps = s->steps;
    size_t cap = s->cap;
    struct mr_type **types = s->types;
    size_t cap_types = s->cap_types;
    if (cap > POOL_STEPS_MAX) {
        free(steps);
        steps = NULL;
        cap = 0;
    }
    *s = (struct mr_schedule){.next = engine.pool, .steps = steps, .cap = cap, .types = types, .cap_types = cap_types};
    engine.pool = s;
}

static struct step *add(struct mr_schedule *s, enum step_kind kind)
{
    static _Thread_local struct step nowhere;
    if (s->num == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 16;
        struct step *steps = realloc(s->steps, cap * sizeof(*steps));
        if (!steps) {
            s->no_memory = true;
            return &nowhere;
        }
        s->steps = steps;
        s->cap = cap;
    }
    struct step *st = &s->steps[s->num++];
    *st = (struct step){.kind = kind, .second = s->on_second};
    return st;
}

void mr_schedule_send(struct mr_schedule *s, const void *buf, size_t count, struct mr_type *t, int dest)
{
    struct step *st = add(s, STEP_SEND);
    st->in = buf;
    st->count = count;
    st->type = t;
    st->peer = dest;
}

void mr_schedule_recv(struct mr_schedule *s, void *buf, size_t count, struct mr_type *t, int src)
{
    struct step *st = add(s, STEP_RECV);
    st->out = buf;
    st->count = count;
    st->type = t;
    st->peer = src;
}

void mr_schedule_copy(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                      size_t ocount, struct mr_type *ot)
{
    struct step *st = add(s, STEP_COPY);
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
    struct step *st = add(s, STEP_REDUCE);
    st->in = in;
    st->out = inout;
    st->count = count;
    st->type = t;
    st->op = op;
}

void mr_schedule_fence(struct mr_schedule *s)
{
    if (s->num && s->steps[s->num - 1].kind != STEP_FENCE)
        add(s, STEP_FENCE);
}

size_t mr_schedule_last(const struct mr_schedule *s)
{
    return s->num - 1;
}

void mr_schedule_wait(struct mr_schedule *s, size_t step)
{
    add(s, STEP_WAIT)->count = step;
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
    struct temp *t = bytes >= KEEP_MIN ? take_kept(bytes) : NULL;
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

static void make_ready(struct mr_schedule *s)
{
    if (s->queued || s->running)
        return;
    s->queued = true;
    s->next = NULL;
    *engine.ready_tail = s;
    engine.ready_tail = &s->next;
}

static void note_error(struct mr_schedule *s, enum mr_err err)
{
    if (err && !s->error)
        s->error = err;
}

/*
 * How a send or receive has ended. In a collective operation all ranks must say the same amounts: a receive that gets
 * less is an error as one that gets more, or wrong results would be believed.
 */
static enum mr_err outcome(const struct mr_schedule *s, const struct mr_request *req)
{
    const struct mr_status *st = &req->status;
    if (likely(req->kind != MR_REQ_RECV || st->error || st->bytes == req->count * req->type->size))
        return st->error;
    if (req->peer == MR_PROC_NULL || s->allow_less || !mr_config.check_args)
        return MR_SUCCESS;
    return mr_fail(MR_ERR_COUNT, "rank %d has sent %zu bytes in this operation, %zu are expected of it", st->source,
                   (size_t)st->bytes, req->count * req->type->size);
}

static void step_done(struct mr_request *req, void *arg)
{
    struct mr_schedule *s = arg;
    note_error(s, outcome(s, req));
    if (--s->pending == 0 || s->awaits == req)
        make_ready(s);
}

static void track(struct mr_schedule *s, struct step *st, enum mr_err err)
{
    if (err) {
        note_error(s, err);
        st->req = NULL;
        return;
    }
    if (st->req->complete) {
        note_error(s, outcome(s, st->req));
        return;
    }
    st->req->on_complete_arg = s;
    st->req->on_complete = step_done;
    s->pending++;
}

/* How a step's message goes. */
struct route {
    struct mr_comm *comm;
    uint32_t ctx;
    int peer, tag;
};

static inline struct route route_of(const struct mr_schedule *s, const struct step *st)
{
    struct mr_comm *c = st->second ? s->second : s->comm;
    struct route r = {c, c->context | 1, st->peer, st->second ? s->second_tag : s->tag};
    if (unlikely(c->passing)) { /* between ranks of the world: mr_comm_passing */
        r.comm = mr_comm_world;
        r.peer = c->group->world[st->peer];
    }
    return r;
}

static void start_send(struct mr_schedule *s, struct step *st)
{
    struct route r = route_of(s, st);
    if (unlikely(s->error))
        track(s, st, mr_isend_poison(s->error, r.peer, r.tag, r.comm, r.ctx, &st->req));
    else
        track(s, st,
              mr_isend(st->in, st->count, st->type, r.peer, r.tag, r.comm, r.ctx, MR_SEND_STANDARD, &st->req));
}

static void start_recv(struct mr_schedule *s, struct step *st)
{
    struct route r = route_of(s, st);
    track(s, st, mr_irecv(st->out, st->count, st->type, r.peer, r.tag, r.comm, r.ctx, &st->req));
}

static void run_step(struct mr_schedule *s, struct step *st)
{
    switch (st->kind) {
    case STEP_SEND:
        start_send(s, st);
        break;
    case STEP_RECV:
        start_recv(s, st);
        break;
    case STEP_COPY:
        if (likely(!s->error))
            mr_type_copy(st->in, st->count, st->type, st->out, st->out_count, st->out_type);
        break;
    case STEP_REDUCE:
        if (likely(!s->error))
            mr_op_apply(st->op, st->in, st->out, st->count, st->type);
        break;
    case STEP_WAIT:
    case STEP_FENCE:
        break;
    }
}

static void finish(struct mr_schedule *s)
{
    release_requests(s);
    struct mr_request *req = s->req;
    req->status = (struct mr_status){.source = MR_PROC_NULL, .tag = MR_ANY_TAG, .error = s->error};
    s->req = NULL;
    if (!s->persistent || s->dropped)
        sched_free(s);
    mr_request_complete(req);
    mr_request_put(req);
}

/* Must the next step wait? */
static bool blocked(struct mr_schedule *s, const struct step *st)
{
    if (st->kind == STEP_FENCE)
        return s->pending;
    if (st->kind != STEP_WAIT)
        return false;
    struct mr_request *req = s->steps[st->count].req;
    s->awaits = req && !req->complete ? req : NULL;
    return s->awaits;
}

static void advance(struct mr_schedule *s)
{
    s->running = true;
    s->awaits = NULL;
    while (s->pos < s->num) {
        struct step *st = &s->steps[s->pos];
        if (blocked(s, st))
            break;
        if (st->kind == STEP_FENCE)
            release_requests(s);
        run_step(s, st);
        s->pos++;
    }
    s->running = false;
    if (s->pending == 0 && s->pos == s->num)
        finish(s);
}

static int poll_ready(void)
{
    int n = 0;
    while (engine.ready) {
        struct mr_schedule *s = engine.ready;
        engine.ready = s->next;
        if (!engine.ready)
            engine.ready_tail = &engine.ready;
        s->queued = false;
        advance(s);
        n++;
    }
    return n;
}

static enum mr_err no_memory(void)
{
    return mr_fail(MR_ERR_NO_MEM, "no memory for the temporary buffers of a collective operation");
}

enum mr_err mr_schedule_built(struct mr_schedule *s, struct mr_schedule **out)
{
    *out = NULL;
    if (s->no_memory) {
        sched_free(s);
        return no_memory();
    }
    *out = s;
    return MR_SUCCESS;
}

/* From the beginning, with a new request. */
static enum mr_err run(struct mr_schedule *s, struct mr_request **req)
{
    *req = NULL;
    s->req = mr_request_new(MR_REQ_COLL, s->comm);
    if (!s->req)
        return no_memory();
    *req = mr_request_get(s->req);
    s->pos = s->phase = 0;
    s->error = MR_SUCCESS;
    advance(s);
    return MR_SUCCESS;
}

enum mr_err mr_coll_start(struct mr_schedule *s, struct mr_request **req)
{
    enum mr_err err = run(s, req);
    if (err)
        sched_free(s);
    return err;
}

enum mr_err mr_coll_run(enum mr_err built, struct mr_schedule *s)
{
    struct mr_request *req;
    enum mr_err err = built ? built : mr_coll_start(s, &req);
    if (err)
        return err;
    if (!req->complete)
        mr_wait(req);
    err = req->status.error;
    mr_request_put(req);
    return err;
}

enum mr_err mr_coll_keep(struct mr_schedule *s, struct mr_request **req)
{
    struct mr_request *r = mr_request_new(MR_REQ_PERSISTENT_COLL, s->comm);
    *req = r;
    if (!r) {
        sched_free(s);
        return no_memory();
    }
    s->persistent = true;
    s->tag |= PERSISTENT_TAG;
    s->second_tag |= PERSISTENT_TAG;
    r->schedule = s;
    return MR_SUCCESS;
}

enum mr_err mr_coll_restart(struct mr_schedule *s, struct mr_request **req)
{
    return run(s, req);
}

void mr_coll_drop(struct mr_schedule *s)
{
    if (s->req)
        s->dropped = true;
    else
        sched_free(s);
}

void mr_schedules_init(void)
{
    engine.ready = NULL;
    engine.ready_tail = &engine.ready;
    mr_progress_register(poll_ready);
}

void mr_schedules_finalize(void)
{
    free_kept();
    while (engine.pool) {
        struct mr_schedule *s = engine.pool;
        engine.pool = s->next;
        free(s->steps);
        free(s->types);
        free(s);
    }
}
