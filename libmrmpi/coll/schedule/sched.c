/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running schedules, built by steps.c: see sched.h. A finished receive puts its schedule on the ready list; the
 * progress engine runs that list.
 *
 * After an error a schedule continues to send and receive, or its peers would wait for ever; but it sends only a notice
 * of the error (mr_isend_poison), which fails the matching receive, and nothing is copied or reduced any more. The
 * error thus reaches all ranks whose data depends on it.
 *
 * If a process has failed, others may have seen the failure in an earlier operation, and never begin this one. From
 * then on a schedule waits for nobody: operations without a counterpart are given up (mr_give_up).
 */
#include "libmrmpi/coll/schedule/steps.h"

#include <string.h>

#include "libmrmpi/base/base.h"

/* Schedules whose next step can run. */
static struct {
    struct mr_schedule *first, **end;
} ready;

/* ---- messages of steps ------------------------------------------------------------------------------------------- */

static void make_ready(struct mr_schedule *s)
{
    if (s->queued || s->running)
        return;
    s->queued = true;
    s->next = NULL;
    *ready.end = s;
    ready.end = &s->next;
}

static void note_error(struct mr_schedule *s, enum mr_err err)
{
    if (err && !s->error)
        s->error = err;
    s->hopeless |= err == MR_ERR_PROC_FAILED || err == MR_ERR_REVOKED;
}

/*
 * The outcome of a send or receive. In a collective operation all ranks must give the same amounts: a receive that gets
 * less is an error like a receive that gets more, or wrong results would be believed.
 */
static enum mr_err outcome_of(const struct mr_schedule *s, const struct mr_request *req)
{
    const struct mr_status *st = &req->status;
    if (likely(req->kind != MR_REQ_RECV || st->error || st->bytes == req->count * req->type->size))
        return st->error;
    if (req->peer == MR_PROC_NULL || s->allow_less || !mr_config.check_args)
        return MR_SUCCESS;
    return mr_fail(MR_ERR_COUNT, "rank %d has sent %zu bytes in this operation, %zu are expected of it", st->source,
                   (size_t)st->bytes, req->count * req->type->size);
}

static void replace_send(struct mr_schedule *s, struct mr_request *req);

static void step_done(struct mr_request *req, void *arg)
{
    struct mr_schedule *s = arg;
    note_error(s, outcome_of(s, req));
    if (unlikely(req->status.cancelled))
        replace_send(s, req);
    if (--s->pending == 0 || s->awaits == req || unlikely(s->hopeless))
        make_ready(s);
}

static void track_request(struct mr_schedule *s, struct mr_step *st, enum mr_err err)
{
    if (err) {
        note_error(s, err);
        st->req = NULL;
        return;
    }
    if (st->req->complete) {
        note_error(s, outcome_of(s, st->req));
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

static inline struct route route_of(const struct mr_schedule *s, const struct mr_step *st)
{
    struct mr_comm *c = st->second ? s->second : s->comm;
    struct route r = {c, c->context | 1, st->peer, st->second ? s->second_tag : s->tag};
    if (unlikely(c->passing)) { /* between ranks of the world: mr_comm_passing */
        r.peer = c->group->world[st->peer];
        r.comm = mr_comm_for(r.peer);
    }
    return r;
}

/* Of messages that may come eagerly: bytes at a time at the busiest rank. */
static size_t crowd_of(const struct mr_schedule *s, const struct mr_step *st)
{
    if (!s->waited || !st->nth)
        return 0;
    size_t bytes = st->count * st->type->size;
    return bytes <= mr_config.eager_max * (size_t)mr_config.eager_packets ? st->crowd * bytes : 0;
}

static void send_notice(struct mr_schedule *s, struct mr_step *st)
{
    struct route r = route_of(s, st);
    track_request(s, st, mr_isend_poison(s->error, r.peer, r.tag, r.comm, r.ctx, &st->req));
}

/* The receiver has given the message back: should the receiver come to this operation after all, it gets a notice. */
static void replace_send(struct mr_schedule *s, struct mr_request *req)
{
    struct mr_step *st = s->steps + s->phase;
    while (st->req != req)
        st++;
    mr_request_put(req);
    send_notice(s, st);
}

static void start_send_step(struct mr_schedule *s, struct mr_step *st)
{
    struct route r = route_of(s, st);
    if (unlikely(s->error))
        send_notice(s, st);
    else if (st->nth)
        track_request(s, st,
                      mr_isend_nth(st->in, st->count, st->type, r.peer, r.tag, r.comm, r.ctx, st->nth, crowd_of(s, st),
                                   &st->req));
    else
        track_request(s, st,
                      mr_isend(st->in, st->count, st->type, r.peer, r.tag, r.comm, r.ctx, MR_SEND_STANDARD, &st->req));
}

/*
 * Behind a wait ranks are out of step, and receives are as late: ranks ahead would write while others are still at the
 * former step (two levels' allreduce of 1 MiB: 89 us, 83.5 if these are read).
 */
static void start_recv(struct mr_schedule *s, struct mr_step *st)
{
    struct route r = route_of(s, st);
    track_request(s, st, mr_irecv(st->out, st->count, st->type, r.peer, r.tag, r.comm, r.ctx, &st->req));
    if (st->nth && st->req && s->waited && !s->past_wait)
        mr_recv_announce(st->req, st->nth, s->kept ? crowd_of(s, st) : 0);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/*
 * A long copy would keep peers waiting: for an answer to their offers, or for our announcements. While a message of
 * this phase has still to begin to move, the copy therefore begins after a poll and is made in pieces, each before
 * another poll. Moving messages continue meanwhile. A send counts if its receiver may be ready (ready.c), and for the
 * first polls only: a receiver that reads says so at the end.
 */
enum { FIRST_POLLS = 8, FIRST_PIECE = 4 * 1024, COPY_PIECE = 32 * 1024 };

static bool awaits_peers(const struct mr_schedule *s)
{
    bool sends = s->waited && s->polls <= FIRST_POLLS;
    for (const struct mr_step *st = s->steps + s->phase; s->pending && st != s->steps + s->pos; st++) {
        if (!st->req || st->req->complete)
            continue;
        if (st->kind == MR_STEP_RECV ? !mr_request_has_met(st->req) : sends && !mr_send_leaves(st->req))
            return true;
    }
    return false;
}

static bool is_long_copy(const struct mr_step *st)
{
    size_t bytes = st->count * st->type->size;
    return bytes > FIRST_PIECE && bytes == st->out_count * st->out_type->size && st->type->contiguous &&
           st->out_type->contiguous;
}

/* False: continues after the next poll. */
static bool copy_step(struct mr_schedule *s, const struct mr_step *st)
{
    if (likely(!s->polls && !(is_long_copy(st) && awaits_peers(s)))) {
        mr_type_copy(st->in, st->count, st->type, st->out, st->out_count, st->out_type);
        return true;
    }
    if (!s->polls++) {
        s->copied = 0;
        return false;
    }
    size_t piece = s->waited && s->polls <= FIRST_POLLS ? FIRST_PIECE : COPY_PIECE,
           left = st->count * st->type->size - s->copied;
    bool rest = left <= piece || !awaits_peers(s);
    memcpy((char *)st->out + st->out_type->true_lb + s->copied, (const char *)st->in + st->type->true_lb + s->copied,
           rest ? left : piece);
    s->copied += piece;
    s->polls = rest ? 0 : s->polls;
    return rest;
}

/* False: the step is not over. */
static bool run_step(struct mr_schedule *s, struct mr_step *st)
{
    switch (st->kind) {
    case MR_STEP_SEND:
        start_send_step(s, st);
        break;
    case MR_STEP_RECV:
        start_recv(s, st);
        break;
    case MR_STEP_COPY:
        return s->error || copy_step(s, st);
    case MR_STEP_REDUCE:
        if (likely(!s->error))
            mr_op_apply(st->op, st->in, st->out, st->count, st->type);
        break;
    case MR_STEP_WAIT:
        s->past_wait = true;
        break;
    case MR_STEP_FENCE:
        s->past_wait = false;
        break;
    }
    return true;
}

static void release_requests(struct mr_schedule *s)
{
    for (; s->phase < s->pos; s->phase++) {
        struct mr_step *st = &s->steps[s->phase];
        if (st->req)
            mr_request_put(st->req);
        st->req = NULL;
    }
}

/* ---- a process fails --------------------------------------------------------------------------------------------- */

/* Schedules that wait for messages. */
static struct mr_schedule *waiting;

static void list_waiting(struct mr_schedule *s)
{
    s->prev_running = NULL;
    s->next_running = waiting;
    if (waiting)
        waiting->prev_running = s;
    waiting = s;
    s->listed = true;
}

static void unlist_waiting(struct mr_schedule *s)
{
    if (s->next_running)
        s->next_running->prev_running = s->prev_running;
    *(s->prev_running ? &s->prev_running->next_running : &waiting) = s->next_running;
    s->listed = false;
}

static enum mr_err schedule_fault(const struct mr_schedule *s)
{
    enum mr_err err = mr_comm_fault(s->comm);

    return err || !s->second ? err : mr_comm_fault(s->second);
}

static void process_lost(void)
{
    for (struct mr_schedule *s = waiting; s; s = s->next_running) {
        enum mr_err err = schedule_fault(s);

        note_error(s, err);
        if (err)
            make_ready(s);
    }
}

/* Of operations under way. */
static void give_up_all(struct mr_schedule *s)
{
    for (size_t i = s->phase; i < s->pos; i++)
        if (s->steps[i].req)
            mr_give_up(s->steps[i].req);
}

static void finish_schedule(struct mr_schedule *s)
{
    if (s->listed)
        unlist_waiting(s);
    release_requests(s);
    struct mr_request *req = s->req;
    req->status = (struct mr_status){.source = MR_PROC_NULL, .tag = MR_ANY_TAG, .error = s->error};
    s->req = NULL;
    if (!s->persistent || s->dropped)
        mr_schedule_free(s);
    mr_request_complete(req);
    mr_request_put(req);
}

/* Must the next step wait? */
static bool is_blocked(struct mr_schedule *s, const struct mr_step *st)
{
    if (st->kind == MR_STEP_FENCE)
        return s->pending;
    if (st->kind != MR_STEP_WAIT)
        return false;
    struct mr_request *req = s->steps[st->count].req;
    s->awaits = req && !req->complete ? req : NULL;
    return s->awaits;
}

static void advance_schedule(struct mr_schedule *s)
{
    bool goes_on = false; /* after the next poll */
    s->running = true;
    s->awaits = NULL;
    while (s->pos < s->num && !goes_on) {
        struct mr_step *st = &s->steps[s->pos];
        if (is_blocked(s, st))
            break;
        if (st->kind == MR_STEP_FENCE)
            release_requests(s);
        goes_on = !run_step(s, st);
        s->pos += !goes_on;
    }
    s->running = false;
    if (goes_on)
        make_ready(s);
    if (unlikely(s->hopeless) && s->pending)
        give_up_all(s);
    else if (s->pending == 0 && s->pos == s->num)
        finish_schedule(s);
}

static int poll_ready(void)
{
    int n = 0;
    struct mr_schedule **end = ready.end; /* later schedules have their turn at the next poll */
    for (bool last = false; ready.first && !last; n++) {
        struct mr_schedule *s = ready.first;
        last = &s->next == end;
        ready.first = s->next;
        if (!ready.first)
            ready.end = &ready.first;
        s->queued = false;
        advance_schedule(s);
    }
    return n;
}

/* ---- beginning and keeping --------------------------------------------------------------------------------------- */

static enum mr_err no_memory_for_temps(void)
{
    return mr_fail(MR_ERR_NO_MEM, "no memory for the temporary buffers of a collective operation");
}

enum mr_err mr_schedule_built(struct mr_schedule *s, struct mr_schedule **out)
{
    *out = NULL;
    if (s->no_memory) {
        mr_schedule_free(s);
        return no_memory_for_temps();
    }
    *out = s;
    return MR_SUCCESS;
}

/* From the beginning, with a new request; before: an error that has happened already. */
static enum mr_err run_schedule(struct mr_schedule *s, enum mr_err before, struct mr_request **req)
{
    *req = NULL;
    s->req = mr_request_new(MR_REQ_COLL, s->comm);
    if (!s->req)
        return no_memory_for_temps();
    *req = mr_request_get(s->req);
    s->pos = s->phase = 0;
    s->polls = 0;
    s->past_wait = false;
    s->error = MR_SUCCESS;
    s->hopeless = false;
    note_error(s, before);
    note_error(s, schedule_fault(s));
    list_waiting(s);
    advance_schedule(s);
    return MR_SUCCESS;
}

/* The memory of messages of one kind and phase. */
struct stretch {
    const char *from, *end;
    size_t bytes; /* theirs */
    int peer;     /* of one of them */
};

static void add_message(struct stretch *x, const struct mr_step *st, const void *buf)
{
    const char *at = (const char *)buf + st->type->true_lb;
    size_t len = st->count * st->type->size;
    x->from = !x->bytes || at < x->from ? at : x->from;
    x->end = !x->bytes || at + len > x->end ? at + len : x->end;
    x->bytes += len;
    x->peer = st->peer;
}

/* Side by side, with gaps of less than as much again. */
static bool keep_stretch(const struct mr_schedule *s, const struct stretch *x, bool filled)
{
    size_t len = (size_t)(x->end - x->from);
    return !x->bytes || (len <= 2 * x->bytes && mr_pt2pt_keep(s->comm, x->peer, x->from, len, filled));
}

/* Memory of crowds of messages is registered as a whole, not block by block. True: all their memory is registered. */
static bool keep_memory(const struct mr_schedule *s)
{
    struct stretch sent = {.bytes = 0}, filled = sent;
    bool kept = true;
    for (const struct mr_step *st = s->steps, *end = st + s->num; st <= end; st++) {
        if (st == end || st->kind == MR_STEP_FENCE) {
            keep_stretch(s, &sent, false);
            kept &= keep_stretch(s, &filled, true);
            sent.bytes = filled.bytes = 0;
        } else if (crowd_of(s, st) && !st->second && st->type->contiguous) {
            add_message(st->kind == MR_STEP_SEND ? &sent : &filled, st, st->kind == MR_STEP_SEND ? st->in : st->out);
        }
    }
    return kept;
}

static enum mr_err start_after(enum mr_err before, struct mr_schedule *s, struct mr_request **req)
{
    enum mr_err err = run_schedule(s, before, req);
    if (err)
        mr_schedule_free(s);
    return err;
}

enum mr_err mr_coll_start(struct mr_schedule *s, struct mr_request **req)
{
    return start_after(MR_SUCCESS, s, req);
}

enum mr_err mr_coll_run(enum mr_err built, struct mr_schedule *s)
{
    return mr_coll_run_after(MR_SUCCESS, built, s);
}

enum mr_err mr_coll_run_after(enum mr_err before, enum mr_err built, struct mr_schedule *s)
{
    struct mr_request *req;
    if (built || !s) /* failed, or done already */
        return before ? before : built;
    s->waited = true;
    s->kept = s->crowded && keep_memory(s);
    enum mr_err err = start_after(before, s, &req);
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
        mr_schedule_free(s);
        return no_memory_for_temps();
    }
    s->persistent = true;
    s->tag |= MR_PERSISTENT_TAG;
    s->second_tag |= MR_PERSISTENT_TAG;
    r->schedule = s;
    return MR_SUCCESS;
}

enum mr_err mr_coll_restart(struct mr_schedule *s, struct mr_request **req)
{
    return run_schedule(s, MR_SUCCESS, req);
}

void mr_coll_drop(struct mr_schedule *s)
{
    if (s->req)
        s->dropped = true;
    else
        mr_schedule_free(s);
}

void mr_schedules_init(void)
{
    ready.first = NULL;
    ready.end = &ready.first;
    waiting = NULL;
    mr_progress_register(MR_PROGRESS_IN_MPI, (void *const *)&ready.first, poll_ready);
    mr_p2p_up.process_lost = process_lost;
}

void mr_schedules_finalize(void)
{
    mr_schedule_free_pool();
}
