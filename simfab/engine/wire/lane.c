/* SPDX-License-Identifier: BSD-3-Clause */
/* Output lanes: a queue for each input, in turn; and discarded packets. */
#include "simfab/engine/wire/lane.h"

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/engine/wire/rx_buffer.h"
#include "simfab/engine/wire/trace_log.h"

void link_count_discard(struct port *out, enum discard why)
{
    struct port_count *c = &out->count;

    c->xmit_discards++;
    switch (why) {
    case DISCARD_INACTIVE:
        c->discard_inactive++;
        break;
    case DISCARD_MTU:
        c->discard_mtu++;
        break;
    case DISCARD_LIFETIME:
        c->discard_sw_lifetime++;
        break;
    case DISCARD_HOQ:
        c->discard_sw_hoq++;
        break;
    case DISCARD_LANE:
        break;
    }
}

void link_drop(struct link_dir *l, struct packet *p, enum discard why)
{
    static const char *const reasons[] = {
        [DISCARD_INACTIVE] = "the link is not active",     [DISCARD_MTU] = "longer than the link's MTU",
        [DISCARD_LIFETIME] = "in the switch for too long", [DISCARD_HOQ] = "first of its lane for too long",
        [DISCARD_LANE] = "no lane for its service level",
    };

    link_count_discard(l->from, why);
    l->sim->packets_dropped++;
    trace_drop(l->sim, l->from, p, reasons[why]);
    trace_lane(l, p->vl);
    if (l->near->lane_drained)
        l->near->lane_drained(l->from, p->vl, p->wire_bytes);
    link_release(p);
    packet_free(p);
}

static void make_inputs(struct vl_queue *q)
{
    const struct node *n = q->link->from->node;
    uint32_t inputs = n->kind == NODE_SWITCH ? n->num_ports + 1 : 1;

    q->in = xcalloc(inputs, sizeof *q->in);
    for (uint32_t i = 0; i < inputs; i++)
        q->in[i].last = &q->in[i].first;
}

static void wait_for_turn(struct vl_queue *q, struct in_queue *in)
{
    in->next = NULL;
    *q->turn_last = in;
    q->turn_last = &in->next;
}

void lane_push(struct vl_queue *q, struct packet *p)
{
    struct in_queue *in;

    if (!q->in)
        make_inputs(q);
    in = &q->in[p->in_port];
    if (!q->packets++) {
        q->head_since_ps = sim_now(q->link->sim);
        q->link->occupied |= 1u << p->vl;
    }
    if (!in->first)
        wait_for_turn(q, in);
    p->next = NULL;
    *in->last = p;
    in->last = &p->next;
}

void lane_end_wait(struct vl_queue *q)
{
    struct link_dir *l = q->link;

    if (!q->wait_since_ps)
        return;
    trace_wait(l, (unsigned)(q - l->vl), q->wait_since_ps);
    l->from->vl[q - l->vl].xmit_wait_ps += sim_now(l->sim) - q->wait_since_ps;
    q->wait_since_ps = 0;
}

/* The first packet of a queue that is not in the order of turns now. */
static struct packet *take_first(struct vl_queue *q, struct in_queue *in)
{
    struct packet *p = in->first;

    in->first = p->next;
    if (in->first)
        wait_for_turn(q, in);
    else
        in->last = &in->first;
    if (!--q->packets) {
        q->link->occupied &= ~(1u << p->vl);
        evtimer_stop(&q->life);
        lane_end_wait(q);
    }
    return p;
}

struct packet *lane_pop(struct vl_queue *q)
{
    struct in_queue *in = q->turn;

    q->head_since_ps = sim_now(q->link->sim);
    q->turn = in->next;
    if (!q->turn)
        q->turn_last = &q->turn;
    return take_first(q, in);
}

struct packet *lane_pop_from(struct vl_queue *q, struct in_queue *in)
{
    struct in_queue **at = &q->turn;

    if (q->turn == in)
        return lane_pop(q);
    while (*at != in)
        at = &(*at)->next;
    *at = in->next;
    if (q->turn_last == &in->next)
        q->turn_last = at;
    return take_first(q, in);
}
