/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages: the receiver exposes its buffer, the sender writes into it, one stripe per subchannel. The last write
 * of each stripe carries the immediate data that the receiver's completion filter collects (rail/filter.h), so no
 * packet of ours follows the data. A stripe longer than the port's longest message becomes several writes; the link
 * keeps them in order, so the last one speaks for all.
 *
 * Or the other way round: the sender exposes its buffer, and the receiver reads it in the same stripes; nobody has to
 * be told at the other side. Whoever posts, writing or reading, measures the rails.
 *
 * A stripe whose subchannel breaks is done from its beginning over another one (rail/mend.c says when that is safe), in
 * two steps: the second begins when the first is known to be there, and is what the next break costs. Each break halves
 * the steps, so that a rail which breaks before a whole stripe is through still carries it.
 *
 * Over links that lose writes the receiver tells what has landed: such a put is tracked, and rail/track.c knows more.
 * Where there are only datagrams the receiver says what is to be sent; rail/zcopy.h tells.
 */
#include "libmrmpi/rail/bulk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/rail/view.h"

#define STRIPE_ALIGN  4096
#define STRIPE_FINE   256  /* cuts of short messages are as fine as this, */
#define STRIPE_PARTS  256  /* so that weights hold to one part in so many */
#define TRACKED_ALIGN 65536 /* so that writes are long */
#define STEP_MIN      65536 /* of a stripe whose subchannels break */

/* ---- who writes or reads --------------------------------------------------------------------------------------- */

/* Weights follow what subchannels carry, if there is more than one, and memory. Many peers never get large messages. */
static bool adapts(struct mr_peer *p)
{
    switch (p->num_now < 2 ? MR_WEIGHTS_EVEN : mr_net.policy[MR_POLICY_LARGE].kind->weights) {
    case MR_WEIGHTS_RUNS:
        if (!p->adapt)
            p->adapt = calloc(1, sizeof *p->adapt);
        return p->adapt;
    case MR_WEIGHTS_PAPER:
        if (!p->feedback)
            p->feedback = calloc(1, sizeof *p->feedback);
        return p->feedback;
    default:
        return false;
    }
}

static void note_started(struct mr_stripe_op *s, uint64_t now_ns)
{
    s->measured = true;
    s->put->begun_ns = now_ns;
    if (s->put->peer->adapt)
        mr_adapt_started(s->put->peer->adapt, mr_sub_place(s->sub), s->put->num > 1, now_ns);
}

/* The last stripe of a message whose stripes have all been measured tells how long each took. */
static bool weigh_as_printed(struct mr_put *put)
{
    const struct mr_policy *policy = &mr_net.policy[MR_POLICY_LARGE];
    struct mr_feedback_time t[MR_SUBS_MAX];

    for (unsigned i = 0; i < put->num; i++) {
        const struct mr_stripe_op *s = &put->stripe[i];

        if (!s->took_ns)
            return false;
        t[i] = (struct mr_feedback_time){.sub = mr_sub_place(s->sub), .took_ns = s->took_ns};
    }
    return mr_feedback_weigh(put->peer->feedback, put->peer->load, put->peer->num_now, t, put->num, policy->alpha,
                             policy->total);
}

static void note_finished(struct mr_stripe_op *s)
{
    struct mr_peer *p = s->sub->peer;
    uint64_t now_ns = mr_clock_ns();
    char name[MR_SUB_NAME];
    bool changed;

    if (p->adapt) {
        mr_adapt_finished(p->adapt, mr_sub_place(s->sub), s->len, now_ns);
        changed = mr_adapt_weigh(p->adapt, p->load, p->num_now);
    } else {
        s->took_ns = now_ns > s->put->begun_ns ? now_ns - s->put->begun_ns : 1;
        changed = weigh_as_printed(s->put);
    }
    if (!changed)
        return;
    mr_stat_add(MR_STAT_NET_REWEIGHED, 1);
    mr_view_weights(p);
    for (unsigned i = 0; i < p->num_now; i++)
        mr_rail_add(p->now[i].rail, MR_RAIL_REWEIGHED, 1);
    for (unsigned i = 0; i < p->num_now; i++)
        mr_log(MR_LOG_DEBUG, "rank %d, %s: weight %u of %u", p->rank, mr_sub_name(&p->now[i], name), p->load[i].weight,
               MR_WEIGHT_MAX);
}

/* NULL: no subchannel has it now. What each has is what take_shortest goes by (sched.c). */
static void queue_on(struct mr_stripe_op *s, struct mr_sub *sub)
{
    if (s->queued)
        s->queued->queued -= s->len;
    if (sub)
        sub->queued += s->len;
    s->queued = sub;
}

void mr_bulk_finish(struct mr_put *put)
{
    struct mr_peer *p = put->peer;
    void (*tell)(void *cookie, int error) = put->read ? mr_channel_up.read_done : mr_channel_up.put_sent;
    void *cookie = put->cookie;
    int error = put->filter.error;

    *(put->prev ? &put->prev->next : &p->puts) = put->next;
    if (put->next)
        put->next->prev = put->prev;
    p->num_puts--;
    mr_net.open_puts--;
    if (put->track)
        mr_track_end(put);
    mr_bulk_release(put->reg);
    for (unsigned i = 0; i < put->num; i++)
        queue_on(&put->stripe[i], NULL);
    free(put);
    tell(cookie, error);
}

static void finish_stripe(struct mr_stripe_op *s, int error)
{
    s->state = STRIPE_DONE;
    if (mr_filter_done(&s->put->filter, error))
        mr_bulk_finish(s->put);
}

static void see_part(struct mr_stripe_op *s, bool failed)
{
    const struct mr_stripe_op *last = &s->put->stripe[s->put->num - 1];

    mr_view_part(s->sub, (struct mr_view_part){.begun_ns = s->begun_ns,
                                               .len = s->len,
                                               .of = last->offset + last->len,
                                               .read = s->put->read,
                                               .failed = failed});
    s->begun_ns = 0;
}

/* That of reads over a link; NULL: there is no limit. */
static struct mr_pace *pace_of(const struct mr_put *put, const struct mr_link *l)
{
    struct mr_pace *p = &mr_net.pace[l->rail->index];

    return __builtin_expect(mr_net.paced, 0) && put->read && p->rate ? p : NULL;
}

/* A part may be read now. What goes ahead of large messages has a budget of its own, and does not wait here. */
static bool pace_lets(struct mr_pace *p, const struct mr_put *put, const struct mr_link *l)
{
    if ((l->qp.depth - l->qp.room) * mr_pace_piece(p) >= MR_PACE_READING)
        return false;
    if (p->left > 0 || !mr_pace_limits(p) || put->level != MR_LEVEL_BULK || mr_pace_fill(p, mr_clock_ns()))
        return true;
    p->waited = true;
    return false;
}

static void cut(const struct mr_stripe_op *s, const struct mr_link *l, struct mr_bulk_part *part)
{
    uint64_t n = s->left < l->rail->max_msg ? s->left : l->rail->max_msg;
    const struct mr_pace *pace = pace_of(s->put, l);

    if (s->step && n > s->step)
        n = s->step;
    if (pace && n > mr_pace_piece(pace))
        n = mr_pace_piece(pace);
    *part = (struct mr_bulk_part){
        .at = s->offset + s->len - s->left, .len = n, .taken = n, .imm = s->imm, .last = n == s->left};
}

static int post_part(struct mr_stripe_op *s, struct mr_link *l, const struct mr_bulk_part *p)
{
    struct mr_put *put = s->put;
    struct mr_link_part part = {.local = put->local + p->at,
                                .len = p->len,
                                .lkey = mr_memory_lkey(&put->reg->memory, l->rail),
                                .raddr = put->remote.addr + p->at,
                                .rkey = put->remote.rkey[s->sub->remote_rail],
                                .imm = put->track || (p->last && !put->read) ? &p->imm : NULL,
                                .wakes = pace_of(put, l) != NULL};

    return (put->read ? l->ops->read : l->ops->write)(l, &part, p->last || s->step ? &s->tx : NULL);
}

/* A write or a read was posted, perhaps the first one of its stripe. */
static void count(struct mr_stripe_op *s, struct mr_rail *rail, uint64_t len)
{
    bool read = s->put->read;

    mr_rail_add(rail, read ? MR_RAIL_BYTES_READ : MR_RAIL_BYTES_WRITTEN, len);
    mr_view_moved(s->sub, len, read);
    if (s->state == STRIPE_POSTED)
        return;
    mr_rail_add(rail, read ? MR_RAIL_STRIPES_READ : MR_RAIL_STRIPES_WRITTEN, 1);
    s->begun_ns = mr_view_begin();
}

/* Post what there is room for, or one step. 0: all of that; -EAGAIN: the rest waits. */
static int push(struct mr_stripe_op *s)
{
    struct mr_link *l = mr_sub_rdma_link(s->sub, s->put->level);
    struct mr_track *t = s->put->track;
    struct mr_pace *pace = pace_of(s->put, l);

    while (s->left) {
        struct mr_bulk_part part;
        int err;

        if (pace && !pace_lets(pace, s->put, l))
            return -EAGAIN;
        (t ? mr_track_cut : cut)(s, l, &part);
        err = post_part(s, l, &part);
        if (err)
            return err;
        if (pace) {
            mr_pace_take(pace, part.len);
            mr_net.paced_parts++;
        }
        count(s, l->rail, part.len);
        s->state = STRIPE_POSTED;
        s->left -= part.taken;
        if (t)
            mr_track_posted(s, &part);
        else if (s->step)
            break;
    }
    if (s->state == STRIPE_WAITS) /* tracked: all of it may have landed already */
        mr_track_written(s);
    return 0;
}

/* The same; its time counts from begin_ns if its first part is posted now. 0: it is not measured. */
static int push_from(struct mr_stripe_op *s, uint64_t begin_ns)
{
    bool first = s->state == STRIPE_WAITS;
    int err = push(s);

    if (first && begin_ns && s->state == STRIPE_POSTED)
        note_started(s, begin_ns);
    return err;
}

/* Those of medium messages before those of large ones. */
static void enqueue(struct mr_stripe_op *s)
{
    bool bulk = s->put->level == MR_LEVEL_BULK;
    struct mr_stripe_op **at = bulk ? s->sub->waiting_end : &s->sub->waiting;

    while (*at && (*at)->put->level != MR_LEVEL_BULK)
        at = &(*at)->next;
    s->next = *at;
    *at = s;
    if (!s->next)
        s->sub->waiting_end = &s->next;
    mr_net_backlog(s->sub->peer);
}

/*
 * Post a stripe, as far as there is room. begin_ns: 0, or when its message was begun. One of a medium message does not
 * wait behind those of large ones, for whose link there is no room.
 */
static void start_stripe(struct mr_stripe_op *s, uint64_t begin_ns)
{
    bool may = !s->sub->waiting || s->put->level != MR_LEVEL_BULK;
    int err = s->sub->peer->up && may ? push_from(s, begin_ns) : -EAGAIN;

    if (!err)
        return;
    enqueue(s);
    if (err != -EAGAIN)
        mr_sub_break(s->sub);
}

static void next_step(struct mr_stripe_op *s)
{
    s->there = s->len - s->left;
    if (s->sub->state == MR_SUB_OPEN)
        start_stripe(s, 0);
    else
        enqueue(s);
}

/* With an error it stays posted until its subchannel has drained: parts of it may still be with the adapter. */
static void stripe_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_stripe_op *s = (struct mr_stripe_op *)wr;

    mr_tx_done(&s->tx, wc);
    if (wc->error)
        return;
    if (s->left && !s->put->track) {
        next_step(s);
        return;
    }
    queue_on(s, NULL);
    see_part(s, false);
    if (s->measured)
        note_finished(s);
    if (s->put->track)
        mr_track_written(s);
    else
        finish_stripe(s, 0);
}

/* ---- subchannels that break ------------------------------------------------------------------------------------ */

static uint32_t all_of(const struct mr_peer *p)
{
    return (uint32_t)((1ull << p->num_now) - 1);
}

/* The subchannels that large messages do not take now: they have no RDMA, or the policy does not want them. */
static uint32_t without_rdma(const struct mr_peer *p)
{
    uint32_t up = 0;

    if (mr_net.policy[MR_POLICY_LARGE].kind->where == MR_WHERE_ALL)
        return ~p->rdma & all_of(p);
    for (unsigned i = 0; i < p->num_now; i++)
        up |= (uint32_t)p->load[i].up << i;
    return ~mr_spread_narrow(p, MR_POLICY_LARGE, p->rdma & up) & all_of(p);
}

static void find_home(struct mr_stripe_op *s)
{
    struct mr_peer *p = s->put->peer;
    unsigned i = mr_sched_pick(&mr_net.policy[MR_POLICY_LARGE], &p->stripe_turn, p->load, p->num_now, without_rdma(p),
                               s->len);

    if (i == p->num_now) {
        s->sub = NULL;
        queue_on(s, NULL);
        s->next = p->homeless;
        p->homeless = s;
        mr_budget_need(p);
        return;
    }
    mr_sched_charge(&mr_net.policy[MR_POLICY_LARGE], &p->stripe_turn, p->load, p->num_now, i, s->len);
    s->sub = &p->now[i];
    queue_on(s, s->sub);
    start_stripe(s, 0);
}

/* What is not known to be there once more, in shorter steps. */
static void take_steps(struct mr_stripe_op *s)
{
    uint64_t step = (s->step ? s->step : s->len) / 2;

    s->step = step > STEP_MIN ? step : STEP_MIN;
    s->left = s->len - s->there;
}

/* Over another subchannel. (Tracked: what is left in this round; the peer asks for the rest.) */
static void restart_stripe(struct mr_stripe_op *s)
{
    if (!s->put->track)
        take_steps(s);
    s->state = STRIPE_WAITS;
    s->measured = false;
    mr_stat_add(MR_STAT_MOVED, 1);
    mr_rail_add(s->sub->rail, MR_RAIL_MOVED, 1);
    find_home(s);
}

void mr_bulk_unmeasure(struct mr_peer *p)
{
    for (struct mr_put *put = p->puts; put; put = put->next)
        for (unsigned i = 0; i < put->num; i++)
            put->stripe[i].measured = false;
    free(p->adapt);
    free(p->feedback);
    p->adapt = NULL;
    p->feedback = NULL;
}

void mr_bulk_restart(struct mr_stripe_op *s)
{
    start_stripe(s, 0);
}

/* None of it has been posted over the subchannel. */
static bool is_fresh(const struct mr_stripe_op *s)
{
    return s->state == STRIPE_WAITS && !(s->put->track && s->put->track->round);
}

void mr_bulk_sub_drained(struct mr_sub *sub)
{
    struct mr_peer *p = sub->peer;

    sub->waiting = NULL;
    sub->waiting_end = &sub->waiting;
    if (p->adapt)
        mr_adapt_forget(p->adapt, mr_sub_place(sub));
    for (struct mr_put *put = p->puts; put; put = put->next)
        for (unsigned i = 0; i < put->num; i++) {
            struct mr_stripe_op *s = &put->stripe[i];

            if (s->sub != sub || s->state == STRIPE_DONE || s->state == STRIPE_ORPHAN || s->state == STRIPE_ASKED)
                continue;
            see_part(s, true);
            if (is_fresh(s) || put->read) {
                restart_stripe(s);
            } else {
                s->state = STRIPE_ORPHAN;
                s->generation = sub->generation;
                p->orphans++;
            }
        }
}

void mr_bulk_settle(struct mr_sub *sub, void (*ask)(struct mr_sub *sub, uint32_t imm, uint64_t cookie))
{
    struct mr_peer *p = sub->peer;

    if (!p->orphans)
        return;
    for (struct mr_put *put = p->puts; put; put = put->next)
        for (unsigned i = 0; i < put->num; i++) {
            struct mr_stripe_op *s = &put->stripe[i];

            if (s->sub != sub || s->state != STRIPE_ORPHAN || !mr_is_later(sub->peer_from, s->generation))
                continue;
            p->orphans--;
            if (put->track) {
                restart_stripe(s);
                continue;
            }
            s->state = STRIPE_ASKED;
            ask(sub, s->imm, (uintptr_t)s);
        }
}

static struct mr_stripe_op *find_asked(const struct mr_peer *p, uint64_t cookie)
{
    for (struct mr_put *put = p->puts; put; put = put->next)
        for (unsigned i = 0; i < put->num; i++)
            if ((uintptr_t)&put->stripe[i] == cookie && put->stripe[i].state == STRIPE_ASKED)
                return &put->stripe[i];
    return NULL;
}

void mr_bulk_told(struct mr_peer *p, uint64_t cookie, bool landed)
{
    struct mr_stripe_op *s = find_asked(p, cookie);

    if (!s)
        mr_log(MR_LOG_WARN, "rank %d on %s told of a part that it was not asked about", p->rank, p->card->host);
    else if (landed)
        finish_stripe(s, 0);
    else
        restart_stripe(s);
}

bool mr_bulk_uses(const struct mr_sub *sub)
{
    if (sub->flows)
        return true;
    for (const struct mr_put *put = sub->peer->puts; put; put = put->next)
        for (unsigned i = 0; i < put->num; i++)
            if (put->stripe[i].sub == sub && put->stripe[i].state != STRIPE_DONE)
                return true;
    return false;
}

/* Those of which something is posted already stay. */
static void move_waiting(struct mr_sub *sub)
{
    struct mr_stripe_op *s = sub->waiting, *next;

    sub->waiting = NULL;
    sub->waiting_end = &sub->waiting;
    for (; s; s = next) {
        next = s->next;
        if (s->state == STRIPE_WAITS)
            find_home(s);
        else
            enqueue(s);
    }
}

void mr_bulk_move(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (mr_sub_retires(&p->sub[i]))
            move_waiting(&p->sub[i]);
}

static bool resume_sub(struct mr_sub *sub)
{
    struct mr_stripe_op **at = &sub->waiting, *s;
    unsigned full = 0; /* set of levels */

    while ((s = *at)) {
        unsigned level = s->put->level;
        int err = full >> level & 1 ? -EAGAIN : push_from(s, adapts(sub->peer) ? mr_clock_ns() : 0);

        if (err == -EAGAIN && level == MR_LEVEL_BULK)
            return true; /* those behind it are, too */
        if (err == -EAGAIN) {
            full |= 1u << level;
            at = &s->next;
            continue;
        }
        if (err) {
            mr_sub_break(sub);
            return false;
        }
        *at = s->next;
        if (!*at)
            sub->waiting_end = at;
    }
    return sub->waiting;
}

bool mr_bulk_resume(struct mr_peer *p)
{
    struct mr_stripe_op *homeless = p->homeless, *s;
    bool waiting = false;

    p->homeless = NULL;
    while ((s = homeless)) {
        homeless = s->next;
        find_home(s);
    }
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].state == MR_SUB_OPEN)
            waiting |= resume_sub(&p->sub[i]);
    return waiting;
}

/* ---- beginning ------------------------------------------------------------------------------------------------- */

/* A message whose data moves this way is never small. */
static uint8_t level_of(uint64_t len)
{
    const struct mr_fabric_level *level = mr_net.qos.level;

    for (unsigned l = MR_LEVEL_SMALL + 1; l < MR_LEVEL_PACKETS; l++)
        if (level[l].max > level[l - 1].max && len <= level[l].max)
            return (uint8_t)l;
    return MR_LEVEL_BULK;
}

static struct mr_ahead *bucket_of(const struct mr_stripe_op *s)
{
    return &mr_net.ahead[s->sub->rail->index][s->put->level];
}

/*
 * One between small and large goes ahead of the bulk if all rails that carry it let it, and the peer that it is written
 * to. Each pays for its part.
 */
static void go_ahead(struct mr_put *put, size_t len)
{
    struct mr_ahead *granted = put->read || !put->peer->granted ? NULL : &put->peer->granted[put->level];
    bool may = !granted || mr_bucket_lets(granted, len);

    for (unsigned i = 0; i < put->num; i++)
        may &= mr_may_go_ahead(put->stripe[i].sub, put->level, put->stripe[i].len);
    for (unsigned i = 0; may && i < put->num; i++)
        mr_ahead_take(bucket_of(&put->stripe[i]), put->stripe[i].len);
    if (!may)
        put->level = MR_LEVEL_BULK;
    else if (granted)
        mr_ahead_take(granted, len);
}

static struct mr_put *make_put(struct mr_peer *p, void *buf, const struct mr_remote *remote, void *cookie,
                               const struct mr_stripe *plan, unsigned n)
{
    struct mr_put *put = calloc(1, sizeof *put + n * sizeof put->stripe[0]);

    if (!put)
        return NULL;
    put->peer = p;
    put->local = buf;
    put->remote = *remote;
    put->cookie = cookie;
    put->num = put->filter.open = n;
    for (unsigned i = 0; i < n; i++) {
        struct mr_stripe_op *s = &put->stripe[i];

        s->tx.wr.done = stripe_done;
        s->put = put;
        s->sub = &p->now[plan[i].sub];
        s->offset = plan[i].offset;
        s->len = s->left = plan[i].len;
        s->imm = mr_landing_imm(remote->token, i, n);
    }
    return put;
}

/* One stripe on any subchannel that can: none is up at present. It waits for one. */
static unsigned plan_to_wait(const struct mr_peer *p, uint64_t len, struct mr_stripe *plan)
{
    *plan = (struct mr_stripe){.sub = (unsigned)__builtin_ctz(p->rdma), .len = len};
    return 1;
}

/*
 * Cutting a message saves time while rails would be idle. When each has messages to carry it only costs: a request, a
 * completion and a notification more for each stripe. From MR_STRIPE_BUSY times MRMPI_STRIPE_MIN on that does not show.
 */
static uint64_t stripe_min(const struct mr_peer *p, uint64_t len)
{
    uint64_t least = mr_config.stripe_min;
    bool busy = p->num_puts >= (unsigned)__builtin_popcount(p->rdma);

    return busy && len < MR_STRIPE_BUSY * least ? MR_STRIPE_BUSY * least : least;
}

/* Of its cuts. */
static uint64_t align_of(const struct mr_peer *p, uint64_t len)
{
    uint64_t align = STRIPE_ALIGN;

    if (p->tracked) {
        uint64_t block = 1ull << mr_block_shift(len);

        return block > TRACKED_ALIGN ? block : TRACKED_ALIGN;
    }
    while (align > STRIPE_FINE && align * STRIPE_PARTS > len)
        align /= 2;
    return align;
}

static unsigned make_plan(struct mr_peer *p, uint64_t len, struct mr_stripe plan[MR_SUBS_MAX])
{
    struct mr_load some[MR_SUBS_MAX];
    const struct mr_load *load = p->load;
    uint64_t least = stripe_min(p, len);
    uint32_t without = without_rdma(p);

    for (unsigned i = 0; len < least && i < p->num_now; i++)
        p->load[i].queued = p->now[i].queued;
    if (__builtin_expect(without != 0, 0)) {
        for (unsigned i = 0; i < p->num_now; i++)
            some[i] = (struct mr_load){
                .up = p->load[i].up && !(without >> i & 1), .weight = p->load[i].weight, .queued = p->load[i].queued};
        load = some;
    }
    return mr_sched_plan(&mr_net.policy[MR_POLICY_LARGE], &p->stripe_turn, load, p->num_now, len, least, align_of(p, len),
                         plan);
}

static void enlist(struct mr_put *put)
{
    struct mr_peer *p = put->peer;

    put->next = p->puts;
    if (p->puts)
        p->puts->prev = put;
    p->puts = put;
    p->num_puts++;
    mr_net.open_puts++;
}

/* Of a message of size bytes that begins at buf. */
static int begin_put(struct mr_peer *p, char *buf, size_t size, struct mr_vc_part part, const struct mr_remote *remote,
                     void *cookie, bool read)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    size_t len = part.len;
    struct mr_put *put;
    uint64_t begin;
    unsigned n, num_keys = remote->num_keys;
    int err;

    if (len > remote->len || (remote->serial && len != remote->len))
        return -EMSGSIZE;
    for (unsigned i = 0; i < p->num_now; i++)
        if (p->now[i].remote_rail >= num_keys || num_keys > MR_RAILS_MAX)
            return -EPROTO;
    if (!p->rdma || (read && p->tracked))
        return -EOPNOTSUPP;
    n = make_plan(p, len, plan);
    put = make_put(p, buf + part.at, remote, cookie, plan, n ? n : plan_to_wait(p, len, plan));
    if (!put)
        return -ENOMEM;
    put->read = read;
    put->level = level_of(size);
    if (mr_net.ahead_limited && put->level != MR_LEVEL_BULK)
        go_ahead(put, len);
    err = !read && remote->serial ? mr_track_begin(put) : 0;
    if (err) {
        free(put);
        return err;
    }
    err = mr_bulk_enroll(buf, size, read ? MR_ACCESS_TARGET : MR_ACCESS_SOURCE, false, &put->reg);
    if (err) {
        if (put->track)
            mr_track_end(put);
        free(put);
        return err;
    }
    enlist(put);
    for (unsigned i = 0; i < put->num; i++)
        queue_on(&put->stripe[i], put->stripe[i].sub);
    mr_stat_add(MR_STAT_NET_STRIPES, put->num);

    /* All stripes begin at the time before the first is posted (route/adapt.h). */
    begin = adapts(p) ? mr_clock_ns() : 0;
    for (unsigned i = 0; n && i < put->num; i++)
        start_stripe(&put->stripe[i], begin);
    if (!n)
        find_home(&put->stripe[0]);
    return 0;
}

/* The receiver says what is to be sent, and when. */
static int begin_datagrams(struct mr_peer *p, void *buf, size_t len, const struct mr_remote *remote, void *cookie)
{
    struct mr_put *put;
    int err;

    if (len != remote->len)
        return -EMSGSIZE;
    put = make_put(p, buf, remote, cookie, NULL, 0);
    if (!put)
        return -ENOMEM;
    put->level = level_of(len);
    err = mr_zcopy_begin(put);
    if (!err)
        err = mr_bulk_enroll(buf, len, MR_ACCESS_SOURCE, false, &put->reg);
    if (err)
        free(put);
    else
        enlist(put);
    return err;
}

int mr_bulk_put(struct mr_peer *p, const void *buf, size_t len, const struct mr_remote *dst, void *cookie)
{
    if (dst->serial && !dst->num_keys)
        return begin_datagrams(p, (void *)buf, len, dst, cookie);
    return begin_put(p, (void *)buf, len, (struct mr_vc_part){.len = len}, dst, cookie, false); /* nothing writes into it */
}

int mr_bulk_read(struct mr_peer *p, void *buf, size_t size, struct mr_vc_part part, const struct mr_remote *src,
                 void *cookie)
{
    return begin_put(p, buf, size, part, src, cookie, true);
}

void mr_bulk_abandon(struct mr_peer *p, int error)
{
    struct mr_put *put;

    p->homeless = NULL;
    p->orphans = 0;
    mr_zcopy_abandon(p);
    for (unsigned i = 0; i < p->num_subs; i++) {
        p->sub[i].waiting = NULL;
        p->sub[i].waiting_end = &p->sub[i].waiting;
    }
    while ((put = p->puts)) {
        put->filter.error = error;
        mr_bulk_finish(put);
    }
}
