/* SPDX-License-Identifier: BSD-3-Clause */
/* A subnet without a manager: see subnet.h. */
#include "simfab/engine/mgmt/subnet.h"

#include <stdlib.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"

/* Hops from every node to the target node, UINT32_MAX where there is no path. Adapters do not forward. */
static void measure(const struct fabric *f, const struct node *target, uint32_t *hops)
{
    struct node **queue = xcalloc(f->num_nodes, sizeof *queue);
    uint32_t first = 0, last = 0;

    for (uint32_t i = 0; i < f->num_nodes; i++)
        hops[i] = UINT32_MAX;
    hops[target->index] = 0;
    queue[last++] = (struct node *)target;
    while (first < last) {
        struct node *n = queue[first++];

        if (n != target && n->kind != NODE_SWITCH)
            continue;
        for (uint32_t i = 1; i <= n->num_ports; i++) {
            struct node *next = n->ports[i].peer ? n->ports[i].peer->node : NULL;

            if (next && hops[next->index] == UINT32_MAX) {
                hops[next->index] = hops[n->index] + 1;
                queue[last++] = next;
            }
        }
    }
    free(queue);
}

/* The k-th of a switch's ports that lead nearer to the port's node (of the port itself, in the last step). */
static uint8_t choose_port(const struct node *sw, const struct port *target, const uint32_t *hops, uint32_t k)
{
    uint8_t candidates[FABRIC_PORTS_MAX];
    uint32_t n = 0;

    for (uint32_t i = 1; i <= sw->num_ports; i++) {
        const struct port *peer = sw->ports[i].peer;

        if (!peer || hops[peer->node->index] >= hops[sw->index])
            continue;
        if (peer->node == target->node && peer != target)
            continue; /* another port of the same adapter */
        candidates[n++] = (uint8_t)i;
    }
    return n ? candidates[k % n] : FABRIC_NO_PORT;
}

static void route_to(struct fabric *f, const struct port *target, uint32_t *hops)
{
    const struct node *origin = target->node;

    if (target->num) { /* distances to this port, not to others of its adapter */
        if (!target->peer)
            return;
        origin = target->peer->node;
    }
    measure(f, origin, hops);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        struct node *sw = f->nodes[i];

        if (sw->kind != NODE_SWITCH || hops[i] == UINT32_MAX)
            continue;
        for (uint32_t k = 0; k < 1u << target->lmc; k++) {
            uint8_t out = sw == origin ? target->num ? target->peer->num : 0 : choose_port(sw, target, hops, k);

            sw->lft[target->lid + k] = out;
            if (sw->lft_top < target->lid + k)
                sw->lft_top = (uint16_t)(target->lid + k);
        }
    }
}

static void configure_port(struct port *p)
{
    static const uint8_t lanes[] = {1, 1, 2, 4, 8, 15};
    uint32_t inputs = p->node->kind == NODE_SWITCH ? p->node->num_ports + 1 : 1;
    uint8_t usable;

    p->op_vls = p->peer && p->peer->vl_cap < p->vl_cap ? p->peer->vl_cap : p->vl_cap;
    p->mtu_neighbor = p->peer && p->peer->mtu_cap < p->mtu_cap ? p->peer->mtu_cap : p->mtu_cap;
    usable = lanes[p->op_vls <= 5 ? p->op_vls : 5];
    for (uint32_t in = 0; in < inputs; in++)
        for (unsigned sl = 0; sl < FABRIC_SLS; sl++)
            p->sl2vl[in][sl] = (uint8_t)(sl % usable);
    p->changes++;
}

void subnet_configure(struct fabric *f, uint8_t lmc)
{
    uint32_t *hops = xcalloc(f->num_nodes, sizeof *hops), step = 1u << lmc, lid = step;

    for (uint32_t i = 0; i < f->num_nodes; i++) {
        struct node *n = f->nodes[i];
        bool sw = n->kind == NODE_SWITCH;

        for (uint32_t k = 1; k <= n->num_ports; k++)
            configure_port(&n->ports[k]);
        for (uint32_t k = sw ? 0 : 1; k <= (sw ? 0 : n->num_ports); k++, lid += step) {
            n->ports[k].lid = (uint16_t)lid;
            n->ports[k].lmc = sw ? 0 : lmc;
        }
    }
    for (uint32_t i = 0; i < f->num_nodes; i++)
        for (uint32_t k = 0; k <= f->nodes[i]->num_ports; k++)
            if (f->nodes[i]->ports[k].lid)
                route_to(f, &f->nodes[i]->ports[k], hops);
    for (int state = PORT_ARMED; state <= PORT_ACTIVE; state++)
        for (uint32_t i = 0; i < f->num_nodes; i++)
            for (uint32_t k = 0; k <= f->nodes[i]->num_ports; k++)
                if (f->nodes[i]->ports[k].state == state - 1)
                    port_set_state(&f->nodes[i]->ports[k], (enum port_state)state);
    f->generation++;
    free(hops);
}
