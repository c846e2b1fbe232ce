/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of a datagram: from a port by its LID or its directed route to a node.
 *
 * SMPs travel on VL 15 as soon as a link is up; other datagrams want every link of their way to be active.
 */
#include "simfab/engine/mgmt/route.h"

#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/pkey.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad_wire.h"

#define HOPS_MAX 64 /* as many as a directed route has; a forwarding loop ends here too */

static bool has_lid(const struct port *p, uint16_t lid)
{
    return p->lid && lid >= p->lid && lid < p->lid + (1u << p->lmc);
}

/* The port at the other end, if a datagram can get there. */
static struct port *reach_peer(struct port *p, bool smp)
{
    if (!p->peer || p->phys_state != PHYS_LINKUP)
        return NULL;
    return smp || (p->state == PORT_ACTIVE && p->peer->state == PORT_ACTIVE) ? p->peer : NULL;
}

/* SMPs know no partitions; to queue pair 1, a key must match a key of the port. Others are counted and reported. */
static void bad_key(struct port *at, enum key_kind kind, const struct mad_packet *pkt)
{
    struct bad_key b = {.kind = kind,
                        .key = kind == BAD_PKEY ? pkt->pkey : pkt->qkey,
                        .slid = pkt->slid,
                        .dlid = pkt->dlid,
                        .sl = pkt->sl,
                        .src_qpn = pkt->qpn,
                        .dest_qpn = pkt->qpn};

    at->node->fabric->up->bad_key(at, &b);
}

bool route_keys_accept(struct port *at, const struct mad_packet *pkt)
{
    if (pkt->qpn == 0)
        return true;
    if (pkey_find(at, pkt->pkey) < 0) {
        at->pkey_violations += at->pkey_violations < UINT16_MAX;
        bad_key(at, BAD_PKEY, pkt);
        return false;
    }
    if (pkt->qkey != MAD_QKEY) {
        at->qkey_violations += at->qkey_violations < UINT16_MAX;
        bad_key(at, BAD_QKEY, pkt);
        return false;
    }
    return true;
}

/* The same through a switch with ports that enforce partitions. */
static bool keys_pass(struct port *in, struct port *out, const struct mad_packet *pkt)
{
    if (pkt->qpn == 0)
        return true;
    if (in->num && !pkey_may_enter(in, pkt->pkey)) {
        in->count.rcv_constraint++;
        bad_key(in, BAD_PKEY, pkt);
        return false;
    }
    if (out->num && !pkey_may_leave(out, pkt->pkey)) {
        out->count.xmit_constraint++;
        bad_key(out, BAD_PKEY, pkt);
        return false;
    }
    return true;
}

/* Follows the forwarding tables from a port to the owner of the dlid. *ingress: the port of arrival. */
static struct port *follow_lid(struct port *from, const struct mad_packet *pkt, struct port **ingress)
{
    uint16_t dlid = pkt->dlid;
    bool smp = pkt->qpn == 0;
    struct port *at = from;

    *ingress = from;
    if (dlid == 0 || dlid >= FABRIC_LIDS)
        return NULL;
    if (from->node->kind != NODE_SWITCH) {
        if (has_lid(from, dlid))
            return from;
        at = reach_peer(from, smp);
    }
    for (unsigned hop = 0; at && hop < HOPS_MAX; hop++) {
        struct node *n = at->node;
        unsigned out;

        *ingress = at;
        if (n->kind != NODE_SWITCH)
            return has_lid(at, dlid) ? at : NULL;
        if (has_lid(&n->ports[0], dlid))
            return keys_pass(at, &n->ports[0], pkt) ? &n->ports[0] : NULL;
        out = n->lft[dlid];
        if (dlid > n->lft_top || out == 0 || out > n->num_ports)
            return NULL;
        if (!keys_pass(at, &n->ports[out], pkt))
            return NULL;
        at = reach_peer(&n->ports[out], smp);
    }
    return NULL;
}

static enum mad_result end_of_route(struct port *at, const struct port *ingress, const struct mad_packet *pkt)
{
    return mad_port_of(at)->mad->deliver(at, ingress, pkt) ? MAD_SENT : MAD_LOST;
}

static enum mad_result send_by_lid(struct port *from, const struct mad_packet *pkt)
{
    struct port *ingress, *to = follow_lid(from, pkt, &ingress);

    if (!to)
        return MAD_LOST;
    return end_of_route(to, to->node->kind == NODE_SWITCH ? ingress : to, pkt);
}

/* ---- directed routes ------------------------------------------------------------------------------------------ */

static struct port *node_port(struct node *n, unsigned num)
{
    return num >= 1 && num <= n->num_ports ? &n->ports[num] : NULL;
}

static struct port *management_port(struct port *p)
{
    return p->node->kind == NODE_SWITCH ? &p->node->ports[0] : p;
}

/* The outward part has ended at a node: the rest of the route goes by LID, or the node is the destination. */
static enum mad_result dr_arrived(struct port *in, struct mad_packet *pkt, uint8_t *mad)
{
    uint16_t dr_dlid = (uint16_t)wire_get(mad, SMP_DR_DLID);
    struct port *at = management_port(in);

    wire_put(mad, SMP_HOP_PTR, wire_get(mad, SMP_HOP_CNT) + 1);
    if (dr_dlid == LID_PERMISSIVE)
        return end_of_route(at, in, pkt);
    pkt->dlid = dr_dlid;
    return send_by_lid(at, pkt);
}

static enum mad_result dr_outward(struct port *from, struct mad_packet *pkt, uint8_t *mad)
{
    unsigned ptr = (unsigned)wire_get(mad, SMP_HOP_PTR), cnt = (unsigned)wire_get(mad, SMP_HOP_CNT);
    struct port *in, *out;

    if (cnt >= HOPS_MAX || ptr > cnt)
        return MAD_BAD_ROUTE;
    if (wire_get(mad, SMP_DR_SLID) != LID_PERMISSIVE) {
        /* first by LID to the node where the directed part begins */
        struct port *to = follow_lid(from, pkt, &in);

        if (!to || ptr != 0)
            return MAD_LOST;
        if (cnt == 0)
            return dr_arrived(in, pkt, mad);
        out = node_port(to->node, mad[SMP_INITIAL_PATH + 1]);
        if (to->node->kind != NODE_SWITCH && out != to)
            return MAD_LOST;
    } else {
        if (cnt == 0)
            return dr_arrived(from, pkt, mad);
        out = node_port(from->node, mad[SMP_INITIAL_PATH + 1]);
        if (ptr != 0 || (from->node->kind != NODE_SWITCH && out != from))
            return MAD_BAD_ROUTE;
    }
    for (ptr = 1; out && (in = reach_peer(out, true)); ptr++) {
        mad[SMP_RETURN_PATH + ptr] = in->num;
        wire_put(mad, SMP_HOP_PTR, ptr);
        if (ptr == cnt)
            return dr_arrived(in, pkt, mad);
        if (in->node->kind != NODE_SWITCH)
            return MAD_LOST;
        out = node_port(in->node, mad[SMP_INITIAL_PATH + ptr + 1]);
    }
    return MAD_LOST;
}

/* The way back has ended at a node: the requester is here, or is reached by LID. */
static enum mad_result dr_returned(struct port *in, struct mad_packet *pkt, uint8_t *mad)
{
    uint16_t dr_slid = (uint16_t)wire_get(mad, SMP_DR_SLID);
    struct port *at = management_port(in);

    wire_put(mad, SMP_HOP_PTR, 0);
    if (dr_slid == LID_PERMISSIVE)
        return end_of_route(at, in, pkt);
    pkt->dlid = dr_slid;
    return send_by_lid(at, pkt);
}

static enum mad_result dr_homeward(struct port *from, struct mad_packet *pkt, uint8_t *mad)
{
    unsigned ptr = (unsigned)wire_get(mad, SMP_HOP_PTR), cnt = (unsigned)wire_get(mad, SMP_HOP_CNT);
    struct port *in, *out;

    if (cnt >= HOPS_MAX)
        return MAD_BAD_ROUTE;
    if (wire_get(mad, SMP_DR_DLID) != LID_PERMISSIVE) {
        struct port *to = follow_lid(from, pkt, &in);

        if (!to)
            return MAD_LOST;
        from = to;
    }
    if (cnt == 0)
        return dr_returned(from, pkt, mad);
    if (ptr != cnt + 1)
        return MAD_BAD_ROUTE;
    out = node_port(from->node, mad[SMP_RETURN_PATH + cnt]);
    if (!out || (from->node->kind != NODE_SWITCH && out != from))
        return MAD_BAD_ROUTE;
    for (ptr = cnt; out && (in = reach_peer(out, true)); ptr--) {
        if (ptr == 1)
            return dr_returned(in, pkt, mad);
        if (in->node->kind != NODE_SWITCH)
            return MAD_LOST;
        out = node_port(in->node, mad[SMP_RETURN_PATH + ptr - 1]);
    }
    return MAD_LOST;
}

static enum mad_result send_directed(struct port *from, const struct mad_packet *pkt)
{
    uint8_t mad[MAD_BYTES];
    struct mad_packet moving = *pkt;

    /* the route's fields change on the way; the sender may send its own again */
    memcpy(mad, pkt->mad, sizeof mad);
    moving.mad = mad;
    moving.bytes = sizeof mad;
    if (wire_get(mad, SMP_DR_SLID) == LID_PERMISSIVE && wire_get(mad, SMP_DR_DLID) == LID_PERMISSIVE)
        moving.slid = LID_PERMISSIVE;
    return wire_get(mad, SMP_D) ? dr_homeward(from, &moving, mad) : dr_outward(from, &moving, mad);
}

enum mad_result mad_send(struct port *from, const struct mad_packet *pkt)
{
    if (wire_get(pkt->mad, MAD_CLASS) == CLASS_SMP_DR && pkt->qpn == 0)
        return send_directed(from, pkt);
    return send_by_lid(from, pkt);
}
