/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets as datagrams: on each rail, in each of its partitions, two UD queue pairs, for short and for long packets,
 * that serve all peers, and a receive queue of their own, whose buffers have the length of a datagram.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/datagram.h"

struct mr_udp {
    unsigned num; /* partitions of the rail */
    struct {
        struct mr_qp qp[MR_UD_LEVELS];
    } in[];
};

/* Every request that follows comes back too. When all have, the queue pair is used again. */
static void udp_qp_failed(struct mr_qp *qp, const struct mr_wc *wc)
{
    mr_log(MR_LOG_WARN, "rail %u: sending datagrams failed: %s", qp->rail->index, wc->status);
    mr_qp_abort(qp);
}

static void udp_qp_drained(struct mr_qp *qp)
{
    int err = qp->rail->dev->fatal ? 0 : mr_qp_revive(qp);

    if (err)
        mr_log(MR_LOG_ERROR, "rail %u: no packets go as datagrams any more: %s", qp->rail->index, strerror(-err));
}

static void udp_qp_confirmed(struct mr_qp *qp, unsigned sends)
{
}

static const struct mr_qp_events events = {
    .failed = udp_qp_failed, .confirmed = udp_qp_confirmed, .drained = udp_qp_drained};

uint32_t mr_udp_mtu(const struct mr_rail_addr *a, const struct mr_rail_addr *b)
{
    return 128u << (a->mtu < b->mtu ? a->mtu : b->mtu);
}

static int open_in(struct mr_rail *rail, unsigned i)
{
    int err = 0;

    for (unsigned l = 0; l < MR_UD_LEVELS && !err; l++) {
        struct mr_qp *qp = &rail->udp->in[i].qp[l];

        err = mr_qp_create(rail, MR_QP_UD, 1, qp, &events, rail);
        qp->pkey = rail->partition[i].number;
        if (!err)
            err = mr_qp_bring_up(qp);
    }
    return err;
}

int mr_udp_open(struct mr_rail *rail)
{
    struct mr_udp *udp = calloc(1, sizeof *udp + rail->num_partitions * sizeof *udp->in);
    int err;

    if (!udp)
        return -ENOMEM;
    rail->udp = udp;
    udp->num = rail->num_partitions;
    err =
        mr_rx_open(rail, &rail->datagram_rx, (unsigned)mr_config.srq_depth, mr_udp_mtu(&rail->addr, &rail->addr), true);
    for (unsigned i = 0; i < udp->num && !err; i++)
        if (rail->partition[i].number)
            err = open_in(rail, i);
    return err;
}

/* They are brought up again at the other index when all posts have come back; now if that has failed before. */
void mr_udp_moved(struct mr_rail *rail, unsigned i)
{
    int err = rail->udp && !rail->udp->in[i].qp[0].qp ? open_in(rail, i) : 0; /* of the reserve */

    if (err)
        mr_log(MR_LOG_ERROR, "rail %u: no packets go as datagrams in partition 0x%04x: %s", rail->index,
               rail->partition[i].number, strerror(-err));
    for (unsigned l = 0; rail->udp && l < MR_UD_LEVELS; l++) {
        struct mr_qp *qp = &rail->udp->in[i].qp[l];

        if (qp->state == MR_QP_DRAINED)
            udp_qp_drained(qp);
        else if (qp->qp)
            mr_qp_abort(qp);
    }
}

unsigned mr_udp_num_qps(const struct mr_rail *rail)
{
    unsigned n = 0;

    for (unsigned i = 0; rail->udp && i < rail->udp->num * MR_UD_LEVELS; i++)
        n += rail->udp->in[i / MR_UD_LEVELS].qp[i % MR_UD_LEVELS].qp != NULL;
    return n;
}

void mr_udp_close(struct mr_rail *rail)
{
    if (!rail->udp)
        return;
    for (unsigned i = 0; i < rail->udp->num * MR_UD_LEVELS; i++)
        mr_qp_destroy(&rail->udp->in[i / MR_UD_LEVELS].qp[i % MR_UD_LEVELS]);
    mr_rx_close(&rail->datagram_rx);
    free(rail->udp);
    rail->udp = NULL;
}

struct mr_qp *mr_udp_qp(struct mr_rail *rail, uint16_t pkey, unsigned level)
{
    const struct mr_rail_partition *p = mr_rail_partition(rail, pkey);
    struct mr_qp *qp = rail->udp && p ? &rail->udp->in[p - rail->partition].qp[level] : NULL;

    return qp && qp->state == MR_QP_ALIVE ? qp : NULL;
}

int mr_udp_address(struct mr_rail *rail, const struct mr_rail_addr *to, uint32_t qpn, uint8_t sl, uint8_t path,
                   struct mr_ud_to *out)
{
    struct ibv_ah_attr attr;

    mr_rail_ah_attr(rail, to, sl, path, &attr);
    out->ah = ibv_create_ah(rail->dev->pd, &attr);
    if (!out->ah)
        return errno ? -errno : -ENOMEM;
    out->qpn = qpn;
    out->qkey = to->ud_qkey;
    return 0;
}

void mr_udp_forget(struct mr_ud_to *to)
{
    if (to->ah)
        ibv_destroy_ah(to->ah);
    to->ah = NULL;
}
