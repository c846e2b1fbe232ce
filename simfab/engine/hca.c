/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The adapter: it takes turns among the queue pairs that have something to send, reads memory over the I/O bus that
 * both directions share, and hands packets to the link; what comes in crosses the bus into memory.
 *
 * Queue pairs wait in a list per virtual lane; the lane is chosen by the port's own arbitration tables, so that what
 * the administrator wrote decides already where packets are made, not only where they leave. At most PIPE_PACKETS of
 * a lane are on their way to the wire: the rest of the work stays where it can still be arbitrated.
 */
#include "simfab/engine/hca.h"

#include <stdlib.h>

#include "simfab/engine/proc.h"
#include "simfab/engine/util.h"

#define PIPE_PACKETS 6u

static void tx_run(void *obj, uint64_t arg);

/* ---- set-up ---------------------------------------------------------------------------------------------------- */

static void make_hca(struct sim *s, struct node *n)
{
    struct hca *h = xcalloc(1, sizeof *h);

    h->sim = s;
    h->node = n;
    h->next_qpn = HCA_FIRST_QPN;
    h->mr_hint = 1;
    h->ports = xcalloc(n->num_ports + 1, sizeof *h->ports);
    for (uint32_t i = 1; i <= n->num_ports; i++) {
        struct hca_port *hp = &h->ports[i];

        hp->hca = h;
        hp->port = &n->ports[i];
        evtimer_init(&hp->tx, tx_run, hp);
        hp->tx.quiet = true; /* the queue pairs that wait for it are counted */
        for (unsigned vl = 0; vl < FABRIC_VLS; vl++)
            hp->ready[vl].last = &hp->ready[vl].first;
    }
    n->hca = h;
}

void hcas_init(struct sim *s)
{
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++)
        if (s->fabric->nodes[i]->kind == NODE_CA)
            make_hca(s, s->fabric->nodes[i]);
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

/* ---- the I/O bus ----------------------------------------------------------------------------------------------- */

/* Book the bus for a packet's bytes, not before t. Returns when they are across. */
static uint64_t bus_book(struct hca *h, uint64_t t, uint32_t bytes)
{
    const struct model *m = h->sim->model;

    if (!bytes || !m->bus_bps)
        return t;
    h->bus_busy_ps = max_u64(t, h->bus_busy_ps) + transfer_ps(bytes + m->bus_overhead_bytes, m->bus_bps);
    return h->bus_busy_ps;
}

/* ---- out ------------------------------------------------------------------------------------------------------- */

void hca_qp_ready(struct qp *qp)
{
    struct hca_port *hp = qp->port;
    int vl = qp_lane(qp);

    if (qp->in_ready || vl < 0)
        return;
    qp->in_ready = true;
    hp->hca->sim->ready_qps++;
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
    hp->hca->sim->ready_qps--;
}

void hca_qp_forget(struct qp *qp)
{
    struct hca_port *hp = qp->port;

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
                hp->hca->sim->ready_qps--;
                return;
            }
}

/* A packet that never leaves the adapter: to one of its own LIDs. */
static void loop_back(void *obj, uint64_t arg)
{
    hca_packet_arrived(((struct hca_port *)obj)->port, (struct packet *)(uintptr_t)arg);
}

static void to_wire(void *obj, uint64_t arg)
{
    struct hca_port *hp = obj;
    struct packet *p = (struct packet *)(uintptr_t)arg;

    if (!p->dlid) { /* no lane for its service level */
        hp->port->count.xmit_discards++;
        hca_lane_drained(hp->port, p->vl);
        packet_free(p);
    } else if (hca_owns_lid(hp->port, p->dlid)) {
        hca_lane_drained(hp->port, p->vl);
        loop_back(hp, arg);
    } else if (hp->port->out) {
        link_enqueue(hp->port->out, p);
    } else {
        hp->port->count.xmit_discards++;
        hca_lane_drained(hp->port, p->vl);
        packet_free(p);
    }
}

static uint32_t lanes_with_room(struct hca_port *hp)
{
    uint32_t mask = 0;

    for (uint32_t rest = hp->ready_mask; rest; rest &= rest - 1) {
        unsigned vl = (unsigned)__builtin_ctz(rest);

        if (hp->in_pipe[vl] < PIPE_PACKETS)
            mask |= 1u << vl;
    }
    return mask;
}

static int choose_lane(struct hca_port *hp)
{
    uint32_t ready = lanes_with_room(hp), bytes[FABRIC_VLS];
    struct vlarb_config c;

    if (!(ready & (ready - 1)))
        return ready ? __builtin_ctz(ready) : -1;
    for (unsigned vl = 0; vl < FABRIC_VLS; vl++)
        bytes[vl] = hp->ready[vl].first ? hp->ready[vl].first->mtu : 0;
    c = link_arb_config(hp->port);
    return vlarb_pick(&hp->arb, &c, ready, bytes);
}

/* One turn of one queue pair. */
static void tx_turn(struct hca_port *hp, struct qp *qp)
{
    struct sim *s = hp->hca->sim;
    const struct model *m = s->model;
    struct tx_cost cost = {0};
    bool more = false;
    struct packet *p = qp_emit(qp, &cost, &more);
    uint64_t t = sim_now(s), done;

    if (more)
        hca_qp_ready(qp);
    if (!p)
        return;
    if (cost.first)
        t += m->wqe_ps - (cost.inlined ? min_u64(m->wqe_inline_saves_ps, m->wqe_ps) : 0);
    done = bus_book(hp->hca, t, cost.memory);
    /* reading may be slower than the bus: what it leaves of the bus is for the other direction */
    hp->tx_busy_ps = max_u64(done, t + max_u64(m->tx_packet_ps, transfer_ps(cost.memory, m->dma_read_bps)));
    hp->in_pipe[p->vl]++;
    evq_push_quiet(&s->q, done + m->tx_packet_ps + (cost.memory && !cost.inlined ? m->dma_latency_ps : 0), to_wire, hp,
                   (uintptr_t)p);
}

static void tx_run(void *obj, uint64_t arg)
{
    struct hca_port *hp = obj;
    struct sim *s = hp->hca->sim;
    int vl;

    if (hp->tx_busy_ps <= sim_now(s) && (vl = choose_lane(hp)) >= 0) {
        struct qp *qp = hp->ready[vl].first;

        unlink_first(hp, (unsigned)vl);
        tx_turn(hp, qp);
    }
    if (lanes_with_room(hp))
        evtimer_set_earlier(&s->q, &hp->tx, max_u64(sim_now(s), hp->tx_busy_ps));
}

void hca_lane_drained(struct port *p, unsigned vl)
{
    struct hca_port *hp = &p->node->hca->ports[p->num];

    if (hp->in_pipe[vl])
        hp->in_pipe[vl]--;
    if (hp->ready_mask & 1u << vl)
        evtimer_set_earlier(&hp->hca->sim->q, &hp->tx, max_u64(sim_now(hp->hca->sim), hp->tx_busy_ps));
}

void hca_send_control(struct qp *qp, struct packet *p)
{
    qp->port->in_pipe[p->vl]++;
    to_wire(qp->port, (uintptr_t)p);
}

/* ---- in -------------------------------------------------------------------------------------------------------- */

static void landed(void *obj, uint64_t arg)
{
    struct hca_port *hp = obj;
    struct packet *p = (struct packet *)(uintptr_t)arg;
    struct qp *qp = hca_find_qp(hp->hca, p->dest_qpn);

    link_release(p);
    if (qp && qp->type == p->transport && qp->port == hp) {
        hp->hca->sim->packets_delivered++;
        qp_received(qp, p);
    } else {
        hp->hca->sim->packets_dropped++;
    }
    packet_free(p);
}

void hca_packet_arrived(struct port *port, struct packet *p)
{
    struct hca_port *hp = &port->node->hca->ports[port->num];
    struct sim *s = hp->hca->sim;
    const struct model *m = s->model;
    uint64_t now = sim_now(s), t;

    if (!hca_owns_lid(port, p->dlid) && !(p->flags & PKT_MULTICAST)) {
        port->count.rcv_errors++;
        s->packets_dropped++;
        link_release(p);
        packet_free(p);
        return;
    }
    hp->rx_busy_ps = max_u64(now, hp->rx_busy_ps) + m->rx_packet_ps;
    t = hp->rx_busy_ps;
    if (p->payload)
        t = max_u64(t, bus_book(hp->hca, now, p->payload)) + m->dma_write_ps;
    /* nothing overtakes: a short packet waits for the data before it */
    hp->last_landed_ps = max_u64(t, hp->last_landed_ps);
    evq_push_quiet(&s->q, hp->last_landed_ps, landed, hp, (uintptr_t)p);
}

void hca_port_changed(struct port *p)
{
    struct hca_port *hp = &p->node->hca->ports[p->num];

    if (hp->ready_mask)
        evtimer_set_earlier(&hp->hca->sim->q, &hp->tx, max_u64(sim_now(hp->hca->sim), hp->tx_busy_ps));
}
