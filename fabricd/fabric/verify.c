/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and compares the tables of every live port: see verify.h. */
#include "fabricd/fabric/verify.h"
#include "fabricd/fabric/cables.h"
#include "fabricd/fabric/ports.h"
#include "fabricd/fabric/rate.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 65536

struct walk {
    struct look look; /* from one port of this host after the other */
    const struct verify_options *options;
    struct node *nodes;
    size_t num_nodes, cap_nodes;
    size_t first_node; /* of this subnet */
    unsigned ca_ports;
    struct cable *cables;
    size_t num_cables, cap_cables;
    uint32_t *hash; /* node number + 1, by guid and, for an adapter, port */
    size_t hash_size;
};

/* The value of the first port, then the least of all. */
static void note_least(bool first, unsigned *least_so_far, unsigned v)
{
    if (first || v < *least_so_far)
        *least_so_far = v;
}

/* first: of the ports of c. */
static void add_caps(struct fabric_caps *c, bool first, const struct port *p)
{
    static const uint8_t vls_of[16] = {0, 1, 2, 4, 8, 15};
    note_least(first, &c->vls, vls_of[p->vl_cap]);
    note_least(first, &c->low_cap, p->low_cap < TABLE_ENTRIES_MAX ? p->low_cap : TABLE_ENTRIES_MAX);
    note_least(first, &c->high_cap, p->high_cap < TABLE_ENTRIES_MAX ? p->high_cap : TABLE_ENTRIES_MAX);
    unsigned rate = rate_mbps(p->width, p->speed, p->speed_ext);
    if (rate && (!c->rate_mbps || rate < c->rate_mbps)) /* an unknown rate is ignored */
        c->rate_mbps = rate;
    unsigned mtu = p->mtu_code >= 1 && p->mtu_code <= 5 ? 128u << p->mtu_code : 0;
    if (mtu > c->mtu)
        c->mtu = mtu; /* the largest packets decide how coarse the weights are */
}

static void note_caps(struct walk *w, const struct node *n, const struct port *p)
{
    struct verify_result *r = w->look.r;
    if ((!p->low_cap || !p->high_cap) && !r->without_table[0])
        snprintf(r->without_table, sizeof(r->without_table), "%s port %u", n->desc, p->num);
    add_caps(&r->caps, !r->ports++, p);
    if (w->look.plane)
        add_caps(&w->look.plane->caps, !w->look.plane->ports++, p);
    if (w->options->count)
        w->options->count(w->options->count_arg, r->ports);
}

static void note_most(struct walk *w, size_t member, unsigned v)
{
    struct fabric_caps *of[] = {&w->look.r->caps, w->look.plane ? &w->look.plane->caps : NULL};
    for (unsigned i = 0; i < 2 && of[i]; i++) {
        unsigned *most = (unsigned *)((char *)of[i] + member);
        *most = v > *most ? v : *most;
    }
}

/* A switch is one node, by whichever port; the ports of an adapter may lie in different places. */
static uint8_t key_port(const struct node *n)
{
    return n->type == TYPE_SWITCH ? 0 : n->entry;
}

/* The slot of a known node, or the empty slot for it. */
static uint32_t *find_slot(struct walk *w, const struct node *key)
{
    size_t i = (size_t)((key->guid ^ key_port(key)) * 0x9e3779b97f4a7c15ull >> 20) & (w->hash_size - 1);
    for (;; i = (i + 1) & (w->hash_size - 1)) {
        if (!w->hash[i])
            return &w->hash[i];
        const struct node *n = &w->nodes[w->hash[i] - 1];
        if (n->guid == key->guid && key_port(n) == key_port(key))
            return &w->hash[i];
    }
}

/* Room for one more element. */
static void *grown(void *array, size_t num, size_t *cap, size_t size)
{
    if (num < *cap)
        return array;
    *cap = *cap ? 2 * *cap : 64;
    array = realloc(array, *cap * size);
    if (!array)
        abort();
    return array;
}

/* Its number + 1; 0: too many nodes. */
static uint32_t add_node(struct walk *w, const struct node *n)
{
    uint32_t *slot = find_slot(w, n);
    if (*slot || w->num_nodes == NODES_MAX)
        return *slot;
    w->nodes = grown(w->nodes, w->num_nodes, &w->cap_nodes, sizeof(*w->nodes));
    w->nodes[w->num_nodes] = *n;
    w->nodes[w->num_nodes++].plane = (uint8_t)w->look.from;
    *slot = (uint32_t)w->num_nodes;
    return *slot;
}

/*
 * A cable is followed from the end visited first, and from the other end later unless already found: the first end
 * counts.
 */
static void add_cable(struct walk *w, size_t from, size_t to)
{
    if (from >= to)
        return;
    w->cables = grown(w->cables, w->num_cables, &w->cap_cables, sizeof(*w->cables));
    w->cables[w->num_cables++] = (struct cable){(uint32_t)(from - w->first_node), (uint32_t)(to - w->first_node)};
}

/* Of the subnet whose nodes and cables are known last. */
static unsigned oversubscription(struct walk *w)
{
    size_t num = w->num_nodes - w->first_node;
    bool *is_switch = calloc(num + 1, sizeof(*is_switch));
    if (!is_switch)
        abort();
    for (size_t i = 0; i < num; i++)
        is_switch[i] = w->nodes[w->first_node + i].type == TYPE_SWITCH;
    unsigned most = cables_oversubscription(is_switch, num, w->cables, w->num_cables);
    free(is_switch);
    return most;
}

/* To the node at the other end of this port's cable. False: it is too far away for a path. */
static bool path_out(const struct node *from, unsigned port, struct smp_path *path)
{
    if (from->path.hops == SMP_HOPS_MAX)
        return false;
    *path = from->path;
    path->port[++path->hops] = (uint8_t)port;
    return true;
}

static void step_out(struct walk *w, const struct node *from, size_t index, unsigned port)
{
    struct node n = {0};
    if (!path_out(from, port, &n.path))
        return;
    uint32_t slot;
    int rc = node_read(&w->look, &n);
    if (rc)
        port_no_answer(&w->look, from, port, "the node behind this port", rc);
    else if ((slot = add_node(w, &n)))
        add_cable(w, index, slot - 1);
}

/* There are as many differences as the caller wants to know of. */
static bool has_enough(const struct walk *w)
{
    return w->options->stop_at && w->look.r->differences >= w->options->stop_at;
}

/* Puts its live ports into ports[]; returns their number. */
static unsigned read_live_ports(struct walk *w, const struct node *n, struct port ports[256])
{
    unsigned live = 0;
    for (unsigned i = 1; i <= n->num_ports; i++)
        port_read_ahead(&w->look, n, i);
    for (unsigned i = 1; i <= n->num_ports; i++) {
        int rc = port_read(&w->look, n, i, &ports[live]);
        if (rc)
            port_no_answer(&w->look, n, i, "PortInfo", rc);
        else if (ports[live].state > STATE_DOWN)
            live++;
    }
    return live;
}

/* The questions of check_switch_port. A visitor asks its own questions. */
static void check_switch_port_ahead(struct walk *w, const struct node *n, const struct port *p,
                                    const struct port *ports, unsigned live)
{
    if (!w->look.want || w->options->visit)
        return;
    port_compare_ahead(&w->look, n, p);
    port_compare_sl2vl_ahead(&w->look, n, 0, p->num);
    for (unsigned k = 0; k < live; k++)
        port_compare_sl2vl_ahead(&w->look, n, ports[k].num, p->num);
}

/* A live port of a switch, and its tables for packets from each other port. */
static void check_switch_port(struct walk *w, const struct node *n, const struct port *p, const struct port *ports,
                              unsigned live)
{
    note_caps(w, n, p);
    if (w->options->visit)
        w->options->visit(w->options->visit_arg, &w->look, n, p, ports, live);
    if (!w->look.want)
        return;
    port_compare(&w->look, n, p);
    port_compare_sl2vl(&w->look, n, 0, p->num);
    for (unsigned k = 0; k < live; k++)
        port_compare_sl2vl(&w->look, n, ports[k].num, p->num);
}

/* Does the path to this switch come in by this port? */
static bool is_entry(const struct node *n, const struct port *p)
{
    return n->path.hops && p->num == n->entry;
}

/* The port, or port 0 of a switch, may have a subnet manager. Asked are these later: one that hangs takes time. */
static void note_sm(struct walk *w, const struct node *n, const struct port *p)
{
    struct verify_plane *plane = w->look.plane;
    if (!p->has_sm || !plane || plane->num_sms == VERIFY_SMS_MAX)
        return;
    struct verify_sm *sm = &plane->sm[plane->num_sms++];
    *sm = (struct verify_sm){.guid = n->port_guid, .path = n->path};
    memcpy(sm->node, n->desc, sizeof(sm->node));
}

static void visit_switch(struct walk *w, size_t index)
{
    struct node n = w->nodes[index]; /* add_node moves the array */
    struct port ports[256], own;
    unsigned live = read_live_ports(w, &n, ports);
    if (w->look.plane && !port_read(&w->look, &n, 0, &own))
        note_sm(w, &n, &own);
    struct smp_path path;
    /* One port ahead: its answers arrive while those of the former port are compared. */
    for (unsigned i = 0; i < live && !has_enough(w); i++) {
        if (!i)
            check_switch_port_ahead(w, &n, &ports[i], ports, live);
        if (i + 1 < live)
            check_switch_port_ahead(w, &n, &ports[i + 1], ports, live);
        check_switch_port(w, &n, &ports[i], ports, live);
    }
    if (has_enough(w))
        return;
    for (unsigned i = 0; i < live; i++)
        if (!is_entry(&n, &ports[i]) && path_out(&n, ports[i].num, &path))
            node_read_ahead(&w->look, &path);
    for (unsigned i = 0; i < live; i++)
        if (!is_entry(&n, &ports[i]))
            step_out(w, &n, index, ports[i].num);
}

/* Of a port of this host. */
static void note_own(struct walk *w, const struct port *p)
{
    struct verify_result *r = w->look.r;
    if (!r->asked || p->lmc < r->lmc)
        r->lmc = p->lmc;
    if (!r->asked || p->lmc > r->lmc_most)
        r->lmc_most = p->lmc;
    if (p->sm_lid < p->lid || p->sm_lid >= p->lid + (1u << p->lmc)) {
        r->other_sm_lid = p->sm_lid;
        if (w->look.plane)
            w->look.plane->other_sm_lid = p->sm_lid;
    }
    r->asked++;
}

static bool has_partitions(const struct walk *w)
{
    return w->options->policy && policy_has_members(w->options->policy);
}

/* The port where the path arrives. False: down, or without an answer. */
static bool check_ca(struct walk *w, const struct node *n)
{
    struct port p;
    int rc = port_read(&w->look, n, n->entry, &p);
    if (rc) {
        port_no_answer(&w->look, n, n->entry, "PortInfo", rc);
        return false;
    }
    if (!n->path.hops)
        note_own(w, &p);
    if (p.state <= STATE_DOWN) {
        w->look.r->unsettled = true;
        port_differs(&w->look, n, p.num, "state: Down; this is the port that the fabric is looked at from");
        return false;
    }
    note_caps(w, n, &p);
    note_sm(w, n, &p);
    w->ca_ports++;
    note_most(w, offsetof(struct fabric_caps, hops), n->path.hops);
    if (w->options->visit)
        w->options->visit(w->options->visit_arg, &w->look, n, &p, &p, 1);
    const struct policy *partitions = has_partitions(w) ? w->options->policy : NULL;
    if (partitions && w->look.plane)
        text_printf(&w->look.r->adapters, "0x%016" PRIx64 " %s\n", n->port_guid, n->desc);
    if (w->look.want) {
        port_compare_ahead(&w->look, n, &p);
        port_compare_sl2vl_ahead(&w->look, n, 0, p.num);
        if (partitions)
            port_compare_pkeys_ahead(&w->look, n);
        port_compare_route_ahead(&w->look, &p);
        port_compare(&w->look, n, &p);
        port_compare_sl2vl(&w->look, n, 0, p.num);
        if (partitions)
            port_compare_pkeys(&w->look, n, partitions, w->options->jobs, w->options->mend_pkeys);
        port_compare_route(&w->look, n, &p);
    }
    return true;
}

static void visit_ca(struct walk *w, size_t index)
{
    struct node n = w->nodes[index];
    if (check_ca(w, &n) && !n.path.hops)
        step_out(w, &n, index, n.entry);
}

static void walk_subnet(struct walk *w, const struct node *self)
{
    w->first_node = w->num_nodes;
    w->num_cables = w->ca_ports = 0;
    add_node(w, self);
    for (size_t i = w->first_node; i < w->num_nodes && !has_enough(w); i++) {
        if (w->nodes[i].type == TYPE_SWITCH)
            visit_switch(w, i);
        else
            visit_ca(w, i);
    }
    note_most(w, offsetof(struct fabric_caps, oversubscription), oversubscription(w));
    if (w->ca_ports > w->look.r->ca_ports)
        w->look.r->ca_ports = w->ca_ports;
}

static void look_whole(struct walk *w, const struct node *self)
{
    const struct plane_tables *planes = w->options->planes;
    const struct qos_tables *want = w->look.want;
    size_t nodes = w->num_nodes;
    if (want && planes)
        w->look.want = tables_of_plane(planes, want, self->port_guid);
    walk_subnet(w, self);
    w->look.plane->nodes = (unsigned)(w->num_nodes - nodes);
    w->look.want = want;
}

/* This host's port and the port at the other end of its cable, by these tables. */
static void look_near_by(struct walk *w, const struct node *self, const struct qos_tables *want)
{
    struct node n = {.path = self->path};
    struct port ports[256];
    w->look.want = want;
    if (!check_ca(w, self))
        return;
    n.path.port[++n.path.hops] = self->entry;
    int rc = node_read(&w->look, &n);
    if (rc) {
        port_no_answer(&w->look, self, self->entry, "the node behind this port", rc);
        return;
    }
    add_node(w, &n);
    if (n.type != TYPE_SWITCH) {
        check_ca(w, &n);
        return;
    }
    unsigned live = read_live_ports(w, &n, ports);
    for (unsigned i = 0; i < live; i++)
        if (ports[i].num == n.entry) {
            check_switch_port_ahead(w, &n, &ports[i], ports, live);
            check_switch_port(w, &n, &ports[i], ports, live);
        }
}

/* The plane is unknown here: the ports may have the tables of any. The first that fit, else the common ones count. */
static void look_near(struct walk *w, const struct node *self)
{
    const struct plane_tables *planes = w->options->planes;
    const struct qos_tables *want = w->look.want;
    unsigned others = want && planes ? planes->n : 0;
    struct verify_result *r = w->look.r, before = *r;
    add_node(w, self);
    look_near_by(w, self, want);
    for (unsigned i = 0; others && i <= others && r->differences > before.differences; i++) {
        struct verify_result again = before; /* except the texts, which may have moved */
        text_cut(&r->text, before.text.len);
        text_cut(&r->list, before.list.len);
        again.text = r->text;
        again.list = r->list;
        *r = again;
        look_near_by(w, self, i < others ? &planes->of[i] : want);
    }
    w->look.want = want;
}

/*
 * From one port of this host: the whole subnet, or nearby ports. Nothing if another port has seen them. 0, or the
 * negative errno that prevented the look.
 */
static int look_from(struct walk *w, const struct smp_port *from, bool near)
{
    struct node self = {0};
    w->look.smp = smp_open(from->device[0] ? from->device : NULL, from->num);
    if (!w->look.smp)
        return -errno;
    int rc = node_read(&w->look, &self);
    if (rc > 0)
        rc = -EIO;
    uint32_t known = rc ? 0 : *find_slot(w, &self);
    if (!rc && !known && near)
        look_near(w, &self);
    else if (!rc && !known)
        look_whole(w, &self);
    else if (known && !near)
        w->look.plane->seen_from = w->nodes[known - 1].plane;
    if (w->look.plane)
        w->look.plane->from.guid = self.port_guid;
    smp_close(w->look.smp);
    return rc;
}

/* The first error counts. */
static int look_from_all(struct walk *w, const struct smp_port *from, unsigned n, bool near)
{
    int rc = 0;
    for (unsigned i = 0; i < n && !has_enough(w); i++) {
        w->look.from = i;
        w->look.plane = near ? NULL : &w->look.r->plane[i];
        if (!near)
            *w->look.plane = (struct verify_plane){.from = from[i], .seen_from = i};
        int one = look_from(w, &from[i], near);
        if (!near)
            w->look.plane->error = one;
        w->look.r->num_planes += !near;
        rc = rc ? rc : one;
    }
    return rc;
}

bool verify_fabric(const struct verify_options *o, const struct qos_tables *want, struct verify_result *r)
{
    struct walk w = {
        .look = {.want = want, .r = r, .high_limit = o->high_limit}, .options = o, .hash_size = 2 * NODES_MAX};
    *r = (struct verify_result){0};
    w.hash = calloc(w.hash_size, sizeof(*w.hash));
    if (!w.hash)
        abort();
    r->error = look_from_all(&w, o->whole, o->num_whole, false);
    int near = look_from_all(&w, o->near, o->num_near, true);
    if (!r->error)
        r->error = o->num_whole + o->num_near ? near : -ENODEV;
    r->nodes = (unsigned)w.num_nodes;
    if (r->differences > VERIFY_DIFFERENCES_MAX)
        text_printf(&r->text, "and %u more\n", r->differences - VERIFY_DIFFERENCES_MAX);
    free(w.nodes);
    free(w.cables);
    free(w.hash);
    return !r->error && !r->differences;
}

void verify_note(struct verify_result *r, const char *what, const char *how)
{
    r->differences++;
    text_printf(&r->text, "%s: %s\n", what, how);
    text_printf(&r->list, "  - {node: ");
    text_yaml_string(&r->list, what);
    text_printf(&r->list, ", guid: \"0x%016x\", port: 0, what: ", 0);
    text_yaml_string(&r->list, how);
    text_put(&r->list, "}\n", 2);
}

void verify_result_free(struct verify_result *r)
{
    text_free(&r->adapters);
    text_free(&r->text);
    text_free(&r->list);
}
