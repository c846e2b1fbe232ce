/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a cable: queues, arbitration, serialisation, credits. */
#include "simfab/engine/link.h"

#include <stdlib.h>

#include "simfab/engine/hca.h"
#include "simfab/engine/mcast.h"
#include "simfab/engine/util.h"

#define RECOVERY_PS 2000000ull /* what recovering a link that had too many errors takes it */

static void link_kick(void *obj, uint64_t arg);

static bool carries_data(const struct link_dir *l)
{
    return l->from->state == PORT_ACTIVE && l->to->state == PORT_ACTIVE && l->from->cable_up;
}

static void refresh(struct link_dir *l)
{
    if (l->rate_bps && l->changes_seen == l->from->changes)
        return;
    l->rate_bps = port_rate_bps(l->from);
    l->changes_seen = l->from->changes;
}

static void reset_lanes(struct link_dir *l)
{
    for (unsigned vl = 0; vl < FABRIC_VLS; vl++) {
        struct vl_queue *q = &l->vl[vl];

        q->first = NULL;
        q->last = &q->first;
        q->packets = 0;
        q->wait_since_ps = 0;
        credit_init(&q->credit, l->to->vl_buffer_bytes);
    }
}

/* Neighbouring seeds and ports get generators that have nothing in common (splitmix64). */
static uint64_t seed_of(const struct sim *s, const struct port *p)
{
    uint64_t z = s->model->seed + (((uint64_t)p->node->index << 8 | p->num) + 1) * 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (z ^ z >> 31) | 1;
}

static void make_dir(struct sim *s, struct port *p)
{
    struct link_dir *l = xcalloc(1, sizeof *l);

    l->sim = s;
    l->from = p;
    l->to = p->peer;
    l->loss = s->model->loss;
    l->random = seed_of(s, p);
    reset_lanes(l);
    p->out = l;
}

void links_init(struct sim *s)
{
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++)
        for (uint32_t n = 1; n <= s->fabric->nodes[i]->num_ports; n++)
            if (s->fabric->nodes[i]->ports[n].peer)
                make_dir(s, &s->fabric->nodes[i]->ports[n]);
}

static void drop(struct link_dir *l, struct packet *p)
{
    l->from->count.xmit_discards++;
    l->sim->packets_dropped++;
    link_release(p);
    packet_free(p);
}

static void drop_all(struct link_dir *l)
{
    for (unsigned vl = 0; vl < FABRIC_VLS; vl++) {
        struct vl_queue *q = &l->vl[vl];
        struct packet *p;

        while ((p = q->first)) {
            q->first = p->next;
            q->packets--;
            if (l->from->node->hca)
                hca_lane_drained(l->from, vl, p->wire_bytes);
            drop(l, p);
        }
        q->last = &q->first;
        q->wait_since_ps = 0;
    }
    l->occupied = 0;
}

void links_fini(struct sim *s)
{
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++)
        for (uint32_t n = 1; n <= s->fabric->nodes[i]->num_ports; n++) {
            free(s->fabric->nodes[i]->ports[n].out);
            s->fabric->nodes[i]->ports[n].out = NULL;
        }
}

int link_lane(const struct port *out, uint8_t in, uint8_t sl)
{
    static const uint8_t lanes[] = {1, 1, 2, 4, 8, 15};
    uint8_t vl = out->sl2vl ? out->sl2vl[in][sl & 15] : 0;
    uint8_t usable = out->op_vls < sizeof lanes ? lanes[out->op_vls] : 15;

    return vl < usable ? vl : -1; /* also 15: "discard" */
}

struct vlarb_config link_arb_config(const struct port *p)
{
    struct vlarb_config c = {
        .high = {p->vlarb_high, p->vlarb_high_cap < FABRIC_VLARB_MAX ? p->vlarb_high_cap : FABRIC_VLARB_MAX},
        .low = {p->vlarb_low, p->vlarb_low_cap < FABRIC_VLARB_MAX ? p->vlarb_low_cap : FABRIC_VLARB_MAX},
        .high_limit = p->vl_high_limit,
    };

    return c;
}

/* xorshift*: small, good enough for losing packets, and the same on every machine. */
static double draw(struct link_dir *l)
{
    l->random ^= l->random >> 12;
    l->random ^= l->random << 25;
    l->random ^= l->random >> 27;
    return (double)((l->random * 0x2545f4914f6cdd1dull) >> 11) / (double)(1ull << 53);
}

static void count_sent(struct port *p, const struct packet *pkt)
{
    p->count.xmit_data += (pkt->wire_bytes + 3) / 4;
    p->count.xmit_pkts++;
    if (pkt->flags & PKT_MULTICAST)
        p->count.multicast_xmit++;
    else
        p->count.unicast_xmit++;
    p->vl[pkt->vl].xmit_data += pkt->wire_bytes;
    p->vl[pkt->vl].xmit_pkts++;
}

static void count_received(struct port *p, const struct packet *pkt)
{
    p->count.rcv_data += (pkt->wire_bytes + 3) / 4;
    p->count.rcv_pkts++;
    if (pkt->flags & PKT_MULTICAST)
        p->count.multicast_rcv++;
    else
        p->count.unicast_rcv++;
    p->vl[pkt->vl].rcv_data += pkt->wire_bytes;
    p->vl[pkt->vl].rcv_pkts++;
}

static void stall(struct link_dir *l, uint64_t until)
{
    l->busy_until_ps = max_u64(l->busy_until_ps, until);
}

/*
 * A packet's checksum was wrong. Ports forgive as many of these as good packets come between, and LocalPhyErrors more;
 * then they say so (trap 129) and have the link recover, which takes it a moment in both directions.
 */
static void bad_packet(struct link_dir *l)
{
    struct port *p = l->to;

    p->count.symbol_errors++;
    p->count.rcv_errors++;
    if (++p->physical_errors <= p->local_phys_errors)
        return;
    p->physical_errors = 0;
    p->count.local_integrity++;
    p->count.link_recovers++;
    l->from->count.link_recovers++;
    stall(l, sim_now(l->sim) + RECOVERY_PS);
    stall(p->out, sim_now(l->sim) + RECOVERY_PS);
    port_notify(p, PORT_EV_INTEGRITY);
}

/* Does the packet come out of the cable as it went in? The receiver's counters tell of it if not. */
static bool comes_through(struct link_dir *l)
{
    if (!carries_data(l) || (l->loss > 0 && draw(l) < l->loss)) {
        l->to->count.symbol_errors++; /* not even its beginning was seen */
        return false;
    }
    if (l->corrupt > 0 && draw(l) < l->corrupt) {
        bad_packet(l);
        return false;
    }
    if (l->to->physical_errors)
        l->to->physical_errors--;
    return true;
}

/* A packet has crossed the cable (HCA: wholly; switch: and was looked at). arg is the packet. */
static void link_arrive(void *obj, uint64_t arg)
{
    struct link_dir *l = obj;
    struct packet *p = (struct packet *)(uintptr_t)arg;
    struct sim *s = l->sim;

    if (!comes_through(l)) {
        s->packets_dropped++;
        link_release(p);
        packet_free(p);
        return;
    }
    count_received(l->to, p);
    if (l->to->node->kind == NODE_SWITCH) {
        p->tail_ps += s->model->switch_delay_ps;
        switch_forward(l->to, p);
    } else {
        hca_packet_arrived(l->to, p);
    }
}

static void queue_kick(struct link_dir *l, uint64_t t)
{
    if (l->kick_queued)
        return;
    l->kick_queued = true;
    evq_push_quiet(&l->sim->q, t, link_kick, l, 0);
}

/* Put the first packet of the lane on the wire. */
static void transmit(struct link_dir *l, unsigned vl)
{
    struct sim *s = l->sim;
    const struct model *m = s->model;
    struct vl_queue *q = &l->vl[vl];
    struct packet *p = q->first;
    uint64_t now = sim_now(s), ser = transfer_ps(p->wire_bytes, l->rate_bps), end = now + ser;

    q->first = p->next;
    if (!q->first) {
        q->last = &q->first;
        l->occupied &= ~(1u << vl);
    }
    q->packets--;
    credit_sent(&q->credit, p->wire_bytes);
    count_sent(l->from, p);

    /* cut through: the tail cannot leave before it has come */
    if (p->tail_ps > end)
        end = p->tail_ps;
    l->busy_until_ps = end;
    if (p->hold)
        evq_push_quiet(&s->q, end, mcast_copy_left, p->hold, 0);
    else if (p->held)
        evq_push_quiet(&s->q, end, link_release_at, p->held, (uint64_t)p->held_vl << 32 | p->wire_bytes);
    p->hold = NULL;
    p->held = l;
    p->held_vl = (uint8_t)vl;
    p->tail_ps = end + m->propagation_ps;
    if (l->to->node->kind == NODE_SWITCH)
        evq_push_quiet(&s->q, (m->cut_through ? now + m->propagation_ps : p->tail_ps) + m->switch_delay_ps, link_arrive,
                       l, (uintptr_t)p);
    else
        evq_push_quiet(&s->q, p->tail_ps, link_arrive, l, (uintptr_t)p);
    if (l->from->node->hca)
        hca_lane_drained(l->from, vl, p->wire_bytes);
}

/* Which lanes may send; notes the ones that wait for credits. */
static uint32_t ready_lanes(struct link_dir *l, uint32_t bytes[FABRIC_VLS])
{
    uint32_t ready = 0;
    uint64_t now = sim_now(l->sim);

    for (uint32_t rest = l->occupied; rest; rest &= rest - 1) {
        unsigned vl = (unsigned)__builtin_ctz(rest);
        struct vl_queue *q = &l->vl[vl];

        bytes[vl] = q->first->wire_bytes;
        if (credit_may_send(&q->credit, bytes[vl])) {
            ready |= 1u << vl;
            if (q->wait_since_ps) {
                uint64_t waited = now - q->wait_since_ps;

                l->from->vl[vl].xmit_wait_ps += waited;
                l->from->count.xmit_wait += waited / transfer_ps(4, l->rate_bps);
                q->wait_since_ps = 0;
            }
        } else if (!q->wait_since_ps) {
            q->wait_since_ps = now ? now : 1;
        }
    }
    return ready;
}

static void try_send(struct link_dir *l)
{
    uint32_t bytes[FABRIC_VLS], ready;
    uint64_t now = sim_now(l->sim);
    int vl;

    if (!l->occupied)
        return;
    if (l->busy_until_ps > now) {
        queue_kick(l, l->busy_until_ps);
        return;
    }
    if (!carries_data(l)) {
        drop_all(l);
        return;
    }
    refresh(l);
    ready = ready_lanes(l, bytes);
    if (ready & (ready - 1)) {
        struct vlarb_config c = link_arb_config(l->from);

        vl = vlarb_pick(&l->arb, &c, ready, bytes);
    } else {
        vl = ready ? __builtin_ctz(ready) : -1;
    }
    if (vl < 0)
        return; /* an update of credits kicks again */
    transmit(l, (unsigned)vl);
    if (l->occupied)
        queue_kick(l, l->busy_until_ps);
}

static void link_kick(void *obj, uint64_t arg)
{
    struct link_dir *l = obj;

    l->kick_queued = false;
    try_send(l);
}

void link_enqueue(struct link_dir *l, struct packet *p)
{
    struct vl_queue *q;

    if (!carries_data(l)) {
        if (l->from->node->hca)
            hca_lane_drained(l->from, p->vl, p->wire_bytes);
        drop(l, p);
        return;
    }
    q = &l->vl[p->vl];
    p->next = NULL;
    *q->last = p;
    q->last = &p->next;
    q->packets++;
    l->occupied |= 1u << p->vl;
    if (!l->kick_queued)
        try_send(l);
}

void link_release_at(void *link, uint64_t arg)
{
    struct link_dir *l = link;
    struct vl_queue *q = &l->vl[arg >> 32 & 15];

    credit_freed(&q->credit, (uint32_t)arg);
    credit_update(&q->credit);
    /* The update takes a moment to travel; that matters only to a sender that waits for it. */
    if (q->wait_since_ps)
        queue_kick(l, max_u64(sim_now(l->sim) + l->sim->model->propagation_ps, l->busy_until_ps));
}

void link_release(struct packet *p)
{
    if (p->hold)
        mcast_copy_left(p->hold, 0);
    else if (p->held)
        link_release_at(p->held, (uint64_t)p->held_vl << 32 | p->wire_bytes);
    p->hold = NULL;
    p->held = NULL;
}

void link_port_changed(struct port *p)
{
    struct link_dir *dirs[2] = {p->out, p->peer ? p->peer->out : NULL};

    for (int i = 0; i < 2; i++) {
        if (!dirs[i])
            continue;
        dirs[i]->rate_bps = 0;
        if (!carries_data(dirs[i]))
            drop_all(dirs[i]);
        else if (dirs[i]->occupied && !dirs[i]->kick_queued)
            queue_kick(dirs[i], sim_now(dirs[i]->sim));
    }
}
