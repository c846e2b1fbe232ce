/* SPDX-License-Identifier: BSD-3-Clause */
/* Forwarding: by the table that the subnet manager wrote, from the receive buffer to an output's queue. */
#include "simfab/engine/keys.h"
#include "simfab/engine/link.h"
#include "simfab/engine/mcast.h"

static void drop(struct packet *p)
{
    p->held->sim->packets_dropped++;
    link_release(p);
    packet_free(p);
}

void switch_output(struct port *in, uint8_t out_num, struct packet *p)
{
    struct port *out = &in->node->ports[out_num];
    int vl = out->out ? link_lane(out, in->num, p->sl) : -1;

    if (!keys_leave(out, p)) {
        drop(p);
        return;
    }
    if (vl < 0) {
        out->count.xmit_discards++;
        drop(p);
        return;
    }
    p->in_port = in->num;
    p->vl = (uint8_t)vl;
    link_enqueue(out->out, p);
}

/* The packet came by port in and was looked at for the switch's delay: on to its output, or away with it. */
void switch_forward(struct port *in, struct packet *p)
{
    struct node *sw = in->node;
    uint8_t out_num = p->dlid < FABRIC_LIDS ? sw->lft[p->dlid] : FABRIC_NO_PORT;

    if (!keys_enter(in, p)) {
        drop(p);
        return;
    }
    if (mcast_lid(p->dlid)) {
        mcast_forward(in, p);
        return;
    }
    /* a port may send back where it came from: the specification allows it, and only a wrong table does it */
    if (out_num == FABRIC_NO_PORT || out_num == 0 || out_num > sw->num_ports || p->dlid > sw->lft_top) {
        in->count.rcv_switch_relay++;
        drop(p);
        return;
    }
    switch_output(in, out_num, p);
}
