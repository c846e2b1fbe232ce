/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Switches: forwarding by the subnet manager's table, from the receive buffer to an output's queue.
 *
 * The model's link.switch_queues decides which packets of a receive buffer the outputs see. "output": all packets; a
 * packet waiting for a busy output delays no other packet until the buffer of the lane is full. "lane": a queue for
 * each lane of a port, of which only the first packet is seen; while the first packet waits, all packets behind it wait
 * too.
 */
#include "simfab/engine/wire/switch.h"

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/wire/keys.h"
#include "simfab/engine/wire/lane.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/mcast.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/engine/wire/rx_buffer.h"
#include "simfab/engine/wire/trace_log.h"

static void drop_packet(const struct port *at, struct packet *p, const char *reason)
{
    p->held->sim->packets_dropped++;
    trace_drop(p->held->sim, at, p, reason);
    link_release(p);
    packet_free(p);
}

static void enqueue_later(void *obj, uint64_t arg)
{
    link_enqueue(obj, (struct packet *)(uintptr_t)arg);
}

/*
 * A faster output must not run out of a packet that comes in slowly: the output begins late enough for both to end
 * together.
 */
static void enqueue_output(struct link_dir *l, struct packet *p)
{
    uint64_t now = sim_now(l->sim), ser;

    link_refresh(l);
    ser = link_serialise_ps(l, p->wire_bytes);
    if (p->tail_ps > now + ser)
        evq_push_quiet(&l->sim->q, p->tail_ps - ser, enqueue_later, l, (uintptr_t)p);
    else
        link_enqueue(l, p);
}

/* On to an output port of the same switch, or away if its service level has no lane there. */
static void forward_to_port(struct port *in, uint8_t out_num, struct packet *p)
{
    struct port *out = &in->node->ports[out_num];
    int vl = out->out ? link_lane(out, in->num, p->sl) : -1;

    if (!keys_leave(out, p)) {
        drop_packet(out, p, "the output refuses its partition");
        return;
    }
    if (vl < 0) {
        link_count_discard(out, DISCARD_LANE);
        drop_packet(out, p, out->out ? "no lane for its service level" : "no cable at the output");
        return;
    }
    p->in_port = in->num;
    p->vl = (uint8_t)vl;
    enqueue_output(out->out, p);
}

/* Copy the packet to the ports that the tables say. */
static void forward_to_group(struct port *in, struct packet *p)
{
    uint8_t ports[FABRIC_PORTS_MAX];
    bool known;
    uint32_t n = mcast_outputs(in, p->dlid, ports, &known);

    if (!n) {
        in->count.rcv_switch_relay += !known;
        in->count.rcv_no_route += !known;
        drop_packet(in, p, "nobody of the group is here");
        return;
    }
    if (n > 1) {
        struct mcast_hold *hold = xcalloc(1, sizeof *hold);

        *hold = (struct mcast_hold){n, p->held, (uint64_t)p->held_vl << 32 | p->wire_bytes};
        p->hold = hold;
    }
    for (uint32_t i = 0; i < n; i++)
        forward_to_port(in, ports[i], i + 1 < n ? packet_copy(p) : p);
}

static void forward(struct port *in, struct packet *p)
{
    struct node *sw = in->node;
    uint8_t out_num = p->dlid < FABRIC_LIDS ? sw->lft[p->dlid] : FABRIC_NO_PORT;

    if (!keys_enter(in, p)) {
        drop_packet(in, p, "the input refuses its partition");
        return;
    }
    if (mcast_lid(p->dlid)) {
        forward_to_group(in, p);
        return;
    }
    /* a port may send back to the source: the specification allows this, and only a wrong table does so */
    if (out_num == FABRIC_NO_PORT || out_num == 0 || out_num > sw->num_ports || p->dlid > sw->lft_top) {
        in->count.rcv_switch_relay++;
        in->count.rcv_no_route++;
        drop_packet(in, p, "no entry in the forwarding table");
        return;
    }
    forward_to_port(in, out_num, p);
}

/* Shows the outputs the first packet of the buffer, and the next packets as long as packets are dropped at once. */
static void advance(struct link_dir *l, struct rx_lane *rx)
{
    if (rx->advancing)
        return;
    rx->advancing = true;
    while (rx->first && !rx->head_out) {
        struct packet *p = rx->first;

        rx->first = p->next;
        if (!rx->first)
            rx->last = &rx->first;
        rx->head_out = true;
        forward(l->to, p);
    }
    rx->advancing = false;
}

static void switch_arrive(struct link_dir *l, struct packet *p)
{
    struct rx_lane *rx = &l->rx[p->held_vl];

    p->tail_ps += l->sim->model->switch_delay_ps;
    p->arrived_ps = sim_now(l->sim) - l->sim->model->switch_delay_ps;
    if (l->sim->model->switch_queues == QUEUES_OUTPUT) {
        forward(l->to, p);
        return;
    }
    p->next = NULL;
    *rx->last = p;
    rx->last = &p->next;
    advance(l, rx);
}

/* The packet at the head of a receive buffer has left it. */
static void switch_head_left(struct link_dir *l, unsigned vl)
{
    struct rx_lane *rx = &l->rx[vl];

    rx->head_out = false;
    advance(l, rx);
}

void wire_init(struct sim *s)
{
    static const struct link_end whole = {.packet_arrived = switch_arrive};
    static const struct link_end heads = {.packet_arrived = switch_arrive, .place_left = switch_head_left};

    links_init(s, s->model->switch_queues == QUEUES_LANE ? &heads : &whole);
}
