/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers by RDMA writes and reads. The receiver advertises its buffer, and the sender writes into it, one stripe per
 * subchannel. The last write of each stripe carries immediate data that the receiver's completion filter collects
 * (net/stripe/filter.h), so no packet follows the data. A stripe longer than the port's longest message becomes several
 * writes; the link keeps them in order, so the notification of the last one stands for all.
 *
 * Or the sender advertises its buffer, and the receiver reads it in the same stripes; the sender needs no notification.
 * The side that posts, writing or reading, measures the rails.
 *
 * Over links that lose writes the transfer is tracked: the receiver confirms landed blocks (net/stripe/track.h). Where
 * there are only datagrams the receiver clears the sender for each batch (net/zcopy/zcopy.h).
 */
#include "libmrmpi/net/bulk/internal.h"
#include "libmrmpi/net/zcopy/zcopy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/net/view/view.h"
#include "libmrmpi/net/stripe/keys.h"

#define STRIPE_FINE   256   /* cuts of short messages are as fine as this, */
#define STRIPE_PARTS  256   /* so that weights hold to 1/256 */
#define TRACKED_ALIGN 65536 /* so that writes are long */

/* ---- beginning ------------------------------------------------------------------------------------------------- */

static uint8_t message_level(uint64_t len)
{
    return (uint8_t)mr_fabric_level_of_offered(&mr_peers.qos, len);
}

static struct mr_ahead *stripe_bucket(const struct mr_stripe_op *s)
{
    return &mr_peers.ahead[s->sub->rail->index][s->transfer->level];
}

/*
 * A medium message goes ahead of the bulk if the budgets of all its rails allow this, and the peer's grant. Each is
 * charged for its part.
 */
static void choose_level(struct mr_transfer *transfer, size_t len)
{
    struct mr_ahead *granted =
        transfer->read || !transfer->peer->granted ? NULL : &transfer->peer->granted[transfer->level];
    bool may = !granted || mr_bucket_lets(granted, len);

    for (unsigned i = 0; i < transfer->num; i++)
        may &= mr_may_go_ahead(transfer->stripe[i].sub, transfer->level, transfer->stripe[i].len);
    for (unsigned i = 0; may && i < transfer->num; i++)
        mr_ahead_take(stripe_bucket(&transfer->stripe[i]), transfer->stripe[i].len);
    if (!may)
        transfer->level = MR_LEVEL_BULK;
    else if (granted)
        mr_ahead_take(granted, len);
}

struct mr_transfer *mr_bulk_make(const struct mr_transfer *shape, const struct mr_stripe *plan, unsigned n)
{
    struct mr_transfer *transfer = calloc(1, sizeof *transfer + n * sizeof transfer->stripe[0]);

    if (!transfer)
        return NULL;
    *transfer = *shape;
    transfer->num = transfer->filter.open = n;
    for (unsigned i = 0; i < n; i++) {
        struct mr_stripe_op *s = &transfer->stripe[i];

        s->tx.wr.done = mr_stripe_done;
        s->transfer = transfer;
        s->sub = &transfer->peer->now[plan[i].sub];
        s->offset = plan[i].offset;
        s->len = s->left = plan[i].len;
        s->imm = mr_target_imm(transfer->remote.token, i, n);
    }
    return transfer;
}

/* No subchannel is open: one stripe, which waits. */
static unsigned plan_to_wait(const struct mr_peer *p, uint64_t len, struct mr_stripe *plan)
{
    *plan = (struct mr_stripe){.sub = (unsigned)__builtin_ctz(p->rdma), .len = len};
    return 1;
}

/*
 * Cutting a message saves time while rails would be idle. If each rail has messages to carry, a cut only costs: another
 * request, completion and notification for each stripe. From MR_STRIPE_BUSY times MRMPI_STRIPE_MIN on, this cost does
 * not show.
 */
static uint64_t stripe_least(const struct mr_peer *p, uint64_t len)
{
    uint64_t least = mr_config.stripe_min;
    bool busy = p->num_large >= (unsigned)__builtin_popcount(p->rdma);

    return busy && len < MR_STRIPE_BUSY * least ? MR_STRIPE_BUSY * least : least;
}

/* Alignment of the cuts of a message, in bytes. */
static uint64_t cut_align(const struct mr_peer *p, uint64_t len)
{
    uint64_t align = MR_MODEL_PAGE;

    if (p->tracked) {
        uint64_t block = 1ull << mr_block_shift(len);

        return block > TRACKED_ALIGN ? block : TRACKED_ALIGN;
    }
    while (align > STRIPE_FINE && align * STRIPE_PARTS > len)
        align /= 2;
    return align;
}

/*
 * A short operation on a window, without other traffic, takes the subchannel of the last one, because a waiter for each
 * operation polls first where the last one completed. Of unequal subchannels the better one is taken as before. True:
 * no other traffic.
 */
static bool stay_if_idle(struct mr_peer *p)
{
    struct mr_sched *turn = &mr_bulk_of(p)->stripe_turn;

    if (p->num_large)
        return false;
    if (mr_peers.policy[MR_POLICY_LARGE].kind->stripes)
        turn->next = mr_sched_last(turn, p->num_now);
    return true;
}

/* Something else may have come over another rail since. */
static void poll_there_first(const struct mr_stripe_op *s)
{
    if (s->sub)
        mr_verbs_poll_first(s->sub->rail);
}

/* without: set of subchannels without a key. */
static unsigned plan_stripes(struct mr_peer *p, uint64_t len, uint32_t without, struct mr_stripe plan[MR_SUBS_MAX])
{
    struct mr_load some[MR_SUBS_MAX];
    const struct mr_load *load = p->load;
    uint64_t least = stripe_least(p, len);

    without |= mr_stripe_excluded(p);
    for (unsigned i = 0; len < least && i < p->num_now; i++)
        p->load[i].queued = mr_bulk_sub_of(&p->now[i])->queued;
    if (unlikely(without != 0)) {
        for (unsigned i = 0; i < p->num_now; i++)
            some[i] = (struct mr_load){.up = p->load[i].up && !(without >> i & 1),
                                       .weight = p->load[i].weight,
                                       .sick = p->load[i].sick,
                                       .queued = p->load[i].queued};
        load = some;
    }
    return mr_sched_plan(&mr_peers.policy[MR_POLICY_LARGE], &mr_bulk_of(p)->stripe_turn, load, p->num_now, len, least,
                         cut_align(p, len), plan);
}

void mr_bulk_list(struct mr_transfer *transfer)
{
    struct mr_peer *p = transfer->peer;

    transfer->next = mr_bulk_of(p)->transfers;
    if (mr_bulk_of(p)->transfers)
        mr_bulk_of(p)->transfers->prev = transfer;
    mr_bulk_of(p)->transfers = transfer;
    p->num_large++;
    mr_bulk.open_transfers++;
}

uint8_t mr_bulk_write_level(size_t most)
{
    return most <= mr_peers.qos.level[MR_LEVEL_SMALL].max ? MR_LEVEL_SMALL : message_level(most);
}

/* A window's writes are as short as a message can be. */
static uint8_t transfer_level(const struct mr_net_transfer *t)
{
    return t->move ? mr_bulk_write_level(t->size) : message_level(t->size);
}

/* The data of a write goes with its request, whichever subchannel it takes. */
static bool goes_inline(const struct mr_peer *p, const struct mr_net_transfer *t)
{
    if (!t->move || t->read || t->size > MR_PACKET_SHORT)
        return false;
    for (unsigned i = 0; i < p->num_now; i++)
        if (p->rdma >> i & 1 && (p->now[i].state != MR_SUB_OPEN ||
                                 t->size > mr_sub_rdma_link(&p->now[i], transfer_level(t))->qp.max_inline))
            return false;
    return true;
}

static int register_transfer(const struct mr_net_transfer *t, struct mr_transfer *transfer)
{
    int err;

    if (goes_inline(transfer->peer, t))
        return 0;
    if (!t->read)
        return mr_regs_get(t->buf, t->size, MR_ACCESS_SOURCE, false, &transfer->reg);
    transfer->partial = transfer->remote.token || mr_bulk.few;
    err = transfer->partial
              ? mr_bulk_register_sink(transfer->peer, t->buf, t->size, transfer->remote.token, &transfer->reg)
              : -ENOKEY;
    if (err == -ENOKEY && !transfer->remote.token)
        err = mr_regs_get(t->buf, t->size, MR_ACCESS_TARGET, false, &transfer->reg);
    return err;
}

/* The peer has advertised the memory for datagrams. */
static bool takes_datagrams(const struct mr_net_transfer *t)
{
    return !t->read && !t->move && t->remote->serial && !t->remote->num_keys;
}

/* Checks possible before memory is registered. 0 or negative errno. */
static int check_transfer(const struct mr_vc *vc, const struct mr_net_transfer *t, size_t len)
{
    const struct mr_peer *p = vc->data;
    unsigned num_keys = t->remote->num_keys;
    int err = mr_bulk_refuses(vc);

    if (err)
        return err;
    if (len > t->remote->len || (t->remote->serial && len != t->remote->len))
        return -EMSGSIZE;
    if (takes_datagrams(t))
        return 0;
    for (unsigned i = 0; i < p->num_now; i++)
        if (p->now[i].remote_rail >= num_keys || num_keys > MR_RAILS_MAX)
            return -EPROTO;
    return !p->rdma || ((t->read || t->move) && p->tracked) ? -EOPNOTSUPP : 0;
}

/* Nothing is posted yet: the receiver clears each batch. */
static int begin_datagrams(const struct mr_net_transfer *t, const struct mr_transfer *shape)
{
    struct mr_transfer *transfer = mr_bulk_make(shape, NULL, 0);
    int err;

    if (!transfer)
        return -ENOMEM;
    transfer->level = message_level(t->size);
    err = mr_zcopy_begin(transfer);
    if (!err)
        err = mr_regs_get(t->buf, t->size, MR_ACCESS_SOURCE, false, &transfer->reg);
    if (err)
        free(transfer);
    else
        mr_bulk_list(transfer);
    return err;
}

int mr_net_begin_transfer(struct mr_vc *vc, const struct mr_net_transfer *t)
{
    struct mr_peer *p = vc->data;
    struct mr_transfer shape = {.peer = p,
                                .local = (unsigned char *)t->buf + t->part.at,
                                .remote = *t->remote,
                                .cookie = t->cookie,
                                .move = t->move,
                                .read = t->read};
    struct mr_stripe plan[MR_SUBS_MAX];
    size_t len = t->part.len ? t->part.len : t->size;
    struct mr_transfer *transfer;
    uint64_t begin;
    unsigned n;
    bool lone;
    int err = check_transfer(vc, t, len);

    if (!err && takes_datagrams(t))
        return begin_datagrams(t, &shape);
    if (!err)
        err = register_transfer(t, &shape);
    if (err)
        return err;
    lone = t->move && len < mr_config.stripe_min && stay_if_idle(p);
    n = plan_stripes(p, len, mr_bulk_lacking(&shape), plan);
    transfer = mr_bulk_make(&shape, plan, n ? n : plan_to_wait(p, len, plan));
    if (!transfer) {
        err = -ENOMEM;
        goto release;
    }
    transfer->level = transfer_level(t);
    if (mr_peers.ahead_limited && transfer->level != MR_LEVEL_BULK)
        choose_level(transfer, len);
    err = !t->read && t->remote->serial ? mr_track_begin(transfer) : 0;
    if (err)
        goto free_transfer;
    mr_bulk_list(transfer);
    if (unlikely(p->until_paths != 0))
        mr_paths_note(p, len);
    for (unsigned i = 0; i < transfer->num; i++)
        mr_stripe_queue_on(&transfer->stripe[i], transfer->stripe[i].sub);
    mr_stat_add(MR_STAT_NET_STRIPES, transfer->num);

    /*
     * All stripes begin at the time before the first post (net/stripe/adapt.h). Short transfers prove nothing about a
     * rail's rate.
     */
    begin = (!t->move || len >= mr_config.stripe_min) && mr_stripe_is_measured(p) ? mr_clock_ns() : 0;
    for (unsigned i = 0; n && i < transfer->num; i++)
        mr_stripe_start(&transfer->stripe[i], begin);
    if (!n)
        mr_stripe_assign(&transfer->stripe[0]);
    if (lone)
        poll_there_first(&transfer->stripe[0]);
    return 0;

free_transfer:
    free(transfer);
release:
    if (shape.reg)
        mr_regs_release(shape.reg);
    return err;
}

/* The whole list over one subchannel. */
void mr_bulk_begin_list(struct mr_transfer *transfer)
{
    struct mr_stripe_op *s = &transfer->stripe[0];
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_peer *p = transfer->peer;
    bool up, lone = stay_if_idle(p);

    plan[0].sub = 0;
    up = p->num_now == 1 && !mr_bulk_may_lack(transfer) ? p->load[0].up && p->rdma
                                                        : plan_stripes(p, s->len, mr_bulk_lacking(transfer), plan);
    mr_bulk_list(transfer);
    mr_stat_add(MR_STAT_NET_STRIPES, 1);
    if (!up) {
        mr_stripe_assign(s);
        return;
    }
    s->sub = &p->now[plan[0].sub];
    if (unlikely(mr_peers.ahead_limited) && transfer->level != MR_LEVEL_BULK)
        choose_level(transfer, s->len);
    mr_stripe_queue_on(s, s->sub);
    mr_stripe_start(s, 0);
    if (lone)
        poll_there_first(s);
}

int mr_net_move(struct mr_vc *vc, void *buf, size_t len, const struct mr_remote *remote, bool write,
                struct mr_vc_move *m)
{
    const struct mr_net_transfer t = {.read = !write, .buf = buf, .size = len, .remote = remote, .move = m};
    int err = mr_bulk_refuses(vc);

    if (!err && (remote->serial || remote->token))
        err = -EPROTO;
    return err ? err : mr_net_begin_transfer(vc, &t);
}
