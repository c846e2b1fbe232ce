/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds a fabric from a netlist and a model: makes nodes and ports, joins cables and checks both ends, fills in values
 * missing in the netlist (GUIDs, descriptions, rates), and gathers HCAs into hosts.
 */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/fabric/netlist.h"
#include "simfab/engine/fabric/netlist_parse.h"
#include "simfab/engine/fabric/port_caps.h"

#define HOST_CAS_MAX   32 /* limit of libibumad */
#define HOST_PORTS_MAX 64 /* umad0..umad63 */
#define CA_PORTS_MAX   9  /* /sys/class/infiniband/CA/ports/1..9 */
#define DEV_NAME_MAX   19

/* GUIDs made up for nodes without one: locally administered, different for every node and port of a netlist */
#define GUID_BASE 0x0253460000000000ull

#define CAP_TRAP         0x00000008u
#define CAP_SL_MAP       0x00000040u
#define CAP_SYS_GUID     0x00000800u
#define CAP_COMM_MGMT    0x00010000u
#define CAP_CAP_NOTICE   0x00400000u
#define CAP_CLIENT_REREG 0x02000000u
#define CAP_LOCAL_NOTICE 0x04000000u

struct builder {
    struct netlist nl;
    struct fabric *f;
    struct model *model;
    struct parse_error *err;
    unsigned **listed;       /* listed[node][port]: line that lists the cable from this end */
    unsigned **joined;       /* joined[node][port]: line that joined the port to its peer */
    struct link_rate **rate; /* as said by the netlist; 0: not said */
};

#define FAIL(b, line, ...) netlist_error(&(b)->nl, line, (b)->err, __VA_ARGS__)

/* "S-0002c90000000001", "H-...", "R-...": ibnetdiscover's ids carry the node's GUID */
static uint64_t guid_from_id(const char *id)
{
    char *end;
    uint64_t v;

    if (!strchr("SHR", id[0]) || id[1] != '-' || strlen(id) != 18)
        return 0;
    v = strtoull(id + 2, &end, 16);
    return *end ? 0 : v;
}

/* Sets a port's place, its capabilities, and its state after power-on. */
static int port_init(struct port *p, struct node *n, unsigned num, const struct model *model)
{
    unsigned inputs = n->kind == NODE_SWITCH ? n->num_ports + 1 : 1;

    p->node = n;
    p->num = (uint8_t)num;
    port_caps_init(p, model);
    p->sl2vl = calloc(inputs, sizeof *p->sl2vl);
    if (!p->sl2vl)
        return -1;
    port_power_on(p);
    if (n->kind != NODE_SWITCH || num == 0)
        p->cap_mask = CAP_TRAP | CAP_SL_MAP | CAP_SYS_GUID | CAP_CAP_NOTICE | CAP_CLIENT_REREG | CAP_LOCAL_NOTICE;
    if (n->kind == NODE_CA)
        p->cap_mask |= CAP_COMM_MGMT;
    return 0;
}

static int node_tables_init(struct node *n)
{
    if (n->kind != NODE_SWITCH)
        return 0;
    n->lft_cap = FABRIC_LIDS - 1;
    n->mft_cap = 4096;
    n->default_mcast_primary = n->default_mcast_not_primary = FABRIC_NO_PORT;
    n->life_time = 20; /* for ever */
    n->lft = malloc(FABRIC_LIDS);
    n->mft = calloc((size_t)n->mft_cap * 16, sizeof *n->mft);
    if (!n->lft || !n->mft)
        return -1;
    memset(n->lft, FABRIC_NO_PORT, FABRIC_LIDS);
    return 0;
}

static int make_node(struct builder *b, unsigned i)
{
    const struct netlist_node *rec = &b->nl.nodes[i];
    struct node *n = calloc(1, sizeof *n);

    if (!n)
        return FAIL(b, rec->line, "out of memory");
    b->f->nodes[b->f->num_nodes++] = n;
    n->fabric = b->f;
    n->index = i;
    n->kind = rec->kind;
    snprintf(n->name, sizeof n->name, "%s", rec->id);
    snprintf(n->desc, sizeof n->desc, "%s", *rec->desc ? rec->desc : rec->id);
    memcpy(n->said_desc, n->desc, sizeof n->said_desc);
    n->node_guid = rec->guid ? rec->guid : guid_from_id(rec->id);
    if (!n->node_guid)
        n->node_guid = GUID_BASE | (uint64_t)(i + 1) << 12;
    if (n->node_guid > UINT64_MAX - FABRIC_PORTS_MAX)
        return FAIL(b, rec->line, "the GUID of \"%s\" leaves none for its ports", n->name);
    n->sys_guid = rec->sys_guid ? rec->sys_guid : n->node_guid;
    n->vendor = rec->vendor ? rec->vendor : 0x2c9;
    n->device = rec->device ? rec->device : n->kind == NODE_SWITCH ? 0xcb84 : b->model->vendor_part_id;
    n->enhanced_port0 = rec->enhanced_port0;
    n->ports = calloc(rec->num_ports + 1, sizeof *n->ports);
    if (!n->ports || node_tables_init(n))
        return FAIL(b, rec->line, "out of memory");
    n->num_ports = rec->num_ports;
    for (unsigned k = 0; k <= n->num_ports; k++) {
        struct port *p = &n->ports[k];

        if (port_init(p, n, k, b->model))
            return FAIL(b, rec->line, "out of memory");
        if (n->kind == NODE_SWITCH)
            p->guid = rec->port0_guid ? rec->port0_guid : n->node_guid;
    }
    if (n->kind == NODE_SWITCH) {
        /* the management port is always up, and never takes data */
        n->ports[0].state = n->enhanced_port0 ? PORT_INIT : PORT_ACTIVE;
        n->ports[0].phys_state = PHYS_LINKUP;
    }
    for (unsigned k = 0; k < i; k++) {
        if (!strcmp(b->f->nodes[k]->name, n->name))
            return FAIL(b, rec->line, "node \"%s\" is there already (line %u)", n->name, b->nl.nodes[k].line);
        if (b->f->nodes[k]->node_guid == n->node_guid)
            return FAIL(b, rec->line, "node \"%s\" has the GUID 0x%llx of \"%s\" (line %u)", n->name,
                        (unsigned long long)n->node_guid, b->f->nodes[k]->name, b->nl.nodes[k].line);
    }
    return 0;
}

static int set_port_guid(struct builder *b, unsigned line, struct port *p, uint64_t guid)
{
    if (!guid || p->node->kind == NODE_SWITCH)
        return 0;
    if (p->guid && p->guid != guid)
        return FAIL(b, line, "\"%s\"[%u] has GUID 0x%llx here and 0x%llx elsewhere", p->node->name, p->num,
                    (unsigned long long)guid, (unsigned long long)p->guid);
    p->guid = guid;
    return 0;
}

static int set_rate(struct builder *b, unsigned line, struct port *p, const struct link_rate *said)
{
    struct link_rate *have = &b->rate[p->node->index][p->num];

    if ((said->width && have->width && said->width != have->width) ||
        (said->speed && have->speed &&
         (said->speed != have->speed || said->ext_speed != have->ext_speed || said->fdr10 != have->fdr10)))
        return FAIL(b, line, "the cable at \"%s\"[%u] has another width or speed at its other end (line %u)",
                    p->node->name, p->num, b->joined[p->node->index][p->num]);
    if (said->width)
        have->width = said->width;
    if (said->speed) {
        have->speed = said->speed;
        have->ext_speed = said->ext_speed;
        have->fdr10 = said->fdr10;
    }
    return 0;
}

static int join_end(struct builder *b, unsigned line, struct port *p, struct port *peer)
{
    if (p->peer && p->peer != peer)
        return FAIL(b, line, "\"%s\"[%u] is used twice: line %u joins it to \"%s\"[%u]", p->node->name, p->num,
                    b->joined[p->node->index][p->num], p->peer->node->name, p->peer->num);
    if (!p->peer)
        b->joined[p->node->index][p->num] = line;
    p->peer = peer;
    return 0;
}

static int make_link(struct builder *b, const struct netlist_link *l)
{
    struct node *n = b->f->nodes[l->node], *m = NULL;
    struct port *p, *q;

    for (uint32_t i = 0; i < b->f->num_nodes && !m; i++)
        if (!strcmp(b->f->nodes[i]->name, l->peer_id))
            m = b->f->nodes[i];
    if (!m)
        return FAIL(b, l->line, "there is no node \"%s\"", l->peer_id);
    if (l->port > n->num_ports)
        return FAIL(b, l->line, "port %u of \"%s\": it has %u", l->port, n->name, n->num_ports);
    if (l->peer_port > m->num_ports)
        return FAIL(b, l->line, "port %u of \"%s\": it has %u", l->peer_port, m->name, m->num_ports);
    p = &n->ports[l->port];
    q = &m->ports[l->peer_port];
    if (p == q)
        return FAIL(b, l->line, "\"%s\"[%u] is joined to itself", n->name, l->port);
    if (b->listed[n->index][p->num])
        return FAIL(b, l->line, "\"%s\"[%u] is used twice: see line %u", n->name, p->num, b->listed[n->index][p->num]);
    if (join_end(b, l->line, p, q) || join_end(b, l->line, q, p))
        return -1;
    b->listed[n->index][p->num] = l->line;
    if (set_rate(b, l->line, p, &l->rate) || set_rate(b, l->line, q, &l->rate))
        return -1;
    return set_port_guid(b, l->line, p, l->port_guid) || set_port_guid(b, l->line, q, l->peer_guid) ? -1 : 0;
}

struct guid_ref {
    uint64_t guid;
    const struct port *port;
};

static int by_guid(const void *a, const void *b)
{
    const struct guid_ref *x = a, *y = b;

    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

/* A subnet manager takes two ports of one GUID for one port seen twice, and gives up. */
static int check_port_guids(struct builder *b)
{
    struct guid_ref *refs;
    size_t n = 0, cap = 0;
    int rc = 0;

    for (uint32_t i = 0; i < b->f->num_nodes; i++)
        cap += b->f->nodes[i]->num_ports + 1;
    refs = calloc(cap, sizeof *refs);
    if (!refs)
        return FAIL(b, 1, "out of memory");
    for (uint32_t i = 0; i < b->f->num_nodes; i++) {
        struct node *node = b->f->nodes[i];

        for (unsigned k = node->kind != NODE_SWITCH; k <= (node->kind == NODE_SWITCH ? 0 : node->num_ports); k++)
            refs[n++] = (struct guid_ref){node->ports[k].guid, &node->ports[k]};
    }
    qsort(refs, n, sizeof *refs, by_guid);
    for (size_t i = 1; i < n && rc == 0; i++) {
        if (refs[i].guid == refs[i - 1].guid)
            rc = FAIL(b, b->nl.nodes[refs[i].port->node->index].line,
                      "\"%s\"[%u] and \"%s\"[%u] both have port GUID 0x%llx", refs[i].port->node->name,
                      refs[i].port->num, refs[i - 1].port->node->name, refs[i - 1].port->num,
                      (unsigned long long)refs[i].guid);
    }
    free(refs);
    return rc;
}

/* A switch has one capability mask, port 0's, where tools look whether the extended speeds of its ports are valid. */
static void switch_masks(struct fabric *f)
{
    for (uint32_t i = 0; i < f->num_nodes; i++)
        for (uint32_t k = 1; f->nodes[i]->kind == NODE_SWITCH && k <= f->nodes[i]->num_ports; k++)
            if (f->nodes[i]->ports[k].ext_speed_supported)
                f->nodes[i]->ports[0].cap_mask |= CAP_EXT_SPEEDS;
}

static int finish_ports(struct builder *b)
{
    for (uint32_t i = 0; i < b->f->num_nodes; i++) {
        struct node *n = b->f->nodes[i];

        for (unsigned k = 0; k <= n->num_ports; k++) {
            struct port *p = &n->ports[k];

            if (!p->guid)
                p->guid = n->node_guid + k;
            p->guids[0] = p->guid;
            port_caps_set_rate(p, &b->rate[i][k], b->model);
            if (n->kind == NODE_SWITCH && k == 0)
                continue;
            p->cable_up = p->peer != NULL;
            p->state = p->peer ? PORT_INIT : PORT_DOWN;
            p->phys_state = p->peer ? PHYS_LINKUP : PHYS_POLLING;
        }
    }
    if (port_caps_apply(b->f, b->err) || check_port_guids(b))
        return -1;
    switch_masks(b->f);
    return 0;
}

/*
 * Derives host and device of an HCA from its description: "h1 mlx5_0" is device mlx5_0 of h1; "h1 HCA-1" and "h1" are a
 * device of h1, named later in its turn. A description of more words (a product's name) is ignored, and the node is a
 * host of its own.
 */
static void split_description(const struct node *n, char host[64], char dev[64])
{
    char first[64], second[64], rest[2];
    int words = sscanf(n->desc, "%63s %63s %1s", first, second, rest);

    *dev = '\0';
    snprintf(host, 64, "%s", words == 1 || words == 2 ? first : n->name);
    if (words == 2 && strncasecmp(second, "HCA-", 4))
        snprintf(dev, 64, "%s", second);
}

static bool valid_name(const char *s, size_t max)
{
    if (!*s || *s == '.' || strlen(s) > max)
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_-.", *s))
            return false;
    return true;
}

static struct host *find_or_make_host(struct builder *b, const char *name)
{
    struct fabric *f = b->f;
    struct host *h = fabric_host_by_name(f, name);

    if (h)
        return h;
    h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->cas = calloc(HOST_CAS_MAX, sizeof *h->cas);
    if (!h->cas) {
        free(h);
        return NULL;
    }
    h->fabric = f;
    h->index = f->num_hosts;
    snprintf(h->name, sizeof h->name, "%s", name);
    f->hosts[f->num_hosts++] = h;
    return h;
}

/* True for a record written by ibnetdiscover: its description was set by an administrator. */
static bool is_discovered(const struct node *n)
{
    return guid_from_id(n->name) != 0;
}

/* Another adapter of the host with the same name, or the same description unless that is only the host's name. */
static struct node *same_adapter(const struct host *h, const struct node *n)
{
    for (uint32_t i = 0; h && i < h->num_cas; i++)
        if ((*n->dev_name && !strcmp(h->cas[i]->dev_name, n->dev_name)) ||
            (!strcmp(h->cas[i]->desc, n->desc) && strchr(n->desc, ' ')))
            return h->cas[i];
    return NULL;
}

/*
 * Finds the adapter's host, and its name there. In netlists of real clusters, descriptions may be meaningless ("(none)
 * mlx5_0") or repeated ("localhost HCA-1"): then the adapter is a host of its own. In handwritten netlists such a
 * description is an error.
 */
static int place_adapter(struct builder *b, struct node *n, char name[64])
{
    unsigned line = b->nl.nodes[n->index].line;
    struct node *other;

    split_description(n, name, n->dev_name);
    other = same_adapter(fabric_host_by_name(b->f, name), n);
    if (is_discovered(n) && (!valid_name(name, 63) || other)) {
        snprintf(name, 64, "%s", n->name);
        *n->dev_name = '\0';
    }
    if (is_discovered(n) && *n->dev_name && !valid_name(n->dev_name, DEV_NAME_MAX))
        *n->dev_name = '\0';
    if (!valid_name(name, 63))
        return FAIL(b, line, "\"%s\" is not a host's name: letters, digits, '-', '_' and '.'", name);
    if (*n->dev_name && !valid_name(n->dev_name, DEV_NAME_MAX))
        return FAIL(b, line, "\"%s\" is not a device's name: at most %d letters, digits, '-', '_' and '.'", n->dev_name,
                    DEV_NAME_MAX);
    if (*n->dev_name && other && !is_discovered(n))
        return FAIL(b, line, "host %s has a device %s already (line %u)", name, n->dev_name,
                    b->nl.nodes[other->index].line);
    return 0;
}

static int add_to_host(struct builder *b, struct node *n)
{
    unsigned line = b->nl.nodes[n->index].line, ports = n->num_ports;
    char name[64];
    struct host *h;

    if (place_adapter(b, n, name))
        return -1;
    if (n->num_ports > CA_PORTS_MAX)
        return FAIL(b, line, "HCA \"%s\" has %u ports: at most %d", n->name, n->num_ports, CA_PORTS_MAX);
    h = find_or_make_host(b, name);
    if (!h)
        return FAIL(b, line, "out of memory");
    for (uint32_t i = 0; i < h->num_cas; i++)
        ports += h->cas[i]->num_ports;
    if (h->num_cas == HOST_CAS_MAX || ports > HOST_PORTS_MAX)
        return FAIL(b, line, "host %s has too many HCAs: at most %d HCAs with %d ports", h->name, HOST_CAS_MAX,
                    HOST_PORTS_MAX);
    h->cas[h->num_cas++] = n;
    n->host = h;
    return 0;
}

/* mlx5_K for HCAs without a name in their description: the lowest free K, in the order of the netlist */
static void name_devices(struct host *h)
{
    for (uint32_t i = 0; i < h->num_cas; i++) {
        bool taken = true;

        for (unsigned k = 0; taken && !*h->cas[i]->dev_name; k++) {
            char name[16];

            snprintf(name, sizeof name, "mlx5_%u", k);
            taken = false;
            for (uint32_t j = 0; j < h->num_cas; j++)
                taken |= !strcmp(h->cas[j]->dev_name, name);
            if (!taken)
                snprintf(h->cas[i]->dev_name, sizeof h->cas[i]->dev_name, "%s", name);
        }
    }
}

static int make_hosts(struct builder *b)
{
    b->f->hosts = calloc(b->f->num_nodes, sizeof *b->f->hosts);
    if (!b->f->hosts)
        return FAIL(b, 1, "out of memory");
    for (uint32_t i = 0; i < b->f->num_nodes; i++)
        if (b->f->nodes[i]->kind == NODE_CA && add_to_host(b, b->f->nodes[i]))
            return -1;
    if (!b->f->num_hosts)
        return FAIL(b, b->nl.nodes[0].line, "no hosts: at least one Ca (Hca) record is wanted");
    for (uint32_t i = 0; i < b->f->num_hosts; i++)
        name_devices(b->f->hosts[i]);
    return 0;
}

/*
 * Handwritten nets may list a cable at one end only. In a file that lists cables at both ends, as ibnetdiscover does, a
 * missing end is an error: the file was cut off or mistyped.
 */
static int check_dangling(struct builder *b)
{
    const struct netlist_link *one_sided = NULL;
    bool two_sided = false;

    for (unsigned i = 0; i < b->nl.num_links; i++) {
        const struct netlist_link *l = &b->nl.links[i];
        const struct port *q = b->f->nodes[l->node]->ports[l->port].peer;

        if (b->listed[q->node->index][q->num])
            two_sided = true;
        else if (!one_sided)
            one_sided = l;
    }
    if (!one_sided || !two_sided)
        return 0;
    return FAIL(b, one_sided->line,
                "dangling: the record of \"%s\" does not list this cable at its port %u, though other "
                "cables of this file are listed at both ends",
                one_sided->peer_id, one_sided->peer_port);
}

static int build_fabric(struct builder *b)
{
    unsigned n = b->nl.num_nodes;

    b->f->nodes = calloc(n, sizeof *b->f->nodes);
    b->listed = calloc(n, sizeof *b->listed);
    b->joined = calloc(n, sizeof *b->joined);
    b->rate = calloc(n, sizeof *b->rate);
    if (!b->f->nodes || !b->listed || !b->joined || !b->rate)
        return FAIL(b, 1, "out of memory");
    for (unsigned i = 0; i < n; i++) {
        unsigned ports = b->nl.nodes[i].num_ports + 1;

        b->listed[i] = calloc(ports, sizeof **b->listed);
        b->joined[i] = calloc(ports, sizeof **b->joined);
        b->rate[i] = calloc(ports, sizeof **b->rate);
        if (!b->listed[i] || !b->joined[i] || !b->rate[i])
            return FAIL(b, 1, "out of memory");
        if (make_node(b, i))
            return -1;
    }
    for (unsigned i = 0; i < b->nl.num_links; i++)
        if (make_link(b, &b->nl.links[i]))
            return -1;
    return check_dangling(b) || finish_ports(b) || make_hosts(b) ? -1 : 0;
}

struct fabric *fabric_load(const char *netlist_path, struct model *model, struct parse_error *err)
{
    struct builder b = {.model = model, .err = err};
    int rc;

    err->text[0] = '\0';
    b.f = calloc(1, sizeof *b.f);
    if (!b.f) {
        snprintf(err->text, sizeof err->text, "%s: out of memory", netlist_path);
        return NULL;
    }
    b.f->model = model;
    rc = netlist_parse(netlist_path, &b.nl, err) || build_fabric(&b);
    for (unsigned i = 0; i < b.nl.num_nodes; i++) {
        if (b.listed)
            free(b.listed[i]);
        if (b.joined)
            free(b.joined[i]);
        if (b.rate)
            free(b.rate[i]);
    }
    free(b.listed);
    free(b.joined);
    free(b.rate);
    netlist_free(&b.nl);
    if (rc) {
        fabric_free(b.f);
        return NULL;
    }
    return b.f;
}
