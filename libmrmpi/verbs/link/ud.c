/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable datagrams: two queue pairs of the rail serve all peers of a partition, so a link is only an address. A
 * packet longer than a datagram goes as several, which the receiver puts together (assembly.h). The last one of each
 * packet is signaled, so the end of the address's use is known.
 */
#include "libmrmpi/verbs/link/assembly.h"
#include "libmrmpi/verbs/verbs.h"

#include <errno.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/link/packet.h"
#include "libmrmpi/verbs/post.h"

static int ud_open(struct mr_link *l, struct mr_rail *rail)
{
    l->ud = (struct mr_link_datagrams){.qp = mr_udp_qp(rail, l->pkey, l->bulk)};
    if (!l->ud.qp)
        return -ENODEV;
    l->rail = rail;
    l->qpn = l->ud.qp->qpn;
    l->state = MR_LINK_OPENING;
    return 0;
}

static int ud_connect(struct mr_link *l, const struct mr_link_end *to)
{
    int err = mr_udp_address(l->rail, to->addr, to->qpn, to->sl, to->path, &l->ud.to);

    if (err)
        return err;
    l->ud.mtu = mr_udp_mtu(&l->rail->addr, to->addr);
    l->sl = to->sl;
    l->path = to->path;
    l->state = MR_LINK_OPEN;
    return 0;
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

/* A request of the link has come back. */
static void one_done(struct mr_link *l, struct mr_tx *tx, const struct mr_wc *wc)
{
    l->ud.posted--;
    mr_tx_done(tx, wc);
    if (wc->error && l->state == MR_LINK_OPEN) {
        l->state = MR_LINK_BROKEN;
        l->events->failed(l, wc);
    }
}

static void ud_packet_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_packet *p = container_of(wr, struct mr_packet, tx.wr);

    p->posted = false;
    one_done(p->link, &p->tx, wc);
    if (p->dropped)
        mr_packet_free(p);
}

static int send_parts(struct mr_link *l, struct mr_packet *p, uint32_t size)
{
    uint32_t lkey = mr_packet_lkey(p, l->rail), chunk = mr_part_chunk(size, p->ack_len, l->ud.mtu - MR_PART_HEADER);
    unsigned parts = (size + chunk - 1) / chunk;
    struct mr_piece piece[2] = {{.data = mr_packet_part_header(p), .len = MR_PART_HEADER, .lkey = lkey},
                                {.lkey = lkey}};
    int err = 0;

    _Static_assert(MR_PARTS_MAX <= MR_SEGMENTS_MAX, "the send queue has room for all parts of a packet");
    if (parts > MR_PARTS_MAX)
        return -EMSGSIZE;
    if (!mr_qp_has_room(l->ud.qp, parts))
        return -EAGAIN;
    for (unsigned i = 0; i < parts && !err; i++) {
        uint32_t imm = mr_part_imm(i, chunk);

        piece[1].data = p->data + i * chunk;
        piece[1].len = i + 1 < parts ? chunk : size - i * chunk;
        err = mr_qp_send_to(l->ud.qp, &l->ud.to, piece, 2, &imm, i + 1 < parts ? NULL : &p->tx);
    }
    return err;
}

static int ud_send(struct mr_link *l, struct mr_packet *p)
{
    uint32_t size = p->size + p->ack_len;
    int err;

    if (unlikely(!mr_qp_has_room(l->ud.qp, 1) || l->ud.qp->error))
        return -EAGAIN; /* after an error the queue pair is brought up again */
    p->link = l;
    p->tx.wr.done = ud_packet_done;
    if (size <= l->ud.mtu) {
        struct mr_piece whole = {.data = p->data, .len = size, .lkey = mr_packet_lkey(p, l->rail)};

        err = mr_qp_send_to(l->ud.qp, &l->ud.to, &whole, 1, NULL, &p->tx);
    } else {
        mr_part_header(p->data, size, mr_packet_part_header(p));
        err = send_parts(l, p, size);
    }
    p->posted = !err;
    l->ud.posted += !err;
    if (err)
        return err;
    mr_rail_add(l->rail, MR_RAIL_PACKETS_SENT, 1);
    mr_rail_add(l->rail, MR_RAIL_BYTES_SENT, size);
    mr_stat_add(MR_STAT_UD_SENT, 1);
    return 0;
}

/* ---- large messages ---------------------------------------------------------------------------------------------- */

static void forget_run(struct mr_link_run *run)
{
    *run->at = run->next;
    if (run->next)
        run->next->at = run->at;
    run->done(run);
}

static void ud_run_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_link_run *run = container_of(wr, struct mr_link_run, tx.wr);

    one_done(run->link, &run->tx, wc);
    forget_run(run);
}

/* Over the queue pair for long packets, whatever the service level: short ones do not wait behind. */
static ssize_t ud_run(struct mr_link *l, const struct mr_link_datagram *d, struct mr_link_run *run)
{
    struct mr_qp *qp = mr_udp_qp(l->rail, l->pkey, MR_UD_LEVELS - 1);
    struct mr_ud_to to = {.ah = l->ud.to.ah, .qpn = d->qpn, .qkey = d->qkey};
    struct mr_piece data = d->data;
    unsigned n = MR_QP_RUN;
    int err;

    if (l->state != MR_LINK_OPEN)
        return -ENOTCONN;
    if (!qp || qp->error)
        return -EAGAIN;
    while (n && !mr_qp_has_room(qp, n))
        n /= 2;
    if (!n)
        return -EAGAIN;
    if (data.len > n * d->size)
        data.len = n * d->size;
    run->link = l;
    run->tx.wr.done = ud_run_done;
    err = mr_qp_send_run(qp, &to, &data, d->size, d->imm, &run->tx);
    if (err)
        return err;
    l->ud.posted++;
    run->next = l->ud.runs;
    run->at = &l->ud.runs;
    if (run->next)
        run->next->at = &run->next;
    l->ud.runs = run;
    return data.len;
}

/* ---- the end -------------------------------------------------------------------------------------------------------
 */

static bool ud_has_drained(struct mr_later *later)
{
    struct mr_link *l = container_of(later, struct mr_link, ud.later);

    if (l->ud.posted && !l->rail->dev->fatal)
        return false;
    mr_verbs_forget(later);
    if (l->ud.posted)
        mr_packets_gone(l->ud.qp, l);
    while (l->ud.runs)
        forget_run(l->ud.runs);
    mr_udp_forget(&l->ud.to);
    l->state = MR_LINK_CLOSED;
    l->events->drained(l);
    return true;
}

static void ud_drain(struct mr_link *l)
{
    if (l->state == MR_LINK_CLOSED || l->ud.later.done)
        return;
    l->state = MR_LINK_BROKEN;
    l->ud.later.done = ud_has_drained;
    mr_verbs_later(&l->ud.later);
}

static void ud_close(struct mr_link *l)
{
    mr_verbs_forget(&l->ud.later);
    mr_udp_forget(&l->ud.to);
    l->state = MR_LINK_CLOSED;
}

const struct mr_link_ops mr_link_ud = {
    .open = ud_open,
    .connect = ud_connect,
    .send = ud_send,
    .run = ud_run,
    .drain = ud_drain,
    .close = ud_close,
    .leave = ud_close,
};
