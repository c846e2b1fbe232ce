/* SPDX-License-Identifier: BSD-3-Clause */
/* Capabilities of ports, by the model: see port_caps.h. */
#include "simfab/engine/fabric/port_caps.h"

#include <fnmatch.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fabric/netlist.h"

static uint8_t masks_up_to(uint8_t top)
{
    return (uint8_t)(top | (top - 1));
}

/* The widths a port of this width also runs at: a 4X port is 1X or 4X. */
static uint8_t widths_up_to(uint8_t width)
{
    return width == 16 ? 1 | 16 : masks_up_to(width);
}

static void set_width(struct port *p, uint8_t width)
{
    p->width_supported = p->width_enabled = widths_up_to(width);
    p->width_active = width;
}

static void set_speed(struct port *p, uint8_t speed, uint8_t ext, bool fdr10)
{
    p->fdr10_supported = p->fdr10_enabled = p->fdr10_active = fdr10;
    p->speed_supported = p->speed_enabled = masks_up_to(speed);
    p->speed_active = speed;
    p->ext_speed_supported = p->ext_speed_enabled = ext ? masks_up_to(ext) : 0;
    p->ext_speed_active = ext;
    p->cap_mask = ext ? p->cap_mask | CAP_EXT_SPEEDS : p->cap_mask & ~CAP_EXT_SPEEDS;
}

void port_caps_set_rate(struct port *p, const struct link_rate *said, const struct model *m)
{
    set_width(p, said->width ? said->width : m->width);
    if (said->speed)
        set_speed(p, said->speed, said->ext_speed, said->fdr10);
    else
        set_speed(p, m->speed, m->ext_speed, m->fdr10);
}

/* Out of reset all lanes of the low table weigh the same: it has room for them. */
static void set_lanes(struct port *p, uint8_t vl_cap, uint8_t vlarb_cap)
{
    unsigned vls = vl_cap == 5 ? 15 : 1u << (vl_cap - 1);

    p->vl_cap = p->op_vls = vl_cap;
    p->vlarb_high_cap = vlarb_cap;
    p->vlarb_low_cap = vlarb_cap > vls ? vlarb_cap : (uint8_t)vls;
    memset(p->vlarb_low, 0, sizeof p->vlarb_low);
    for (unsigned i = 0; i < vls; i++)
        p->vlarb_low[i] = (struct vlarb_entry){.vl = (uint8_t)i, .weight = 64};
}

void port_caps_init(struct port *p, const struct model *m)
{
    p->mtu_cap = p->mtu_neighbor = m->mtu;
    p->vl_buffer_bytes = m->vl_buffer_bytes;
    set_lanes(p, m->vl_cap, (uint8_t)m->vlarb_cap);
}

static void change(struct port *p, const struct model_port *want)
{
    if (want->width)
        set_width(p, want->width);
    if (want->speed)
        set_speed(p, want->speed, want->ext_speed, want->fdr10);
    if (want->mtu)
        p->mtu_cap = p->mtu_neighbor = want->mtu;
    if (want->vl_buffer_bytes)
        p->vl_buffer_bytes = want->vl_buffer_bytes;
    if (want->vl_cap || want->vlarb_cap)
        set_lanes(p, want->vl_cap ? want->vl_cap : p->vl_cap,
                  want->vlarb_cap ? (uint8_t)want->vlarb_cap : p->vlarb_high_cap);
    if ((want->width || want->speed) && p->peer)
        port_negotiate(p);
}

static bool matches(const struct node *n, const char *pattern)
{
    return !strcmp(n->name, pattern) || !strcmp(n->desc, pattern) || !fnmatch(pattern, n->name, 0) ||
           !fnmatch(pattern, n->desc, 0);
}

static int apply_item(struct fabric *f, const struct model_port *want, struct parse_error *err)
{
    unsigned found = 0;

    for (uint32_t i = 0; i < f->num_nodes; i++) {
        struct node *n = f->nodes[i];

        if (!matches(n, want->node))
            continue;
        found++;
        if (want->port > n->num_ports)
            return model_error(f->model, &want->at, err, "ports: port %u of \"%s\": it has %u", want->port, n->desc,
                               n->num_ports);
        for (unsigned k = want->port ? want->port : 1; k <= (want->port ? want->port : n->num_ports); k++)
            change(&n->ports[k], want);
    }
    if (!found)
        return model_error(f->model, &want->at, err, "ports: no node of the topology is \"%s\"", want->node);
    return 0;
}

int port_caps_apply(struct fabric *f, struct parse_error *err)
{
    for (uint32_t i = 0; i < f->model->num_ports; i++)
        if (apply_item(f, &f->model->ports[i], err))
            return -1;
    return 0;
}
