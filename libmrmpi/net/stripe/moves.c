/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stripes whose subchannel breaks, or retires, or has no room yet. After a break a stripe is repeated over another
 * subchannel (conn/recovery.c decides when that is safe), in two steps, more if long: a step begins when the previous
 * step has arrived, so the next break costs one step only. Each break halves the steps, so that even a rail that breaks
 * before a whole stripe is through carries it in the end.
 *
 * A subchannel also breaks when the peer's adapter refuses an access. This happens to moves of attached memory, and to
 * lists of writes to it, if the memory was withdrawn before the news came: they end with an error, the others are
 * repeated. Without such moves, keys or memory are wrong, and any other link would refuse, too: the peer is lost.
 */
#include "libmrmpi/net/stripe/wlist.h"
#include "libmrmpi/net/stripe/track.h"

#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/net/view/view.h"
#include "libmrmpi/net/stripe/keys.h"

/* Of a stripe whose subchannels break. The longest take ms: the time until the next step is small beside this. */
#define STEP_MIN ((uint64_t)64 << 10)
#define STEP_MAX ((uint64_t)64 << 20)

void mr_stripe_assign(struct mr_stripe_op *s)
{
    struct mr_peer *p = s->transfer->peer;
    unsigned i = mr_sched_pick(&mr_peers.policy[MR_POLICY_LARGE], &mr_bulk_of(p)->stripe_turn, p->load, p->num_now,
                               mr_stripe_excluded(p) | mr_bulk_lacking(s->transfer), s->len);

    if (i == p->num_now) {
        s->sub = NULL;
        mr_stripe_queue_on(s, NULL);
        s->next = mr_bulk_of(p)->unassigned;
        mr_bulk_of(p)->unassigned = s;
        p->needed = true;
        mr_budget_need(p);
        if (mr_bulk_may_lack(s->transfer))
            mr_peer_backlog(p); /* another may be open, but without a key */
        return;
    }
    mr_sched_charge(&mr_peers.policy[MR_POLICY_LARGE], &mr_bulk_of(p)->stripe_turn, p->load, p->num_now, i, s->len);
    s->sub = &p->now[i];
    mr_stripe_queue_on(s, s->sub);
    mr_stripe_start(s, 0);
}

/* Parts not known to have arrived are repeated, in shorter steps. */
static void shorten_steps(struct mr_stripe_op *s)
{
    uint64_t step = (s->step ? s->step : s->len) / 2;

    s->step = step > STEP_MAX ? STEP_MAX : step > STEP_MIN ? step : STEP_MIN;
    s->left = s->len - s->there;
}

/* Over another subchannel. Tracked: the rest of this round; the peer asks for the remainder. */
static void restart_stripe(struct mr_stripe_op *s)
{
    if (s->transfer->refused || s->transfer->atomic) { /* an atomic that may have been executed is not repeated */
        s->state = MR_STRIPE_REFUSED;
        mr_bulk_of(s->transfer->peer)->num_refused++;
        return;
    }
    if (!s->transfer->track)
        shorten_steps(s);
    s->state = MR_STRIPE_WAITS;
    s->measured = false;
    mr_stat_add(MR_STAT_MOVED, 1);
    mr_rail_add(s->sub->rail, MR_RAIL_MOVED, 1);
    mr_stripe_assign(s);
}

void mr_stripes_unmeasure(struct mr_peer *p)
{
    for (struct mr_transfer *transfer = mr_bulk_of(p)->transfers; transfer; transfer = transfer->next)
        for (unsigned i = 0; i < transfer->num; i++)
            transfer->stripe[i].measured = false;
    free(mr_bulk_of(p)->adapt);
    free(mr_bulk_of(p)->feedback);
    mr_bulk_of(p)->adapt = NULL;
    mr_bulk_of(p)->feedback = NULL;
}

/* Nothing of it has been posted over the subchannel. */
static bool is_unposted(const struct mr_stripe_op *s)
{
    return s->state == MR_STRIPE_WAITS && !(s->transfer->track && s->transfer->track->round);
}

/* Lists waiting for room would be refused like the first, and break the next connection. */
static void refuse_lists_as(const struct mr_transfer *one)
{
    for (struct mr_transfer *transfer = mr_bulk_of(one->peer)->transfers; transfer; transfer = transfer->next)
        if (transfer->list && transfer->list->writer == one->list->writer &&
            transfer->list->serial == one->list->serial)
            transfer->refused = true;
}

/* The moves to attached memory that were under way there; false: none. */
static bool refuse_moves(const struct mr_sub *sub)
{
    bool found = false;

    for (struct mr_transfer *transfer = mr_bulk_of(sub->peer)->transfers; transfer; transfer = transfer->next)
        for (unsigned i = 0; i < transfer->num && mr_bulk_is_of_attached(transfer); i++)
            if (transfer->stripe[i].sub == sub && transfer->stripe[i].state == MR_STRIPE_POSTED)
                transfer->refused = found = true;
    for (const struct mr_transfer *transfer = mr_bulk_of(sub->peer)->transfers; transfer; transfer = transfer->next)
        if (transfer->refused && transfer->list)
            refuse_lists_as(transfer);
    return found;
}

static struct mr_stripe_op *find_refused(const struct mr_peer *p)
{
    for (struct mr_transfer *transfer = mr_bulk_of(p)->transfers; transfer; transfer = transfer->next)
        for (unsigned i = 0; i < transfer->num; i++)
            if (transfer->stripe[i].state == MR_STRIPE_REFUSED)
                return &transfer->stripe[i];
    return NULL;
}

/* The owner of a move may then begin others. */
static void end_refused(struct mr_peer *p)
{
    struct mr_stripe_op *s;

    while (mr_bulk_of(p)->num_refused && (s = find_refused(p))) {
        mr_bulk_of(p)->num_refused--;
        mr_stripe_finish(s, s->transfer->atomic ? -EIO : -EACCES);
    }
}

void mr_stripes_drained(struct mr_sub *sub)
{
    struct mr_peer *p = sub->peer;
    bool refused = sub->refused;

    sub->refused = false;
    if (refused && !refuse_moves(sub)) {
        mr_peer_lost(p, -EACCES);
        return;
    }
    mr_bulk_sub_of(sub)->waiting = NULL;
    mr_bulk_sub_of(sub)->waiting_end = &mr_bulk_sub_of(sub)->waiting;
    if (mr_bulk_of(p)->adapt)
        mr_adapt_forget(mr_bulk_of(p)->adapt, mr_sub_place(sub));
    for (struct mr_transfer *transfer = mr_bulk_of(p)->transfers; transfer; transfer = transfer->next)
        for (unsigned i = 0; i < transfer->num; i++) {
            struct mr_stripe_op *s = &transfer->stripe[i];

            if (s->sub != sub || s->state == MR_STRIPE_DONE || s->state == MR_STRIPE_UNCONFIRMED ||
                s->state == MR_STRIPE_ASKED)
                continue;
            mr_stripe_record(s, true);
            if (is_unposted(s) || transfer->read) {
                restart_stripe(s);
            } else {
                s->state = MR_STRIPE_UNCONFIRMED;
                s->generation = sub->generation;
                mr_bulk_of(p)->num_unconfirmed++;
            }
        }
    end_refused(p);
}

static void ask_whether_landed(struct mr_sub *sub, enum mr_control kind, uint32_t imm, uint64_t cookie, bool landed)
{
    struct mr_hdr hdr = {.kind = kind, .rank = landed, .tag = mr_sub_tag(sub, 0), .ctx = imm, .sreq = cookie};

    mr_vc_send_control(sub->peer->vc, &hdr, NULL, 0);
}

bool mr_stripes_confirm(struct mr_sub *sub)
{
    struct mr_peer *p = sub->peer;

    if (!mr_bulk_of(p)->num_unconfirmed)
        return false;
    for (struct mr_transfer *transfer = mr_bulk_of(p)->transfers; transfer; transfer = transfer->next)
        for (unsigned i = 0; i < transfer->num; i++) {
            struct mr_stripe_op *s = &transfer->stripe[i];

            if (s->sub != sub || s->state != MR_STRIPE_UNCONFIRMED || !mr_is_later(sub->peer_from, s->generation))
                continue;
            mr_bulk_of(p)->num_unconfirmed--;
            if (transfer->track || transfer->move ||
                transfer->list) { /* the peer cannot tell; written twice is as good as once */
                restart_stripe(s);
                continue;
            }
            s->state = MR_STRIPE_ASKED;
            ask_whether_landed(sub, MR_CONTROL_ASK, s->imm, (uintptr_t)s, false);
        }
    end_refused(p);
    return true;
}

static struct mr_stripe_op *find_asked_stripe(const struct mr_peer *p, uint64_t cookie)
{
    for (struct mr_transfer *transfer = mr_bulk_of(p)->transfers; transfer; transfer = transfer->next)
        for (unsigned i = 0; i < transfer->num; i++)
            if ((uintptr_t)&transfer->stripe[i] == cookie && transfer->stripe[i].state == MR_STRIPE_ASKED)
                return &transfer->stripe[i];
    return NULL;
}

static void handle_told(struct mr_peer *p, uint64_t cookie, bool landed)
{
    struct mr_stripe_op *s = find_asked_stripe(p, cookie);

    if (!s)
        mr_log(MR_LOG_WARN, "rank %d on %s told of a part that it was not asked about", p->rank, p->address->host);
    else if (landed)
        mr_stripe_finish(s, 0);
    else
        restart_stripe(s);
}

bool mr_stripes_control(struct mr_peer *p, const struct mr_hdr *hdr)
{
    struct mr_sub *sub = mr_sub_tagged(p, (uint32_t)hdr->tag);

    if (hdr->kind == MR_CONTROL_ASK && sub)
        ask_whether_landed(sub, MR_CONTROL_TOLD, hdr->ctx, hdr->sreq, !mr_target_waits(&mr_bulk.targets, hdr->ctx));
    else if (hdr->kind == MR_CONTROL_TOLD && sub)
        handle_told(p, hdr->sreq, hdr->rank);
    return hdr->kind == MR_CONTROL_ASK || hdr->kind == MR_CONTROL_TOLD;
}

bool mr_stripes_use(const struct mr_sub *sub)
{
    if (mr_bulk_sub_of(sub)->flows)
        return true;
    for (const struct mr_transfer *transfer = mr_bulk_of(sub->peer)->transfers; transfer; transfer = transfer->next)
        for (unsigned i = 0; i < transfer->num; i++)
            if (transfer->stripe[i].sub == sub && transfer->stripe[i].state != MR_STRIPE_DONE)
                return true;
    return false;
}

/* Partly posted stripes stay. */
static void move_waiting_stripes(struct mr_sub *sub)
{
    struct mr_stripe_op *s = mr_bulk_sub_of(sub)->waiting, *next;

    mr_bulk_sub_of(sub)->waiting = NULL;
    mr_bulk_sub_of(sub)->waiting_end = &mr_bulk_sub_of(sub)->waiting;
    for (; s; s = next) {
        next = s->next;
        if (s->state == MR_STRIPE_WAITS)
            mr_stripe_assign(s);
        else
            mr_stripe_enqueue(s);
    }
}

void mr_stripes_move(struct mr_peer *p)
{
    uint32_t excluded = mr_stripe_excluded(p);

    for (unsigned i = 0; i < p->num_subs; i++) {
        struct mr_sub *sub = &p->sub[i];
        bool rests = mr_sub_is_current(sub) && mr_sub_place(sub) < p->num_now && excluded >> mr_sub_place(sub) & 1;

        if (mr_sub_retires(sub) || (rests && p->load[mr_sub_place(sub)].sick))
            move_waiting_stripes(sub);
    }
}

static bool resume_sub_stripes(struct mr_sub *sub)
{
    struct mr_stripe_op **at = &mr_bulk_sub_of(sub)->waiting, *s;
    unsigned full = 0; /* set of levels */

    while ((s = *at)) {
        unsigned level = s->transfer->level;
        int err = full >> level & 1 ? -EAGAIN : mr_stripe_post(s, mr_stripe_is_measured(sub->peer) ? mr_clock_ns() : 0);

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
            mr_bulk_sub_of(sub)->waiting_end = at;
    }
    return mr_bulk_sub_of(sub)->waiting;
}

void mr_stripes_leave(struct mr_transfer *transfer)
{
    for (unsigned i = 0; i < transfer->num; i++) {
        struct mr_stripe_op *s = &transfer->stripe[i];
        struct mr_bulk_sub *sub = s->sub ? mr_bulk_sub_of(s->sub) : NULL;
        struct mr_stripe_op **at = sub ? &sub->waiting : &mr_bulk_of(transfer->peer)->unassigned;

        while (*at && *at != s)
            at = &(*at)->next;
        if (*at)
            *at = s->next;
        if (sub && !*at)
            sub->waiting_end = at;
    }
}

bool mr_stripes_resume(struct mr_peer *p)
{
    struct mr_stripe_op *unassigned = mr_bulk_of(p)->unassigned, *s;
    bool waiting = false;

    mr_bulk_of(p)->unassigned = NULL;
    p->needed = false;
    while ((s = unassigned)) {
        unassigned = s->next;
        if (mr_bulk_is_unreachable(s->transfer))
            mr_stripe_finish(s, mr_bulk_is_of_attached(s->transfer) ? -EACCES : -ENOKEY);
        else
            mr_stripe_assign(s);
    }
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].state == MR_SUB_OPEN)
            waiting |= resume_sub_stripes(&p->sub[i]);
    return waiting;
}
