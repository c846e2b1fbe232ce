/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The adapter: serves in turn the queue pairs with data to send, reads memory over the I/O bus shared by both
 * directions, and hands packets to the link; incoming packets cross the bus into memory.
 *
 * Queue pairs wait in a list per virtual lane. The port's own arbitration tables choose the lane, so the
 * administrator's settings decide already where packets are made, not only where they leave. Per lane, at most six full
 * packets (more on links so fast that six would not cover the memory round trip), or PIPE_PACKETS short packets, are on
 * their way to the wire: the rest of the work stays where it can still be arbitrated. For the same reason the send
 * engine does not continue before the bus has taken its packet.
 *
 * Incoming packets are taken in the order of arrival, whatever their lane, and leave the receive buffer when in memory:
 * a slow engine or bus holds back the credits of the sending lanes. A packet waits there only for earlier packets in
 * the buffers of its port.
 */
#include "simfab/engine/hca/hca.h"

#include <stdlib.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/bus.h"
#include "simfab/engine/hca/mcast_group.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/qp_cache.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/engine/wire/rx_buffer.h"
#include "simfab/engine/wire/trace_log.h"
#include "simfab/engine/wire/vlarb.h"

#define PIPE_BYTES   5u /* of full packets: the sixth may begin when fewer are on their way */
#define PIPE_PACKETS 64u

static void tx_run(void *obj, uint64_t arg);
static void hca_take_in(struct port *port, struct packet *p);

/* ---- set-up ---------------------------------------------------------------------------------------------------- */

static void make_hca(struct sim *s, struct node *n)
{
    struct hca *h = xcalloc(1, sizeof *h);

    h->sim = s;
    h->node = n;
    h->slow_milli = 1000;
    qp_cache_init(&h->contexts_held, s->model->qp_cache_entries);
    h->next_qpn = HCA_FIRST_QPN;
    h->mr_hint = 1;
    h->ports = xcalloc(n->num_ports + 1, sizeof *h->ports);
    for (uint32_t i = 1; i <= n->num_ports; i++) {
        struct hca_port *hp = &h->ports[i];

        hp->hca = h;
        hp->port = &n->ports[i];
        evtimer_init(&hp->tx, tx_run, hp);
        hp->tx.quiet = true; /* waiting queue pairs are counted */
        for (unsigned vl = 0; vl < FABRIC_VLS; vl++)
            hp->ready[vl].last = &hp->ready[vl].first;
    }
    n->hca = h;
}

/* The adapters of a host share its memory, and so many in turn a bus. */
static void join_bus(struct hca *h, struct hca *first_on_bus, struct hca *first_of_host)
{
    const struct model *m = h->sim->model;

    h->memory = &first_of_host->own_memory;
    h->bus = &first_on_bus->own_bus;
    if (h == first_of_host)
        h->own_memory.bps = m->memory_bps;
    if (h == first_on_bus)
        bus_init(h->bus, &h->sim->q, m->bus_bps, m->bus_overhead_bytes, h->memory);
    dma_init(&h->reader, h->bus, m->dma_read_bps);
    dma_init(&h->writer, h->bus, m->dma_write_bps);
}

void hcas_init(struct sim *s)
{
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++)
        if (s->fabric->nodes[i]->kind == NODE_CA)
            make_hca(s, s->fabric->nodes[i]);
    for (uint32_t i = 0; i < s->fabric->num_hosts; i++) {
        struct node **cas = s->fabric->hosts[i]->cas;

        for (uint32_t k = 0; k < s->fabric->hosts[i]->num_cas; k++)
            join_bus(cas[k]->hca, cas[k - k % s->model->hcas_per_bus]->hca, cas[0]->hca);
    }
}

void hcas_fini(struct sim *s)
{
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++) {
        struct hca *h = s->fabric->nodes[i]->hca;

        if (!h)
            continue;
        for (struct qp *qp = h->free_qps, *next; qp; qp = next) {
            next = qp->next_free;
            free(qp);
        }
        dma_fini(&h->reader);
        dma_fini(&h->writer);
        free(h->ports);
        free(h->qp_table);
        free(h->mr_table);
        free(h);
        s->fabric->nodes[i]->hca = NULL;
    }
}

struct qp *hca_find_qp(struct hca *h, uint32_t qpn)
{
    uint32_t i = qpn - HCA_FIRST_QPN;

    return qpn >= HCA_FIRST_QPN && i < h->qp_table_size ? h->qp_table[i] : NULL;
}

bool hca_owns_lid(const struct port *p, uint16_t lid)
{
    return p->lid && lid >= p->lid && lid < p->lid + (1u << p->lmc);
}

/* ---- queue pair contexts --------------------------------------------------------------------------------------- */

/* Work on the queue pair: the time until its context is there. */
static uint64_t context_ps(struct qp *qp)
{
    struct hca *h = qp->hca;

    return qp_cache_touch(&h->contexts_held, &qp->context) ? 0 : h->sim->model->qp_cache_miss_ps;
}

/* ---- out ------------------------------------------------------------------------------------------------------- */

void hca_qp_ready(struct qp *qp)
{
    struct hca_port *hp = qp->port;
    int vl = qp->ops->lane(qp);

    if (qp->in_ready || vl < 0)
        return;
    qp->in_ready = true;
    hp->hca->sim->ready_qps += qp->type != QPT_FLOW;
    qp->next_ready = NULL;
    *hp->ready[vl].last = qp;
    hp->ready[vl].last = &qp->next_ready;
    hp->ready_mask |= 1u << vl;
    evtimer_set_earlier(&hp->hca->sim->q, &hp->tx, max_u64(sim_now(hp->hca->sim), hp->tx_busy_ps));
}

static void unlink_first(struct hca_port *hp, unsigned vl)
{
    struct ready_list *r = &hp->ready[vl];
    struct qp *qp = r->first;

    r->first = qp->next_ready;
    if (!r->first) {
        r->last = &r->first;
        hp->ready_mask &= ~(1u << vl);
    }
    qp->in_ready = false;
    hp->hca->sim->ready_qps -= qp->type != QPT_FLOW;
}

void hca_qp_forget(struct qp *qp)
{
    struct hca_port *hp = qp->port;

    qp_cache_forget(&qp->hca->contexts_held, &qp->context);
    if (!qp->in_ready)
        return;
    for (unsigned vl = 0; vl < FABRIC_VLS; vl++)
        for (struct qp **q = &hp->ready[vl].first; *q; q = &(*q)->next_ready)
            if (*q == qp) {
                *q = qp->next_ready;
                if (!*q)
                    hp->ready[vl].last = q;
                if (!hp->ready[vl].first)
                    hp->ready_mask &= ~(1u << vl);
                qp->in_ready = false;
                hp->hca->sim->ready_qps -= qp->type != QPT_FLOW;
                return;
            }
}

/* A packet that never leaves the adapter, to one of its own LIDs. */
static void loop_back(void *obj, uint64_t arg)
{
    hca_take_in(((struct hca_port *)obj)->port, (struct packet *)(uintptr_t)arg);
}

static void to_wire(void *obj, uint64_t arg)
{
    struct hca_port *hp = obj;
    struct packet *p = (struct packet *)(uintptr_t)arg, *own = NULL;
    struct qp *reader = p->op == PKT_READ_RESPONSE ? hca_find_qp(hp->hca, p->src_qpn) : NULL;

    if (p->flags & PKT_MULTICAST)
        own = mcast_own_copy(hp, p);
    if (!p->dlid) { /* no lane for its service level */
        hp->port->count.xmit_discards++;
        trace_drop(hp->hca->sim, hp->port, p, "no lane for its service level");
        hca_lane_drained(hp->port, p->vl, p->wire_bytes);
        packet_free(p);
    } else if (hca_owns_lid(hp->port, p->dlid)) {
        hca_lane_drained(hp->port, p->vl, p->wire_bytes);
        loop_back(hp, arg);
    } else if (hp->port->out) {
        link_enqueue(hp->port->out, p);
    } else {
        hp->port->count.xmit_discards++;
        trace_drop(hp->hca->sim, hp->port, p, "no cable at the output");
        hca_lane_drained(hp->port, p->vl, p->wire_bytes);
        packet_free(p);
    }
    if (own)
        loop_back(hp, (uintptr_t)own);
    if (reader)
        reader->ops->response_left(reader);
}

/* Most bytes of a lane before a packet is begun: at least those that the link carries in twice the memory latency. */
static uint64_t pipe_room(const struct hca_port *hp)
{
    uint64_t latency = 2 * hp->hca->sim->model->dma_latency_ps;

    return max_u64(PIPE_BYTES * mtu_bytes(hp->port->mtu_neighbor),
                   latency * port_rate_bps(hp->port) / 8000000000000ull);
}

static uint32_t lanes_with_room(struct hca_port *hp)
{
    uint64_t room = pipe_room(hp);
    uint32_t mask = 0;

    for (uint32_t rest = hp->ready_mask; rest; rest &= rest - 1) {
        unsigned vl = (unsigned)__builtin_ctz(rest);

        if (hp->pipe[vl].packets < PIPE_PACKETS && hp->pipe[vl].bytes <= room)
            mask |= 1u << vl;
    }
    return mask;
}

static int choose_lane(struct hca_port *hp)
{
    uint32_t ready = lanes_with_room(hp), bytes[FABRIC_VLS];
    struct vlarb_config c;
    int picked;

    if (!ready)
        return -1;
    for (unsigned vl = 0; vl < FABRIC_VLS; vl++)
        bytes[vl] = hp->ready[vl].first ? hp->ready[vl].first->mtu : 0;
    c = link_arb_config(hp->port);
    picked = vlarb_pick(&hp->arb, &c, ready, bytes);
    /* a lane that is turned off: its packets will wait at the port */
    return picked >= 0 ? picked : __builtin_ctz(ready);
}

static void pipe_add(struct hca_port *hp, const struct packet *p)
{
    hp->pipe[p->vl].packets++;
    hp->pipe[p->vl].bytes += p->wire_bytes;
}

/* The bus has taken up the packet's data: it goes to the wire, and the engine to the next. */
static void data_read(void *obj, uint64_t arg, uint64_t start_ps, uint64_t done_ps)
{
    struct hca_port *hp = obj;
    struct packet *p = (struct packet *)(uintptr_t)arg;
    struct sim *s = hp->hca->sim;
    const struct model *m = s->model;
    uint64_t t = done_ps + m->tx_packet_ps + hp->tx_behind_ps, *last = &hp->last_wire_ps[p->vl];

    if (hp->tx_cost.memory && !hp->tx_cost.inlined)
        t += m->dma_latency_ps;
    *last = max_u64(*last, t); /* nothing overtakes in its lane */
    evq_push_quiet(&s->q, *last, to_wire, hp, arg);
    hp->tx_reading = false;
    hp->tx_busy_ps = max_u64(done_ps, start_ps + m->tx_packet_ps);
    if (hp->tx_cost.memory) /* reading may be slower than the bus: other engines use the rest */
        hp->tx_busy_ps = max_u64(hp->tx_busy_ps, hp->hca->reader.free_ps);
    hp->tx_busy_ps += hp->tx_owed_ps;
    hp->tx_owed_ps = 0;
    if (hp->ready_mask)
        evtimer_set_earlier(&s->q, &hp->tx, max_u64(sim_now(s), hp->tx_busy_ps));
}

static void request_fetched(void *obj, uint64_t arg)
{
    struct hca_port *hp = obj;

    dma_request(&hp->hca->reader, hp->tx_cost.memory, data_read, hp, arg);
}

/* A turn of a queue pair. */
static void tx_turn(struct hca_port *hp, struct qp *qp)
{
    struct sim *s = hp->hca->sim;
    const struct model *m = s->model;
    struct tx_cost cost = {0};
    bool more = false;
    struct packet *p = qp->ops->emit(qp, &cost, &more);
    uint64_t fetch = 0, busy;

    vlarb_rebook(&hp->arb, qp->mtu, p ? p->wire_bytes : 0); /* only now it is known how long the packet is */

    if (more)
        hca_qp_ready(qp);
    if (!p)
        return;
    if (cost.first)
        fetch = m->wqe_ps - (cost.inlined ? min_u64(m->wqe_inline_saves_ps, m->wqe_ps) : 0);
    busy = fetch - min_u64(fetch, m->wqe_overlap_ps);
    hp->tx_reading = true;
    hp->tx_cost = cost;
    hp->tx_behind_ps = fetch - busy;
    pipe_add(hp, p);
    busy += context_ps(qp);
    if (busy)
        evq_push_quiet(&s->q, sim_now(s) + busy, request_fetched, hp, (uintptr_t)p);
    else
        request_fetched(hp, (uintptr_t)p);
}

static void tx_run(void *obj, uint64_t arg)
{
    struct hca_port *hp = obj;
    struct sim *s = hp->hca->sim;
    int vl;

    if (hp->tx_reading)
        return;
    if (hp->tx_busy_ps <= sim_now(s) && (vl = choose_lane(hp)) >= 0) {
        struct qp *qp = hp->ready[vl].first;

        unlink_first(hp, (unsigned)vl);
        tx_turn(hp, qp);
    }
    if (!hp->tx_reading && lanes_with_room(hp))
        evtimer_set_earlier(&s->q, &hp->tx, max_u64(sim_now(s), hp->tx_busy_ps));
}

void hca_lane_drained(struct port *p, unsigned vl, uint32_t wire_bytes)
{
    struct hca_port *hp = &p->node->hca->ports[p->num];

    if (hp->pipe[vl].packets)
        hp->pipe[vl].packets--;
    hp->pipe[vl].bytes -= min_u64(hp->pipe[vl].bytes, wire_bytes);
    if (hp->ready_mask & 1u << vl)
        evtimer_set_earlier(&hp->hca->sim->q, &hp->tx, max_u64(sim_now(hp->hca->sim), hp->tx_busy_ps));
}

void hca_send_control(struct qp *qp, struct packet *p)
{
    pipe_add(qp->port, p);
    to_wire(qp->port, (uintptr_t)p);
}

/* ---- in -------------------------------------------------------------------------------------------------------- */

/* An acknowledge makes the send engine check its queue of requests, after the work in progress. */
static void note_acknowledge(struct hca_port *hp, const struct packet *p)
{
    uint64_t takes = hp->hca->sim->model->ack_engine_ps;

    if (p->op != PKT_ACK && p->op != PKT_NAK && p->op != PKT_RNR_NAK)
        return;
    if (hp->tx_reading)
        hp->tx_owed_ps += takes;
    else
        hp->tx_busy_ps = max_u64(sim_now(hp->hca->sim), hp->tx_busy_ps) + takes;
}

/* Does the queue pair take packets that come in by the port? */
static bool listens_at(const struct qp *qp, const struct hca_port *hp)
{
    return qp->port == hp || (qp->attr.path_mig_state == IBV_MIG_ARMED && qp->attr.alt_port_num == hp->port->num);
}

static void landed(void *obj, uint64_t arg)
{
    struct hca_port *hp = obj;
    struct packet *p = (struct packet *)(uintptr_t)arg;
    struct qp *qp = hca_find_qp(hp->hca, p->dest_qpn);

    link_release(p);
    if (p->background) {
        hp->hca->sim->packets_delivered++;
        hp->hca->sim->hca_up->flow_landed(hp->hca->sim, p);
    } else if ((p->flags & PKT_MULTICAST) && mcast_deliver(hp, p)) {
        hp->hca->sim->packets_delivered++;
    } else if (qp && qp->type == p->transport && listens_at(qp, hp)) {
        hp->hca->sim->packets_delivered++;
        note_acknowledge(hp, p);
        qp->ops->received(qp, p);
    } else {
        hp->hca->sim->packets_dropped++;
        trace_drop(hp->hca->sim, hp->port, p, "no such queue pair");
    }
    packet_free(p);
}

/* The bytes of a packet for memory; an atomic's answer carries its value among the headers. */
static uint32_t memory_bytes(const struct packet *p)
{
    return p->op == PKT_ATOMIC_ACK ? sizeof p->swap : p->payload;
}

/* The bus has taken up the packet's data. arg is the packet. */
static void data_written(void *obj, uint64_t arg, uint64_t start_ps, uint64_t done_ps)
{
    struct hca_port *hp = obj;
    struct packet *p = (struct packet *)(uintptr_t)arg;
    uint64_t t = p->tail_ps; /* end of the receive engine's work */

    if (memory_bytes(p))
        t = max_u64(t, done_ps) + hp->hca->sim->model->dma_write_ps;
    /* nothing overtakes: a short packet waits for the data before it */
    hp->last_landed_ps = max_u64(t, hp->last_landed_ps);
    evq_push_quiet(&hp->hca->sim->q, hp->last_landed_ps, landed, hp, arg);
}

/* The engine knows where the packet goes: while it checks the rest the data is on its way. */
static void rx_begin(struct hca_port *hp, struct packet *p)
{
    uint32_t copies = p->flags & PKT_MULTICAST ? mcast_receivers(hp, p) : 1;

    dma_request(&hp->hca->writer, memory_bytes(p) * copies, data_written, hp, (uintptr_t)p);
}

static void rx_turn(void *obj, uint64_t arg)
{
    struct hca_port *hp = obj;

    hp->rx_waiting--;
    rx_begin(hp, (struct packet *)(uintptr_t)arg);
}

static void hca_take_in(struct port *port, struct packet *p)
{
    struct hca_port *hp = &port->node->hca->ports[port->num];
    struct sim *s = hp->hca->sim;
    struct qp *qp;
    uint64_t start;

    if (!hca_owns_lid(port, p->dlid) && !(p->flags & PKT_MULTICAST)) {
        port->count.rcv_errors++;
        port->count.rcv_malformed++; /* not an address of this adapter */
        s->packets_dropped++;
        trace_drop(s, port, p, "not its LID");
        link_release(p);
        packet_free(p);
        return;
    }
    qp = hca_find_qp(hp->hca, p->dest_qpn);
    start = max_u64(sim_now(s), hp->rx_busy_ps) + (qp ? context_ps(qp) : 0);
    hp->rx_busy_ps = p->tail_ps = start + s->model->rx_packet_ps * hp->hca->slow_milli / 1000;
    if (start > sim_now(s) || hp->rx_waiting) {
        hp->rx_waiting++;
        evq_push_quiet(&s->q, start, rx_turn, hp, (uintptr_t)p);
    } else {
        rx_begin(hp, p);
    }
}

void hca_packet_arrived(struct link_dir *l, struct packet *p)
{
    hca_take_in(l->to, p);
}

void hca_slow(struct hca *h, uint32_t factor_milli)
{
    h->slow_milli = factor_milli;
    bus_slow(h->bus, factor_milli, port_rate_bps(&h->node->ports[1]));
}

void hca_port_changed(struct port *p)
{
    struct hca_port *hp = &p->node->hca->ports[p->num];

    if (hp->ready_mask)
        evtimer_set_earlier(&hp->hca->sim->q, &hp->tx, max_u64(sim_now(hp->hca->sim), hp->tx_busy_ps));
}
