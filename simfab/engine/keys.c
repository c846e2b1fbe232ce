/* SPDX-License-Identifier: BSD-3-Clause */
/* Partition and queue keys of packets. */
#include "simfab/engine/keys.h"

#include "simfab/engine/mad.h"
#include "simfab/engine/pkey.h"

static void count16(uint16_t *counter)
{
    if (*counter < UINT16_MAX)
        ++*counter;
}

static void tell(struct port *p, enum mad_key_kind kind, uint32_t key, const struct packet *pkt)
{
    struct mad_bad_key b = {.kind = kind,
                            .key = key,
                            .slid = pkt->slid,
                            .dlid = pkt->dlid,
                            .sl = pkt->sl,
                            .src_qpn = pkt->src_qpn,
                            .dest_qpn = pkt->dest_qpn,
                            .gids = pkt->flags & PKT_GRH ? pkt->grh + 8 : NULL};

    mad_bad_key(p, &b);
}

bool keys_accept(struct qp *qp, const struct packet *p)
{
    struct port *port = qp->port->port;

    if (!pkey_match(port->pkeys[qp->attr.pkey_index], p->pkey)) {
        count16(&port->pkey_violations);
        tell(port, MAD_BAD_PKEY, p->pkey, p);
        return false;
    }
    if (qp->type == IBV_QPT_UD && p->qkey != qp->attr.qkey) {
        count16(&port->qkey_violations);
        tell(port, MAD_BAD_QKEY, p->qkey, p);
        return false;
    }
    return true;
}

bool keys_enter(struct port *in, const struct packet *p)
{
    if (pkey_may_enter(in, p->pkey))
        return true;
    in->count.rcv_constraint++;
    tell(in, MAD_BAD_PKEY, p->pkey, p);
    return false;
}

bool keys_leave(struct port *out, const struct packet *p)
{
    if (pkey_may_leave(out, p->pkey))
        return true;
    out->count.xmit_constraint++;
    tell(out, MAD_BAD_PKEY, p->pkey, p);
    return false;
}
