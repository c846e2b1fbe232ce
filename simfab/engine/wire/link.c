/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a cable: queues, arbitration, serialisation, credits. */
#include "simfab/engine/wire/link.h"

#include <stdlib.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/wire/credit.h"
#include "simfab/engine/wire/fc.h"
#include "simfab/engine/wire/lane.h"
#include "simfab/engine/wire/lane_life.h"
#include "simfab/engine/wire/link_error.h"
#include "simfab/engine/wire/look.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/engine/wire/rx_buffer.h"
#include "simfab/engine/wire/trace_log.h"
#include "simfab/engine/wire/vlarb.h"

#define TICK_BYTES 4 /* PortXmitWait counts ticks: the time of one unit of PortXmitData */

static bool carries_data(const struct link_dir *l)
{
    return l->from->state == PORT_ACTIVE && l->to->state == PORT_ACTIVE && l->from->cable_up;
}

int link_lane(const struct port *out, uint8_t in, uint8_t sl)
{
    uint8_t vl = out->sl2vl ? out->sl2vl[in][sl & 15] : 0;

    return vl < port_lanes_operating(out) ? vl : -1; /* also 15: "discard" */
}

static uint32_t entries(uint8_t cap)
{
    return cap < FABRIC_VLARB_MAX ? cap : FABRIC_VLARB_MAX;
}

/* With a single lane there is nothing to arbitrate, whatever the tables say. */
static struct vlarb_config arb_config_of(const struct port *p)
{
    struct vlarb_config c = {.high_limit = p->vl_high_limit};

    if (port_lanes_operating(p) > 1) {
        c.high = vlarb_table_of(p->vlarb_high, entries(p->vlarb_high_cap));
        c.low = vlarb_table_of(p->vlarb_low, entries(p->vlarb_low_cap));
    }
    return c;
}

struct vlarb_config link_arb_config(const struct port *p)
{
    if (!p->out)
        return arb_config_of(p);
    link_refresh(p->out);
    return p->out->arb_config;
}

void link_reload(struct link_dir *l)
{
    l->rate_bps = port_rate_bps(l->from);
    l->last_bytes = 0;
    l->last_ps = 0;
    l->fc_ps = fc_travel_ps(l);
    l->mtu = mtu_bytes(l->from->mtu_neighbor);
    l->arb_config = arb_config_of(l->from);
    l->arb = (struct vlarb_state){0};
    l->changes_seen = l->from->changes;
}

static void try_send(struct link_dir *l);

/* The time of packets in a lane may be over. */
static void lane_life_due(void *obj, uint64_t arg)
{
    struct vl_queue *q = obj;

    lane_life_look(q);
    try_send(q->link);
}

static void init_lanes(struct link_dir *l)
{
    for (unsigned vl = 0; vl < FABRIC_VLS; vl++) {
        struct vl_queue *q = &l->vl[vl];

        q->link = l;
        q->turn_last = &q->turn;
        credit_init(&q->credit, l->to->vl_buffer_bytes);
        lane_life_init(q, lane_life_due);
        l->rx[vl].last = &l->rx[vl].first;
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

/* A router takes packets and forwards none. */
static void end_at_router(struct link_dir *l, struct packet *p)
{
    l->sim->packets_dropped++;
    trace_drop(l->sim, l->to, p, "routers forward nothing");
    link_release(p);
    packet_free(p);
}

static const struct link_end *end_of(const struct sim *s, const struct port *p, const struct link_end *switches)
{
    static const struct link_end router = {.packet_arrived = end_at_router};

    return p->node->kind == NODE_SWITCH ? switches : p->node->kind == NODE_CA ? s->adapter_end : &router;
}

static void make_dir(struct sim *s, struct port *p, const struct link_end *switches)
{
    struct link_dir *l = xcalloc(1, sizeof *l);

    l->sim = s;
    l->from = p;
    l->to = p->peer;
    l->near = end_of(s, l->from, switches);
    l->far = end_of(s, l->to, switches);
    l->look = try_send;
    l->loss = s->model->loss;
    l->random = seed_of(s, p);
    init_lanes(l);
    link_refresh(l);
    p->out = l;
}

void links_init(struct sim *s, const struct link_end *switches)
{
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++)
        for (uint32_t n = 1; n <= s->fabric->nodes[i]->num_ports; n++)
            if (s->fabric->nodes[i]->ports[n].peer)
                make_dir(s, &s->fabric->nodes[i]->ports[n], switches);
}

static void drop_all(struct link_dir *l)
{
    for (unsigned vl = 0; vl < FABRIC_VLS; vl++)
        while (l->vl[vl].packets)
            link_drop(l, lane_pop(&l->vl[vl]), DISCARD_INACTIVE);
}

static void free_dir(struct link_dir *l)
{
    for (unsigned vl = 0; l && vl < FABRIC_VLS; vl++) {
        free(l->vl[vl].in);
        free(l->vl[vl].fc.update);
    }
    free(l);
}

void links_fini(struct sim *s)
{
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++)
        for (uint32_t n = 1; n <= s->fabric->nodes[i]->num_ports; n++) {
            free_dir(s->fabric->nodes[i]->ports[n].out);
            s->fabric->nodes[i]->ports[n].out = NULL;
        }
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
    p->count.xmit_data_sl[pkt->sl & 15] += (pkt->wire_bytes + 3) / 4;
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
    p->count.rcv_data_sl[pkt->sl & 15] += (pkt->wire_bytes + 3) / 4;
    if (pkt->flags & PKT_MULTICAST)
        p->count.multicast_rcv++;
    else
        p->count.unicast_rcv++;
    p->vl[pkt->vl].rcv_data += pkt->wire_bytes;
    p->vl[pkt->vl].rcv_pkts++;
}

void link_lose(struct link_dir *l, const uint32_t nth[LINK_LOSE_MAX])
{
    l->lost = 0;
    for (unsigned i = 0; i < LINK_LOSE_MAX; i++)
        l->lose[i] = nth[i] ? l->crossed + nth[i] : 0;
}

static bool to_be_lost(struct link_dir *l)
{
    l->crossed++;
    if (l->lost == LINK_LOSE_MAX || l->lose[l->lost] != l->crossed)
        return false;
    l->lost++;
    return true;
}

/* True if the packet leaves the cable intact. If not, the receiver's counters count the error. */
static bool comes_through(struct link_dir *l)
{
    if (!carries_data(l) || to_be_lost(l) || (l->loss > 0 && draw(l) < l->loss)) {
        l->to->count.symbol_errors++; /* not even its beginning was seen */
        return false;
    }
    if (l->corrupt > 0 && draw(l) < l->corrupt) {
        link_bad_packet(l);
        return false;
    }
    if (l->overrun > 0 && draw(l) < l->overrun) {
        link_no_room(l);
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
        trace_drop(s, l->to, p, carries_data(l) ? "lost, spoilt or without room" : "the link went down");
        if (carries_data(l))
            fc_lost(l, p->held_vl, p->wire_bytes);
        else /* a link that comes up begins with all of its credits */
            fc_freed(l, p->held_vl, p->wire_bytes);
        packet_free(p);
        return;
    }
    count_received(l->to, p);
    l->far->packet_arrived(l, p);
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

/* Let the packet go on to the other end: its head at once, its tail at end. */
static void put_on_wire(struct link_dir *l, struct packet *p, uint64_t end)
{
    struct sim *s = l->sim;
    const struct model *m = s->model;
    uint64_t arrival;

    if (p->hold)
        evq_push_quiet(&s->q, end, mcast_copy_left, p->hold, 0);
    else if (p->held)
        evq_push_quiet(&s->q, end, link_release_at, p->held, (uint64_t)p->held_vl << 32 | p->wire_bytes);
    p->hold = NULL;
    p->held = l;
    p->held_vl = p->vl;
    p->tail_ps = arrival = end + m->propagation_ps;
    if (l->to->node->kind == NODE_SWITCH)
        arrival = (m->cut_through ? sim_now(s) + m->propagation_ps : arrival) + m->switch_delay_ps;
    evq_push_quiet(&s->q, arrival, link_arrive, l, (uintptr_t)p);
}

/* The wire was idle though packets waited, up to now. */
static void end_wait(struct link_dir *l)
{
    uint64_t tick = transfer_ps(TICK_BYTES, l->rate_bps);

    if (!l->wait_since_ps)
        return;
    l->wait_rest_ps += sim_now(l->sim) - l->wait_since_ps;
    l->from->count.xmit_wait += l->wait_rest_ps / tick;
    l->wait_rest_ps %= tick;
    l->wait_since_ps = 0;
}

/* Put the first packet of the lane on the wire. */
static void transmit_packet(struct link_dir *l, unsigned vl)
{
    struct vl_queue *q = &l->vl[vl];
    struct packet *p = lane_pop(q);
    uint64_t end = sim_now(l->sim) + link_serialise_ps(l, p->wire_bytes);

    end_wait(l);
    credit_sent(&q->credit, p->wire_bytes);
    count_sent(l->from, p);
    lane_life_sent(q);
    /* cut through: the tail cannot leave before it has come (a link may have become faster since) */
    end = max_u64(end, p->tail_ps);
    l->busy_until_ps = end;
    trace_packet(l, p, sim_now(l->sim), end);
    trace_lane(l, vl);
    put_on_wire(l, p, end);
    if (l->near->lane_drained)
        l->near->lane_drained(l->from, vl, p->wire_bytes);
    else if (q->packets)
        lane_life_watch(q);
}

/* The lanes that may send; marks the lanes that wait for credits. */
static uint32_t ready_lanes(struct link_dir *l, uint32_t bytes[FABRIC_VLS])
{
    uint32_t ready = 0;
    uint64_t now = sim_now(l->sim);

    for (uint32_t rest = l->occupied; rest; rest &= rest - 1) {
        unsigned vl = (unsigned)__builtin_ctz(rest);
        struct vl_queue *q = &l->vl[vl];

        bytes[vl] = q->turn->first->wire_bytes;
        fc_take(q, now);
        if (credit_may_send(&q->credit, bytes[vl])) {
            ready |= 1u << vl;
            lane_end_wait(q);
        } else if (!q->wait_since_ps) {
            q->wait_since_ps = now ? now : 1;
        }
    }
    return ready;
}

/* No lane may send: checks again at the next update of credits. Later updates find the waiting mark. */
static void wait_for_credits(struct link_dir *l)
{
    uint64_t now = sim_now(l->sim);

    if (!l->wait_since_ps)
        l->wait_since_ps = now ? now : 1;
    for (uint32_t rest = l->occupied; rest; rest &= rest - 1) {
        uint64_t t = fc_next(&l->vl[__builtin_ctz(rest)]);

        if (t)
            link_look_at(l, t);
    }
}

static void try_send(struct link_dir *l)
{
    uint32_t bytes[FABRIC_VLS], ready;
    int vl;

    if (l->busy_until_ps > sim_now(l->sim)) {
        if (l->occupied)
            link_look_at(l, l->busy_until_ps);
        return;
    }
    if (!carries_data(l))
        drop_all(l);
    if (!l->occupied) {
        end_wait(l);
        return;
    }
    link_refresh(l);
    ready = ready_lanes(l, bytes);
    vl = ready ? vlarb_pick(&l->arb, &l->arb_config, ready, bytes) : -1;
    if (vl < 0) {
        wait_for_credits(l);
        return;
    }
    transmit_packet(l, (unsigned)vl);
    if (l->occupied)
        link_look_at(l, l->busy_until_ps);
}

void link_enqueue(struct link_dir *l, struct packet *p)
{
    struct vl_queue *q = &l->vl[p->vl];

    if (!carries_data(l)) {
        link_drop(l, p, DISCARD_INACTIVE);
        return;
    }
    link_refresh(l);
    if (p->payload > l->mtu) {
        link_drop(l, p, DISCARD_MTU);
        return;
    }
    if (!lane_life_takes(q)) {
        link_drop(l, p, DISCARD_HOQ);
        return;
    }
    lane_push(q, p);
    try_send(l);
    trace_lane(l, (unsigned)(q - l->vl));
    if (q->packets)
        lane_life_watch(q);
}

void link_port_changed(struct port *p)
{
    struct link_dir *dirs[2] = {p->out, p->peer ? p->peer->out : NULL};

    for (int i = 0; i < 2; i++) {
        struct link_dir *l = dirs[i];

        if (!l)
            continue;
        l->rate_bps = 0;
        link_refresh(l);
        if (!carries_data(l))
            drop_all(l);
        for (unsigned vl = 0; vl < FABRIC_VLS; vl++)
            if (l->vl[vl].packets)
                lane_life_watch_anew(&l->vl[vl]);
        if (l->occupied)
            link_look_at(l, max_u64(sim_now(l->sim), l->busy_until_ps));
    }
}
