/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queries and changes of a fabric's state: look-ups, link rates, and the state machine of a link, whose two ends always
 * change together. port_notify reports every change to both planes.
 */
#include "simfab/engine/fabric/fabric.h"

#include <stdlib.h>
#include <string.h>

void port_notify(struct port *p, enum port_event ev)
{
    if (p->node->fabric->up)
        p->node->fabric->up->port_changed(p, ev);
}

void fabric_free(struct fabric *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        struct node *n = f->nodes[i];

        for (unsigned k = 0; n->ports && k <= n->num_ports; k++) {
            free(n->ports[k].sl2vl);
            free(n->ports[k].samples);
        }
        free(n->ports);
        free(n->lft);
        free(n->mft);
        free(n);
    }
    for (uint32_t i = 0; i < f->num_hosts; i++) {
        free(f->hosts[i]->cas);
        free(f->hosts[i]);
    }
    free(f->nodes);
    free(f->hosts);
    free(f);
}

struct host *fabric_host_by_name(struct fabric *f, const char *name)
{
    for (uint32_t i = 0; i < f->num_hosts; i++)
        if (!strcmp(f->hosts[i]->name, name))
            return f->hosts[i];
    return NULL;
}

struct node *fabric_node_by_name(struct fabric *f, const char *name_or_desc)
{
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (!strcmp(f->nodes[i]->name, name_or_desc) || !strcmp(f->nodes[i]->desc, name_or_desc))
            return f->nodes[i];
    return NULL;
}

uint32_t port_lanes(const struct port *p)
{
    switch (p->width_active) {
    case 16:
        return 2;
    case 2:
        return 4;
    case 4:
        return 8;
    case 8:
        return 12;
    default:
        return 1;
    }
}

uint32_t port_lanes_operating(const struct port *p)
{
    static const uint8_t lanes[] = {1, 1, 2, 4, 8, 15};

    return p->op_vls < sizeof lanes ? lanes[p->op_vls] : 15;
}

uint64_t port_rate_bps(const struct port *p)
{
    uint64_t lane = 0;

    /* data bits: 8b/10b up to QDR, 64b/66b from FDR */
    switch (p->ext_speed_active) {
    case 1:
        lane = 13636363636ull;
        break;
    case 2:
        lane = 25000000000ull;
        break;
    case 4:
        lane = 50000000000ull;
        break;
    case 8:
        lane = 100000000000ull;
        break;
    default:
        lane = p->speed_active == 4   ? (p->fdr10_active ? 10000000000ull : 8000000000ull)
               : p->speed_active == 2 ? 4000000000ull
                                      : 2000000000ull;
        break;
    }
    return port_lanes(p) * lane;
}

uint32_t mtu_bytes(uint8_t code)
{
    return code >= 1 && code <= 5 ? 128u << code : 256;
}

static void port_state_changed(struct port *p)
{
    p->changes++;
    p->node->fabric->generation++;
    port_notify(p, PORT_EV_STATE);
}

static bool set_state_field(struct port *p, enum port_state state)
{
    if (p->state == state)
        return false;
    if (state == PORT_DOWN && p->state >= PORT_INIT)
        p->count.link_downed++;
    p->state = (uint8_t)state;
    return true;
}

static uint8_t top_bit(uint8_t mask)
{
    while (mask & (mask - 1))
        mask &= (uint8_t)(mask - 1);
    return mask;
}

bool port_negotiate(struct port *p)
{
    struct port *q = p->peer;
    uint8_t width = p->width_enabled & q->width_enabled & (uint8_t) ~(p->width_denied | q->width_denied);
    uint8_t speed = p->speed_enabled & q->speed_enabled & (uint8_t) ~(p->speed_denied | q->speed_denied);
    uint8_t ext = p->ext_speed_enabled & q->ext_speed_enabled & (uint8_t) ~(p->ext_speed_denied | q->ext_speed_denied);

    if (!width || !speed)
        return false;
    /* 2X has the highest bit and the second lowest width */
    width = width & 14 ? top_bit(width & 14) : width & 16 ? 16 : 1;
    p->width_active = q->width_active = width;
    p->ext_speed_active = q->ext_speed_active = ext ? top_bit(ext) : 0;
    p->speed_active = q->speed_active = ext && (speed & 4) ? 4 : top_bit(speed);
    p->fdr10_active = q->fdr10_active = !p->ext_speed_active && p->speed_active == 4 && p->fdr10_enabled &&
                                        q->fdr10_enabled && !((p->speed_denied | q->speed_denied) & FABRIC_FDR10);
    return true;
}

static bool link_trainable(const struct port *p)
{
    return p->peer && p->cable_up && p->phys_state != PHYS_DISABLED && p->peer->phys_state != PHYS_DISABLED &&
           p->phys_state != PHYS_SLEEP && p->peer->phys_state != PHYS_SLEEP;
}

/* Both ends come up to Initialize, if cable and settings allow. */
static void link_train(struct port *p)
{
    struct port *q = p->peer;

    if (!link_trainable(p) || p->phys_state == PHYS_LINKUP || !port_negotiate(p))
        return;
    p->phys_state = q->phys_state = PHYS_LINKUP;
    set_state_field(p, PORT_INIT);
    set_state_field(q, PORT_INIT);
    port_state_changed(p);
    port_state_changed(q);
}

/* One end leaves LinkUp for phys; the other loses the signal and goes polling. */
static void link_drop(struct port *p, enum phys_state phys)
{
    struct port *q = p->peer;
    bool was_up = p->phys_state == PHYS_LINKUP;
    bool p_changed = p->phys_state != phys;

    p->phys_state = (uint8_t)phys;
    p_changed |= set_state_field(p, PORT_DOWN);
    if (q && was_up) {
        q->phys_state = PHYS_POLLING;
        set_state_field(q, PORT_DOWN);
    }
    if (p_changed)
        port_state_changed(p);
    if (q && was_up)
        port_state_changed(q);
}

void port_set_state(struct port *p, enum port_state state)
{
    if (state == PORT_NOP || p->state == state)
        return;
    if (state == PORT_DOWN) {
        link_drop(p, PHYS_POLLING);
        link_train(p);
        return;
    }
    set_state_field(p, state);
    port_state_changed(p);
}

void port_set_phys(struct port *p, enum phys_state phys)
{
    if (p->phys_state == phys)
        return;
    if (phys == PHYS_LINKUP || phys == PHYS_POLLING || phys == PHYS_TRAINING) {
        link_drop(p, PHYS_POLLING);
        link_train(p);
        return;
    }
    link_drop(p, phys);
}

void port_cable(struct port *p, bool up)
{
    if (!p->peer || p->cable_up == up)
        return;
    p->cable_up = p->peer->cable_up = up;
    if (up)
        link_train(p);
    else if (p->phys_state == PHYS_LINKUP)
        link_drop(p, PHYS_POLLING);
}

bool port_cable_settle(struct port *p)
{
    bool up = p->peer && !p->unplugged && !p->peer->unplugged && !p->node->dead && !p->peer->node->dead;

    if (p->cable_up == up)
        return false;
    port_cable(p, up);
    return true;
}

void port_retrain(struct port *p)
{
    if (p->phys_state != PHYS_LINKUP && (!p->peer || p->peer->phys_state != PHYS_POLLING))
        return;
    if (p->phys_state == PHYS_LINKUP)
        link_drop(p, PHYS_POLLING);
    link_train(p);
}

void node_describe(struct node *n, const char *text, size_t bytes)
{
    memset(n->said_desc, 0, sizeof n->said_desc);
    memcpy(n->said_desc, text, bytes < sizeof n->said_desc ? bytes : sizeof n->said_desc - 1);
    n->fabric->generation++;
    for (uint32_t k = 1; k <= n->num_ports; k++)
        port_notify(&n->ports[k], PORT_EV_NODE_DESC);
}

/* ---- power ---------------------------------------------------------------------------------------------------------
 */

/* No LID, everything on VL 0, arbitration even, the default partition. */
void port_power_on(struct port *p)
{
    unsigned inputs = p->node->kind == NODE_SWITCH ? p->node->num_ports + 1 : 1;
    unsigned vls = p->vl_cap == 5 ? 15 : 1u << (p->vl_cap - 1);

    p->lid = p->sm_lid = 0;
    p->lmc = p->sm_sl = 0;
    p->down_default = PHYS_POLLING;
    p->mtu_neighbor = p->mtu_cap;
    p->op_vls = p->vl_cap;
    p->vl_high_limit = 0;
    memset(p->vlarb_high, 0, sizeof p->vlarb_high);
    memset(p->vlarb_low, 0, sizeof p->vlarb_low);
    for (unsigned i = 0; i < vls && i < p->vlarb_low_cap; i++)
        p->vlarb_low[i] = (struct vlarb_entry){.vl = (uint8_t)i, .weight = 64};
    memset(p->sl2vl, 0, inputs * sizeof *p->sl2vl);
    p->gid_prefix = 0xfe80000000000000ull;
    memset(p->guids + 1, 0, sizeof p->guids - sizeof *p->guids);
    memset(p->pkeys, 0, sizeof p->pkeys);
    p->pkeys[0] = 0xffff;
    p->mkey = 0;
    p->mkey_lease = 0;
    p->mkey_protect = 0;
    p->mkey_violations = p->pkey_violations = p->qkey_violations = 0;
    p->local_phys_errors = p->overrun_errors = 8;
    p->hoq_life = 20;
    p->vl_stall = 0;
    p->subnet_timeout = 18;
    p->resp_time = 16;
    p->partition_enforce = 0;
    p->physical_errors = 0;
    p->width_enabled = p->width_supported;
    p->speed_enabled = p->speed_supported;
    p->ext_speed_enabled = p->ext_speed_supported;
    p->count = (struct port_count){0};
    memset(p->vl, 0, sizeof p->vl);
    p->changes++;
}

void node_power_on(struct node *n)
{
    for (uint32_t k = 0; k <= n->num_ports; k++)
        port_power_on(&n->ports[k]);
    n->fabric->generation++;
    if (n->kind != NODE_SWITCH)
        return;
    n->ports[0].state = n->enhanced_port0 ? PORT_INIT : PORT_ACTIVE;
    n->ports[0].phys_state = PHYS_LINKUP;
    n->lft_top = 0;
    memset(n->lft, FABRIC_NO_PORT, FABRIC_LIDS);
    memset(n->mft, 0, (size_t)n->mft_cap * 16 * sizeof *n->mft);
    n->life_time = 20; /* for ever */
    n->default_mcast_primary = n->default_mcast_not_primary = FABRIC_NO_PORT;
    n->state_change = false;
}
