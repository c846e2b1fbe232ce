/* SPDX-License-Identifier: BSD-3-Clause */
/* The stripes of large messages: posted as far as there is room and a pace allows it, measured, done. */
#include "libmrmpi/net/stripe/wlist.h"
#include "libmrmpi/net/stripe/track.h"

#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/net/view/view.h"

/* The measurements are allocated at the first large message: many peers never get one. */
bool mr_stripe_is_measured(struct mr_peer *p)
{
    switch (p->num_now < 2 ? MR_WEIGHTS_EVEN : mr_peers.policy[MR_POLICY_LARGE].kind->weights) {
    case MR_WEIGHTS_RUNS:
        if (!mr_bulk_of(p)->adapt)
            mr_bulk_of(p)->adapt = calloc(1, sizeof *mr_bulk_of(p)->adapt);
        return mr_bulk_of(p)->adapt;
    case MR_WEIGHTS_PAPER:
        if (!mr_bulk_of(p)->feedback)
            mr_bulk_of(p)->feedback = calloc(1, sizeof *mr_bulk_of(p)->feedback);
        return mr_bulk_of(p)->feedback;
    default:
        return false;
    }
}

static void note_stripe_started(struct mr_stripe_op *s, uint64_t now_ns)
{
    struct mr_adapt *a = mr_bulk_of(s->transfer->peer)->adapt;

    s->measured = true;
    s->transfer->begun_ns = now_ns;
    if (!a)
        return;
    a->away = mr_regs.away;
    a->behind = mr_regs_is_behind();
    mr_adapt_started(a, mr_sub_place(s->sub), s->transfer->num > 1, now_ns);
}

/* After the last stripe of a message with all stripes measured: weights by the times of all. */
static bool weigh_as_printed(struct mr_transfer *transfer)
{
    const struct mr_policy *policy = &mr_peers.policy[MR_POLICY_LARGE];
    struct mr_feedback_time t[MR_SUBS_MAX];

    for (unsigned i = 0; i < transfer->num; i++) {
        const struct mr_stripe_op *s = &transfer->stripe[i];

        if (!s->took_ns)
            return false;
        t[i] = (struct mr_feedback_time){.sub = mr_sub_place(s->sub), .took_ns = s->took_ns};
    }
    return mr_feedback_weigh(mr_bulk_of(transfer->peer)->feedback, transfer->peer->load, transfer->peer->num_now, t,
                             transfer->num, policy->alpha, policy->total);
}

static void note_stripe_finished(struct mr_stripe_op *s)
{
    struct mr_peer *p = s->sub->peer;
    struct mr_adapt *a = mr_bulk_of(p)->adapt;
    uint64_t now_ns = mr_clock_ns();
    char name[MR_SUB_NAME];
    bool changed;

    if (a) {
        a->away = mr_regs.away;
        a->behind = mr_regs_is_behind();
        mr_adapt_finished(a, mr_sub_place(s->sub), s->len, now_ns);
        changed = mr_adapt_weigh(a, p->load, p->num_now);
    } else {
        s->took_ns = now_ns > s->transfer->begun_ns ? now_ns - s->transfer->begun_ns : 1;
        changed = weigh_as_printed(s->transfer);
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

void mr_stripe_finish(struct mr_stripe_op *s, int error)
{
    s->state = MR_STRIPE_DONE;
    if (mr_filter_done(&s->transfer->filter, error))
        mr_bulk_finish(s->transfer);
}

void mr_stripe_record(struct mr_stripe_op *s, bool failed)
{
    const struct mr_stripe_op *last = &s->transfer->stripe[s->transfer->num - 1];

    mr_view_part(s->sub, (struct mr_view_part){.begun_ns = s->begun_ns,
                                               .len = s->len,
                                               .of = last->offset + last->len,
                                               .read = s->transfer->read,
                                               .failed = failed});
    s->begun_ns = 0;
}

/* The pace of reads over a link; NULL: no limit. */
static struct mr_pace *read_pace(const struct mr_transfer *transfer, const struct mr_link *l)
{
    struct mr_pace *p = &mr_peers.pace[l->rail->index];

    return unlikely(mr_peers.paced) && transfer->read && p->bucket.rate ? p : NULL;
}

/* A part may be read now. Messages that go ahead of the bulk have a budget of their own, and do not wait here. */
static bool read_may_go(struct mr_pace *p, const struct mr_transfer *transfer, const struct mr_link *l)
{
    if ((l->qp.depth - l->qp.room) * mr_pace_piece(p) >= MR_PACE_READING)
        return false;
    if (p->bucket.left > 0 || !mr_pace_limits(p) || transfer->level != MR_LEVEL_BULK || mr_pace_fill(p, mr_clock_ns()))
        return true;
    p->waited = true;
    return false;
}

static void choose_part(const struct mr_stripe_op *s, const struct mr_link *l, struct mr_bulk_part *part)
{
    uint64_t n = s->left < l->rail->max_msg ? s->left : l->rail->max_msg;
    const struct mr_pace *pace = read_pace(s->transfer, l);

    if (s->step && n > s->step)
        n = s->step;
    if (pace && n > mr_pace_piece(pace))
        n = mr_pace_piece(pace);
    *part = (struct mr_bulk_part){
        .at = s->offset + s->len - s->left, .len = n, .taken = n, .imm = s->imm, .last = n == s->left};
}

static struct mr_link_part describe_part(const struct mr_stripe_op *s, const struct mr_link *l,
                                         const struct mr_bulk_part *p)
{
    const struct mr_transfer *transfer = s->transfer;

    return (struct mr_link_part){.local = transfer->local + p->at,
                                 .len = p->len,
                                 .lkey = transfer->reg ? mr_memory_lkey(&transfer->reg->memory, l->rail) : 0,
                                 .raddr = transfer->remote.addr + p->at,
                                 .rkey = mr_bulk_key(transfer, s->sub->remote_rail),
                                 .imm = transfer->track || (p->last && !transfer->read && !transfer->move) ? &p->imm
                                                                                                           : NULL,
                                 .wakes = read_pace(transfer, l) != NULL};
}

/* Counts a posted write or read, perhaps the first of its stripe. */
static void count_part(struct mr_stripe_op *s, struct mr_rail *rail, uint64_t len)
{
    bool read = s->transfer->read;

    mr_rail_add(rail, read ? MR_RAIL_BYTES_READ : MR_RAIL_BYTES_WRITTEN, len);
    mr_view_moved(s->sub, len, read);
    if (s->state == MR_STRIPE_POSTED)
        return;
    mr_rail_add(rail, read ? MR_RAIL_STRIPES_READ : MR_RAIL_STRIPES_WRITTEN, 1);
    s->begun_ns = mr_view_begin();
}

static int post_atomic(struct mr_stripe_op *s, struct mr_link *l)
{
    const struct mr_transfer *transfer = s->transfer;
    const struct mr_link_atomic on_link = {.atomic = transfer->atomic,
                                           .raddr = transfer->remote.addr,
                                           .rkey = mr_bulk_key(transfer, s->sub->remote_rail),
                                           .lkey = transfer->reg ? mr_memory_lkey(&transfer->reg->memory, l->rail) : 0};
    int err = l->ops->atomic(l, &on_link, &s->tx);

    if (err == -EAGAIN)
        return err;
    s->state = MR_STRIPE_POSTED;
    s->left = 0;
    if (err) /* the change may be with the adapter, though the read is not */
        mr_sub_break(s->sub);
    return 0;
}

int mr_stripe_post(struct mr_stripe_op *s, uint64_t begin_ns)
{
    struct mr_link *l = mr_sub_rdma_link(s->sub, s->transfer->level);
    struct mr_track *t = s->transfer->track;
    struct mr_pace *pace = read_pace(s->transfer, l);
    bool first = s->state == MR_STRIPE_WAITS;
    int err = 0;

    if (s->transfer->list)
        return mr_wlist_post(s, l);
    if (s->transfer->atomic)
        return post_atomic(s, l);
    while (s->left) {
        struct mr_link_part link_part;
        struct mr_bulk_part part;

        if (pace && !read_may_go(pace, s->transfer, l)) {
            err = -EAGAIN;
            break;
        }
        (t ? t->ops->choose_write : choose_part)(s, l, &part);
        link_part = describe_part(s, l, &part);
        err = (s->transfer->read ? l->ops->read : l->ops->write)(l, &link_part, part.last || s->step ? &s->tx : NULL);
        if (err)
            break;
        if (pace) {
            mr_pace_take(pace, part.len);
            mr_peers.paced_parts++;
        }
        count_part(s, l->rail, part.len);
        s->state = MR_STRIPE_POSTED;
        s->left -= part.taken;
        if (t)
            t->ops->write_posted(s, &part);
        else if (s->step)
            break;
    }
    if (first && begin_ns && s->state == MR_STRIPE_POSTED)
        note_stripe_started(s, begin_ns);
    if (!err && s->state == MR_STRIPE_WAITS) /* tracked: all of it may have landed already */
        t->ops->stripe_written(s);
    return err;
}

void mr_stripe_enqueue(struct mr_stripe_op *s)
{
    bool bulk = s->transfer->level == MR_LEVEL_BULK;
    struct mr_stripe_op **at = bulk ? mr_bulk_sub_of(s->sub)->waiting_end : &mr_bulk_sub_of(s->sub)->waiting;

    while (*at && (*at)->transfer->level != MR_LEVEL_BULK)
        at = &(*at)->next;
    s->next = *at;
    *at = s;
    if (!s->next)
        mr_bulk_sub_of(s->sub)->waiting_end = &s->next;
    mr_peer_backlog(s->sub->peer);
}

void mr_stripe_start(struct mr_stripe_op *s, uint64_t begin_ns)
{
    bool may = !mr_bulk_sub_of(s->sub)->waiting || s->transfer->level != MR_LEVEL_BULK;
    int err = s->sub->peer->up && may ? mr_stripe_post(s, begin_ns) : -EAGAIN;

    if (!err)
        return;
    mr_stripe_enqueue(s);
    if (err != -EAGAIN)
        mr_sub_break(s->sub);
}

static void start_next_step(struct mr_stripe_op *s)
{
    s->there = s->len - s->left;
    if (s->sub->state == MR_SUB_OPEN)
        mr_stripe_start(s, 0);
    else
        mr_stripe_enqueue(s);
}

/* With an error the stripe stays posted until its subchannel has drained: parts of it may still be with the adapter. */
void mr_stripe_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_stripe_op *s = (struct mr_stripe_op *)wr;

    mr_tx_done(&s->tx, wc);
    if (wc->error)
        return;
    if (s->left && !s->transfer->track) {
        start_next_step(s);
        return;
    }
    mr_stripe_queue_on(s, NULL);
    mr_stripe_record(s, false);
    if (s->measured)
        note_stripe_finished(s);
    if (s->transfer->track)
        s->transfer->track->ops->stripe_written(s);
    else
        mr_stripe_finish(s, 0);
}
