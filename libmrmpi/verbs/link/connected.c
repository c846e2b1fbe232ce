/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links with a queue pair of their own. Short packets go inline, one in a number of them signaled: a completion stands
 * for all packets before it. Longer packets are each signaled, so an idle link keeps no long packets.
 */
#include "libmrmpi/verbs/link/connected.h"

#include <errno.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/link/packet.h"
#include "libmrmpi/verbs/up.h"
#include "libmrmpi/verbs/qp.h"

static void qp_failed(struct mr_qp *qp, const struct mr_wc *wc)
{
    struct mr_link *l = qp->owner;

    l->state = MR_LINK_BROKEN;
    l->events->failed(l, wc);
}

static void qp_confirmed(struct mr_qp *qp, unsigned sends)
{
    struct mr_link *l = qp->owner;

    if (likely(l->native))
        l->events->confirmed(l, sends);
}

static void link_qp_drained(struct mr_qp *qp)
{
    struct mr_link *l = qp->owner;

    if (qp->rail->dev->fatal)
        mr_packets_gone(qp, NULL);
    if (l->ops->emptied)
        l->ops->emptied(l);
    if (!l->ops->keepalive || !l->events->left || !l->events->left(l, qp))
        mr_qp_destroy(qp);
    l->state = MR_LINK_CLOSED;
    l->events->drained(l);
}

static const struct mr_qp_events qp_events = {
    .failed = qp_failed,
    .confirmed = qp_confirmed,
    .drained = link_qp_drained,
};

int mr_connected_open(struct mr_link *l, struct mr_rail *rail, enum mr_qp_type type)
{
    int err = mr_qp_create(rail, type, l->deep ? MR_LINK_DEEP : 1, &l->qp, &qp_events, l);

    if (err)
        return err;
    l->qp.lossy = l->lossy;
    l->qp.pkey = l->pkey;
    l->rail = rail;
    l->qpn = l->qp.qpn;
    l->state = MR_LINK_OPENING;
    return 0;
}

int mr_connected_connect(struct mr_link *l, const struct mr_link_end *to)
{
    int err = mr_qp_connect(&l->qp, to->addr, to->qpn, to->local_psn, to->remote_psn, to->sl, to->path);

    if (err)
        return err;
    l->sl = to->sl;
    l->path = to->path;
    l->state = MR_LINK_OPEN;
    return 0;
}

static void connected_packet_done(struct mr_packet *p, const struct mr_wc *wc)
{
    p->posted = false;
    mr_tx_done(&p->tx, wc);
    if (unlikely(p->dropped))
        mr_packet_free(p);
}

static __attribute__((noinline)) void zsend_packet_done(struct mr_packet *p, const struct mr_wc *wc)
{
    struct mr_zsend_from zsend = mr_packet_take_zsend(p, wc->error && !p->dropped);

    connected_packet_done(p, wc);
    mr_verbs_up.zsend_done(&zsend);
}

void mr_connected_packet_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_packet *p = container_of(wr, struct mr_packet, tx.wr);

    if (unlikely(p->zsend.memory != NULL))
        zsend_packet_done(p, wc);
    else
        connected_packet_done(p, wc);
}

static int post_zsend(struct mr_link *l, struct mr_packet *p)
{
    struct mr_piece piece[] = {
        {.data = p->data, .len = p->size - p->payload, .lkey = mr_packet_lkey(p, l->rail)},
        {.data = p->zsend.from, .len = p->payload, .lkey = mr_memory_lkey(p->zsend.memory, l->rail)}};

    return mr_qp_send_pieces(&l->qp, piece, &p->tx);
}

static __attribute__((noinline)) int send_signaled(struct mr_link *l, struct mr_packet *p, size_t size)
{
    int err;

    if (!mr_qp_has_room(&l->qp, 1))
        return -EAGAIN;
    p->tx.wr.done = mr_connected_packet_done;
    if (unlikely(p->zsend.from != NULL) && !mr_memory_is_on(p->zsend.memory, l->rail))
        mr_packet_settle(p);
    if (unlikely(p->zsend.from != NULL))
        err = post_zsend(l, p);
    else
        err = mr_qp_send(&l->qp, p->data, size, mr_packet_lkey(p, l->rail), &p->tx);
    p->posted = !err;
    return err;
}

int mr_connected_send(struct mr_link *l, struct mr_packet *p)
{
    size_t size = p->size + p->ack_len;

    if (unlikely(size > l->qp.max_inline || !mr_qp_has_unsignaled(&l->qp)))
        return send_signaled(l, p, size);
    return mr_qp_send_inline(&l->qp, p->data, size);
}

/* ---- RDMA ------------------------------------------------------------------------------------------------------ */

/* Signaled for the queue's sake, without a waiter. */
static void counter_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_packet *p = container_of(wr, struct mr_packet, tx.wr);

    p->posted = false;
    mr_tx_done(&p->tx, wc);
    mr_packet_free(p);
}

/* A request without a waiter may have to be signaled nevertheless: then an empty packet stands for it. */
static int take_counter(struct mr_link *l, bool wakes, struct mr_tx **tx)
{
    struct mr_packet *counter;

    if (!mr_qp_has_room(&l->qp, 1))
        return -EAGAIN;
    if (*tx || !(wakes || mr_qp_must_signal(&l->qp)))
        return 0;
    counter = mr_packet_blank();
    if (!counter)
        return -ENOMEM;
    counter->tx.wr.done = counter_done;
    counter->posted = counter->dropped = true;
    *tx = &counter->tx;
    return 0;
}

/* err: of posting. Where the counter was not posted it is free again. */
static int counted(struct mr_tx *tx, int err)
{
    struct mr_packet *counter;

    if (!err || !tx || tx->wr.done != counter_done)
        return err;
    counter = container_of(tx, struct mr_packet, tx);
    counter->posted = false;
    mr_packet_free(counter);
    return err;
}

int mr_connected_write_u32(struct mr_link *l, uint32_t word, uint64_t raddr, uint32_t rkey)
{
    struct mr_tx *tx = NULL;
    int err = take_counter(l, false, &tx);

    return err ? err : counted(tx, mr_qp_put(&l->qp, &word, sizeof word, 0, raddr, rkey, false, tx));
}

int mr_connected_write(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx)
{
    int err = take_counter(l, part->wakes, &tx);

    return err ? err
               : counted(tx, mr_qp_write(&l->qp, part->local, part->len, part->lkey, part->raddr, part->rkey, part->imm,
                                         tx));
}

int mr_connected_write_list(struct mr_link *l, const struct mr_link_list *list, struct mr_tx *tx, unsigned *posted)
{
    unsigned num = list->num, room = l->qp.room < l->qp.rail->cq_room ? l->qp.room : l->qp.rail->cq_room;

    *posted = 0;
    num = num < room ? num : room;
    num = num < MR_QP_LIST ? num : MR_QP_LIST;
    return num ? mr_qp_write_list(&l->qp, list->one, num, list->rkey, list->lkey, tx, posted) : -EAGAIN;
}

int mr_connected_read(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx)
{
    int err = take_counter(l, part->wakes, &tx);

    return err ? err : counted(tx, mr_qp_read(&l->qp, part->local, part->len, part->lkey, part->raddr, part->rkey, tx));
}

int mr_connected_atomic(struct mr_link *l, const struct mr_link_atomic *w, struct mr_tx *tx)
{
    return mr_qp_has_room(&l->qp, 2) ? mr_qp_atomic(&l->qp, w->atomic, w->raddr, w->rkey, w->lkey, tx) : -EAGAIN;
}

/* ---- signs of life ----------------------------------------------------------------------------------------------- */

static void keepalive_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_link *l = container_of(wr, struct mr_link, keepalive.wr);

    l->keepalive_sent = false;
    mr_tx_done(&l->keepalive, wc);
    mr_costs_answered(l, wc->error);
}

/* A write of no bytes: it needs no key, takes no receive buffer, and is acknowledged by the adapter. */
int mr_connected_keepalive(struct mr_link *l)
{
    int err;

    if (l->keepalive_sent || !mr_qp_has_room(&l->qp, 1))
        return -EAGAIN;
    l->keepalive.wr.done = keepalive_done;
    err = mr_qp_write(&l->qp, NULL, 0, 0, 0, 0, NULL, &l->keepalive);
    l->keepalive_sent = !err;
    return err;
}

/* The same, beside all packets: the next signaled packet is the one it would be without. */
int mr_connected_ask(struct mr_link *l)
{
    int err;

    if (l->keepalive_sent || !mr_qp_has_room(&l->qp, 1))
        return -EAGAIN;
    l->keepalive.wr.done = keepalive_done;
    err = mr_qp_ask(&l->qp, &l->keepalive);
    l->keepalive_sent = !err;
    return err;
}

/* ---- the end of a link ------------------------------------------------------------------------------------------- */

void mr_connected_drain(struct mr_link *l)
{
    if (l->state == MR_LINK_CLOSED)
        return;
    l->state = MR_LINK_BROKEN;
    mr_qp_abort(&l->qp);
}

void mr_connected_close(struct mr_link *l)
{
    mr_qp_destroy(&l->qp);
    l->state = MR_LINK_CLOSED;
}

void mr_connected_leave(struct mr_link *l)
{
    mr_qp_retire(&l->qp);
    l->state = MR_LINK_CLOSED;
}
