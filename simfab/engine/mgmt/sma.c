/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subnet management agent of every node: Get and Set of the attributes of a node, its ports and its tables. A Set
 * is validated as a whole, then written into the state obeyed by the data plane. Attribute layouts: InfiniBand
 * Architecture Specification, volume 1, chapter 14.2.5; offsets are in bits.
 */
#include "simfab/engine/mgmt/sma.h"

#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/portinfo.h"
#include "simfab/engine/mgmt/timer.h"
#include "simfab/engine/mgmt/trap.h"

struct smp {
    struct port *at; /* the agent's port; port 0 of a switch */
    const struct port *ingress;
    struct node *node;
    uint8_t *mad, *data; /* the answer being made: starts as a copy of the request */
    uint16_t slid;       /* the requester's */
    uint32_t mod;
    bool set;
};

static uint64_t get(const struct smp *s, unsigned bit, unsigned width)
{
    return wire_get(s->data, bit, width);
}

static void put(struct smp *s, unsigned bit, unsigned width, uint64_t v)
{
    wire_put(s->data, bit, width, v);
}

static void tables_changed(struct port *p, enum port_event ev)
{
    p->changes++;
    p->node->fabric->generation++;
    port_notify(p, ev);
}

static bool is_switch(const struct smp *s)
{
    return s->node->kind == NODE_SWITCH;
}

/* ---- node --------------------------------------------------------------------------------------------------- */

static uint16_t node_description(struct smp *s)
{
    if (s->set)
        return STATUS_BAD_METHOD;
    memset(s->data, 0, SMP_DATA_BYTES);
    memcpy(s->data, s->node->said_desc, SMP_DATA_BYTES);
    return STATUS_OK;
}

static uint16_t node_info(struct smp *s)
{
    if (s->set)
        return STATUS_BAD_METHOD;
    memset(s->data, 0, SMP_DATA_BYTES);
    put(s, 0, 8, 1); /* base and class version */
    put(s, 8, 8, 1);
    put(s, 16, 8, s->node->kind);
    put(s, 24, 8, s->node->num_ports);
    put(s, 32, 64, s->node->sys_guid);
    put(s, 96, 64, s->node->node_guid);
    put(s, 160, 64, s->at->guid);
    put(s, 224, 16, FABRIC_PKEYS);
    put(s, 240, 16, s->node->device);
    put(s, 256, 32, s->node->revision);
    put(s, 288, 8, s->ingress->num);
    put(s, 296, 24, s->node->vendor);
    return STATUS_OK;
}

static uint16_t switch_info(struct smp *s)
{
    struct node *n = s->node;

    if (!is_switch(s))
        return STATUS_BAD_ATTR;
    if (s->set) {
        uint16_t top = (uint16_t)get(s, 48, 16);

        if (top > n->lft_cap)
            return STATUS_BAD_FIELD;
        n->lft_top = top;
        n->default_mcast_primary = (uint8_t)get(s, 72, 8);
        n->default_mcast_not_primary = (uint8_t)get(s, 80, 8);
        n->life_time = (uint8_t)get(s, 88, 5);
        if (get(s, 93, 1)) /* a 1 clears the bit */
            n->state_change = false;
        tables_changed(s->at, PORT_EV_TABLES);
    }
    memset(s->data, 0, SMP_DATA_BYTES);
    put(s, 0, 16, n->lft_cap);
    put(s, 32, 16, n->mft_cap);
    put(s, 48, 16, n->lft_top);
    put(s, 72, 8, n->default_mcast_primary);
    put(s, 80, 8, n->default_mcast_not_primary);
    put(s, 88, 5, n->life_time);
    put(s, 93, 1, n->state_change);
    put(s, 94, 2, 1); /* SLtoVLMappingTable of all ports in a packet */
    put(s, 112, 16, FABRIC_PKEYS);
    put(s, 128, 2, 3); /* enforces partitions both ways */
    put(s, 132, 1, n->enhanced_port0);
    return STATUS_OK;
}

static uint16_t guid_info(struct smp *s)
{
    struct port *p = s->at;
    bool changed = false;

    if (s->mod >= FABRIC_GUIDS / 8)
        return STATUS_BAD_FIELD;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t *guid = &p->guids[s->mod * 8 + i];

        if (s->set && (s->mod || i) && *guid != get(s, i * 64, 64)) {
            *guid = get(s, i * 64, 64);
            changed = true;
        }
        put(s, i * 64, 64, *guid);
    }
    if (changed)
        tables_changed(p, PORT_EV_GID);
    return STATUS_OK;
}

/* ---- tables of ports ------------------------------------------------------------------------------------------ */

static uint16_t pkey_table(struct smp *s)
{
    unsigned block = s->mod & 0xffff, num = is_switch(s) ? s->mod >> 16 : s->at->num;
    struct port *p;

    if (num > s->node->num_ports || block >= FABRIC_PKEYS / 32)
        return STATUS_BAD_FIELD;
    p = &s->node->ports[num];
    for (unsigned i = 0; i < 32; i++) {
        if (s->set)
            p->pkeys[block * 32 + i] = (uint16_t)get(s, i * 16, 16);
        put(s, i * 16, 16, p->pkeys[block * 32 + i]);
    }
    if (s->set)
        tables_changed(p, PORT_EV_PKEY);
    return STATUS_OK;
}

/*
 * The modifier names the ports of a switch: input in bits 8 to 15, output in bits 0 to 7. Bit 17 of a Set means every
 * input port, bit 16 every output port (OptimizedSLtoVLMappingProgramming).
 */
#define ALL_INPUTS  (1u << 17)
#define ALL_OUTPUTS (1u << 16)

static void set_sl_to_vl(struct smp *s, struct port *out, unsigned first_in, unsigned last_in)
{
    for (unsigned in = first_in; in <= last_in; in++)
        for (unsigned sl = 0; sl < FABRIC_SLS; sl++)
            out->sl2vl[in][sl] = (uint8_t)get(s, sl * 4, 4);
    tables_changed(out, PORT_EV_TABLES);
}

static uint16_t sl_to_vl(struct smp *s)
{
    unsigned in = s->mod >> 8 & 0xff, out = s->mod & 0xff, last = s->node->num_ports;
    bool all_in = s->mod & ALL_INPUTS, all_out = s->mod & ALL_OUTPUTS;
    struct port *p = s->at;

    if (!is_switch(s)) {
        in = 0;
        if (s->set)
            set_sl_to_vl(s, p, 0, 0);
    } else {
        if (in > last || out > last || (!s->set && (all_in || all_out)))
            return STATUS_BAD_FIELD;
        p = &s->node->ports[out];
        for (unsigned o = all_out ? 0 : out; s->set && o <= (all_out ? last : out); o++)
            set_sl_to_vl(s, &s->node->ports[o], all_in ? 0 : in, all_in ? last : in);
    }
    memset(s->data, 0, SMP_DATA_BYTES);
    for (unsigned sl = 0; sl < FABRIC_SLS; sl++)
        put(s, sl * 4, 4, p->sl2vl[in][sl]);
    return STATUS_OK;
}

static uint16_t vl_arbitration(struct smp *s)
{
    unsigned block = s->mod >> 16, num = s->mod & 0xffff, first, cap;
    struct vlarb_entry *table;
    struct port *p = s->at;

    if (is_switch(s)) {
        if (num > s->node->num_ports)
            return STATUS_BAD_FIELD;
        p = &s->node->ports[num];
    }
    if (block < 1 || block > 4)
        return STATUS_BAD_FIELD;
    table = block <= 2 ? p->vlarb_low : p->vlarb_high;
    cap = block <= 2 ? p->vlarb_low_cap : p->vlarb_high_cap;
    first = (block - 1) % 2 * 32;
    if (first >= cap)
        return STATUS_BAD_FIELD;
    for (unsigned i = 0; i < 32; i++) {
        struct vlarb_entry *e = &table[first + i];

        if (first + i >= cap) {
            put(s, i * 16, 16, 0);
            continue;
        }
        if (s->set)
            *e = (struct vlarb_entry){(uint8_t)get(s, i * 16 + 4, 4), (uint8_t)get(s, i * 16 + 8, 8)};
        put(s, i * 16, 16, (uint64_t)e->vl << 8 | e->weight);
    }
    if (s->set)
        tables_changed(p, PORT_EV_TABLES);
    return STATUS_OK;
}

/* ---- forwarding tables ------------------------------------------------------------------------------------------ */

static uint16_t linear_forwarding(struct smp *s)
{
    unsigned first = s->mod * 64;
    uint8_t *block;

    if (!is_switch(s))
        return STATUS_BAD_ATTR;
    if (s->mod >= FABRIC_LIDS / 64)
        return STATUS_BAD_FIELD;
    block = s->node->lft + first;
    if (s->set && memcmp(block, s->data, 64)) {
        memcpy(block, s->data, 64);
        tables_changed(s->at, PORT_EV_TABLES);
    }
    memcpy(s->data, block, 64);
    return STATUS_OK;
}

static uint16_t multicast_forwarding(struct smp *s)
{
    unsigned block = s->mod & 0x1ff, position = s->mod >> 28;

    if (!is_switch(s))
        return STATUS_BAD_ATTR;
    if ((block + 1) * 32 > s->node->mft_cap)
        return STATUS_BAD_FIELD;
    for (unsigned i = 0; i < 32; i++) {
        uint16_t *mask = &s->node->mft[(block * 32 + i) * 16 + position];

        if (s->set)
            *mask = (uint16_t)get(s, i * 16, 16);
        put(s, i * 16, 16, *mask);
    }
    if (s->set)
        tables_changed(s->at, PORT_EV_TABLES);
    return STATUS_OK;
}

/*
 * A vendor's attribute, used by managers and diagnostics with ports of this vendor: FDR10, a speed unknown to the
 * specification and reported as QDR in PortInfo. Each field is a bit mask; the position is that of its lowest bit.
 */
#define EPI_CHANGE    24, 8 /* fields changed by a Set; the lowest: LinkSpeedEnabled */
#define EPI_SUPPORTED 56, 8
#define EPI_ENABLED   88, 8
#define EPI_ACTIVE    120, 8

static uint16_t vendor_port_info(struct smp *s)
{
    unsigned num = is_switch(s) || (s->mod & 0xff) ? s->mod & 0xff : s->at->num;
    bool enable = get(s, EPI_ENABLED) & 1;
    struct port *p;

    if (num > s->node->num_ports || (!is_switch(s) && num != s->at->num))
        return STATUS_BAD_FIELD;
    p = &s->node->ports[num];
    if (s->set && (get(s, EPI_CHANGE) & 1)) {
        if (enable && !p->fdr10_supported)
            return STATUS_BAD_FIELD;
        p->fdr10_enabled = enable; /* when the link trains next, as LinkSpeedEnabled */
    }
    memset(s->data, 0, SMP_DATA_BYTES);
    put(s, EPI_SUPPORTED, p->fdr10_supported);
    put(s, EPI_ENABLED, p->fdr10_enabled);
    put(s, EPI_ACTIVE, p->fdr10_active);
    return STATUS_OK;
}

/* ---- the agent -------------------------------------------------------------------------------------------------- */

static uint16_t port_info(struct smp *s)
{
    unsigned num = s->mod & 0xff;
    struct port *p;

    if (s->mod & 0x7fffff00) /* bit 31: the manager knows extended speeds */
        return STATUS_BAD_FIELD;
    if (!is_switch(s) && num == 0)
        num = s->at->num;
    if (num > s->node->num_ports || (s->set && !is_switch(s) && num != s->at->num))
        return STATUS_BAD_FIELD;
    p = &s->node->ports[num];
    if (s->set)
        return portinfo_set(p, s->ingress->num, s->data);
    portinfo_get(p, s->ingress->num, s->data);
    /* from protection level 1 on, only requests with the key are shown the key */
    if (s->at->mkey_protect && wire_get(s->mad, SMP_MKEY) != s->at->mkey)
        put(s, 0, 64, 0);
    return STATUS_OK;
}

static uint16_t answer(struct smp *s)
{
    switch (wire_get(s->mad, MAD_ATTR)) {
    case 0x10:
        return node_description(s);
    case 0x11:
        return node_info(s);
    case 0x12:
        return switch_info(s);
    case 0x14:
        return guid_info(s);
    case 0x15:
        return port_info(s);
    case 0x16:
        return pkey_table(s);
    case 0x17:
        return sl_to_vl(s);
    case 0x18:
        return vl_arbitration(s);
    case 0x19:
        return linear_forwarding(s);
    case 0x1b:
        return multicast_forwarding(s);
    case 0xff90:
        return vendor_port_info(s);
    default:
        return STATUS_BAD_ATTR;
    }
}

void sma_lease_expired(struct timer *t)
{
    struct mad_port *mp = (struct mad_port *)((char *)t - offsetof(struct mad_port, lease));

    mp->port->mkey_protect = 0;
    tables_changed(mp->port, PORT_EV_TABLES);
}

/*
 * The M_Key guards Sets always, and Gets from protection level 2. A request without the key is dropped, counted,
 * reported to the manager, and starts the lease. At the end of the lease the guard is lifted, because the manager with
 * the key may be gone.
 */
static bool mkey_allows(struct smp *s)
{
    struct port *p = s->at;
    struct mad_port *mp = mad_port_of(p);

    if (!p->mkey || wire_get(s->mad, SMP_MKEY) == p->mkey) {
        if (mp && p->mkey)
            timer_cancel(&mp->lease);
        return true;
    }
    if (!s->set && p->mkey_protect < 2)
        return true;
    if (p->mkey_violations < UINT16_MAX)
        p->mkey_violations++;
    if (mp) {
        trap_bad_mkey(p, s->mad, s->slid);
        if (p->mkey_lease && !mp->lease.next)
            timer_set(mp->mad, &mp->lease, p->mkey_lease * 1000u);
    }
    return false;
}

void sma_settle(struct mad *m)
{
    struct port *p = m->going_down;

    m->going_down = NULL;
    if (p)
        port_set_phys(p, m->going_to);
}

bool sma_answer(struct port *at, const struct port *ingress, uint16_t slid, uint8_t *resp)
{
    struct smp s = {.at = at, .ingress = ingress, .slid = slid, .node = at->node, .mad = resp, .data = resp + SMP_DATA};
    uint64_t method = wire_get(resp, MAD_METHOD);
    uint16_t status;

    s.mod = (uint32_t)wire_get(resp, MAD_MODIFIER);
    s.set = method == METHOD_SET;
    if (method != METHOD_GET && method != METHOD_SET)
        return false;
    if (wire_get(resp, MAD_BASE_VERSION) != 1 || wire_get(resp, MAD_CLASS_VERSION) != 1) {
        status = STATUS_BAD_VERSION;
    } else {
        if (!mkey_allows(&s))
            return false;
        status = answer(&s);
    }
    wire_put(resp, MAD_METHOD, METHOD_GET_RESP);
    wire_put(resp, MAD_STATUS, status); /* the router sets the direction bit */
    return true;
}
