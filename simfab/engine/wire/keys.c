/* SPDX-License-Identifier: BSD-3-Clause */
/* Partition and queue keys of packets. */
#include "simfab/engine/wire/keys.h"

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/pkey.h"
#include "simfab/engine/wire/packet.h"

static void count16(uint16_t *counter)
{
    if (*counter < UINT16_MAX)
        ++*counter;
}

static void report_bad_key(struct port *p, enum key_kind kind, uint32_t key, const struct packet *pkt)
{
    struct bad_key b = {.kind = kind,
                        .key = key,
                        .slid = pkt->slid,
                        .dlid = pkt->dlid,
                        .sl = pkt->sl,
                        .src_qpn = pkt->src_qpn,
                        .dest_qpn = pkt->dest_qpn,
                        .gids = pkt->flags & PKT_GRH ? pkt->grh + 8 : NULL};

    p->node->fabric->up->bad_key(p, &b);
}

bool keys_accept(struct port *port, uint16_t pkey_index, const uint32_t *qkey, const struct packet *p)
{
    if (!pkey_match(port->pkeys[pkey_index], p->pkey)) {
        count16(&port->pkey_violations);
        report_bad_key(port, BAD_PKEY, p->pkey, p);
        return false;
    }
    if (qkey && p->qkey != *qkey) {
        count16(&port->qkey_violations);
        report_bad_key(port, BAD_QKEY, p->qkey, p);
        return false;
    }
    return true;
}

bool keys_enter(struct port *in, const struct packet *p)
{
    if (pkey_may_enter(in, p->pkey))
        return true;
    in->count.rcv_constraint++;
    report_bad_key(in, BAD_PKEY, p->pkey, p);
    return false;
}

bool keys_leave(struct port *out, const struct packet *p)
{
    if (pkey_may_leave(out, p->pkey))
        return true;
    out->count.xmit_constraint++;
    report_bad_key(out, BAD_PKEY, p->pkey, p);
    return false;
}
