/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks as nodes and cables, and their netlists (see graph.h). */
#include "simfab/cmd/graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

/* Locally administered; byte 3 is the kind of node (never 0, the engine's own GUIDs), byte 4 its plane or rail. */
#define GUID_BASE 0x0253460000000000ull

enum guid_kind { GUID_HCA = 1, GUID_LEAF, GUID_SPINE, GUID_CORE };

static uint64_t make_guid(enum guid_kind kind, unsigned plane, unsigned index)
{
    return GUID_BASE | (uint64_t)kind << 32 | (uint64_t)plane << 24 | (uint64_t)(index + 1) << 8;
}

__attribute__((format(printf, 5, 6))) static unsigned add_node(struct graph *g, bool is_switch, unsigned ports,
                                                               uint64_t guid, const char *fmt, ...)
{
    struct graph_node *n;
    va_list ap;

    if (g->num_nodes == g->cap) {
        unsigned cap = g->cap ? g->cap * 2 : 64;

        n = realloc(g->nodes, cap * sizeof *n);
        if (!n) {
            g->failed = true;
            return 0;
        }
        g->nodes = n;
        g->cap = cap;
    }
    n = &g->nodes[g->num_nodes];
    *n = (struct graph_node){.is_switch = is_switch, .num_ports = ports, .guid = guid};
    va_start(ap, fmt);
    vsnprintf(n->desc, sizeof n->desc, fmt, ap);
    va_end(ap);
    n->peer = calloc(ports + 1, sizeof *n->peer);
    g->failed |= !n->peer;
    return g->num_nodes++;
}

static void join_ports(struct graph *g, unsigned a, unsigned pa, unsigned b, unsigned pb)
{
    if (g->failed)
        return;
    g->nodes[a].peer[pa] = (struct graph_end){b, pb};
    g->nodes[b].peer[pb] = (struct graph_end){a, pa};
    g->num_cables++;
}

static int digits(unsigned n)
{
    return snprintf(NULL, 0, "%u", n);
}

/* count switches called NAME01, NAME02, ... (P1-NAME01 with several planes); returns the number of the first */
static unsigned add_switches(struct graph *g, const struct shape_request *r, unsigned plane, enum guid_kind kind,
                             const char *name, unsigned count)
{
    unsigned first = g->num_nodes;
    char prefix[16] = "";

    if (r->planes > 1)
        snprintf(prefix, sizeof prefix, "p%u-", plane + 1);
    for (unsigned i = 0; i < count; i++)
        add_node(g, true, r->radix, make_guid(kind, plane, i), "%s%s%0*u", prefix, name, digits(count), i + 1);
    return first;
}

/* All of pod's leaves to all of its spines: port by port in the order of the other side. */
static void join_pod(struct graph *g, const struct shape *s, unsigned leaf, unsigned spine)
{
    for (unsigned l = 0; l < s->pod_leaves; l++)
        for (unsigned p = 0; p < s->pod_spines; p++)
            for (unsigned k = 0; k < s->leaf_link; k++)
                join_ports(g, leaf + l, s->leaf_hosts + p * s->leaf_link + k + 1, spine + p, l * s->leaf_link + k + 1);
}

/* Spine number p of every pod to the cores of group p. */
static void join_cores(struct graph *g, const struct shape *s, unsigned spine, unsigned core)
{
    unsigned down = s->pod_leaves * s->leaf_link;

    for (unsigned pod = 0; pod < s->pods; pod++)
        for (unsigned p = 0; p < s->pod_spines; p++)
            for (unsigned c = 0; c < s->cores; c++)
                for (unsigned k = 0; k < s->spine_link; k++)
                    join_ports(g, spine + pod * s->pod_spines + p, down + c * s->spine_link + k + 1,
                               core + p * s->cores + c, pod * s->spine_link + k + 1);
}

/* The switches of one plane and the cables between them; returns the number of the first leaf. */
static unsigned add_plane(struct graph *g, const struct shape_request *r, const struct shape *s, unsigned plane)
{
    const char *name = s->levels > 1 ? "leaf" : "switch";
    unsigned leaf = add_switches(g, r, plane, GUID_LEAF, name, s->leaves);
    unsigned spine = add_switches(g, r, plane, GUID_SPINE, "spine", s->pods * s->pod_spines);
    unsigned core = add_switches(g, r, plane, GUID_CORE, "core", s->pod_spines * s->cores);

    for (unsigned pod = 0; pod < s->pods; pod++)
        join_pod(g, s, leaf + pod * s->pod_leaves, spine + pod * s->pod_spines);
    if (s->cores)
        join_cores(g, s, spine, core);
    for (unsigned l = 0; s->line && l + 1 < s->leaves; l++)
        join_ports(g, leaf + l, s->leaf_hosts + 2, leaf + l + 1, s->leaf_hosts + 1);
    if (s->ring)
        join_ports(g, leaf + s->leaves - 1, s->leaf_hosts + 2, leaf, s->leaf_hosts + 1);
    return leaf;
}

/*
 * Joins an adapter to a leaf: hosts are dealt to groups of leaves, and the first hosts % groups groups get one more
 * host. In a tree a group has a leaf for each rail, else one leaf for all.
 */
static void join_host(struct graph *g, const struct shape_request *r, const struct shape *s, unsigned leaf,
                      unsigned hca, unsigned host, unsigned rail)
{
    unsigned per_group = s->levels > 1 ? r->rails : 1, groups = s->leaves / per_group;
    unsigned each = r->hosts / groups, longer = r->hosts % groups, group, at;

    if (host < longer * (each + 1)) {
        group = host / (each + 1);
        at = host % (each + 1);
    } else {
        group = longer + (host - longer * (each + 1)) / each;
        at = (host - longer * (each + 1)) % each;
    }
    if (per_group > 1 || r->rails == 1)
        join_ports(g, hca, 1, leaf + group * per_group + rail, at + 1);
    else
        join_ports(g, hca, 1, leaf + group, at * r->rails + rail + 1);
}

void graph_build(struct graph *g, const struct shape_request *r, const struct shape *s)
{
    unsigned leaf[SHAPE_RAILS_MAX];

    *g = (struct graph){0};
    for (unsigned p = 0; p < r->planes; p++)
        leaf[p] = add_plane(g, r, s, p);
    for (unsigned h = 0; h < r->hosts; h++) {
        for (unsigned d = 0; d < r->planes * r->rails; d++) {
            unsigned hca =
                add_node(g, false, 1, make_guid(GUID_HCA, d, h), "h%0*u mlx5_%u", digits(r->hosts), h + 1, d);

            join_host(g, r, s, leaf[d / r->rails], hca, h, d % r->rails);
        }
    }
}

/* "H-0253460100000100"[1](253460100000101) */
static void write_end(const struct graph_node *n, unsigned port, FILE *f)
{
    fprintf(f, "\"%c-%016" PRIx64 "\"[%u]", n->is_switch ? 'S' : 'H', n->guid, port);
    if (!n->is_switch)
        fprintf(f, "(%" PRIx64 ")", n->guid + port);
}

static void write_node(const struct graph *g, const struct graph_node *n, const char *rate, FILE *f)
{
    fprintf(f, "\nsysimgguid=0x%" PRIx64 "\n", n->guid);
    if (n->is_switch)
        fprintf(f, "switchguid=0x%" PRIx64 "(%" PRIx64 ")\nSwitch\t%u \"S-%016" PRIx64 "\"\t\t# \"%s\" base port 0\n",
                n->guid, n->guid, n->num_ports, n->guid, n->desc);
    else
        fprintf(f, "caguid=0x%" PRIx64 "\nCa\t%u \"H-%016" PRIx64 "\"\t\t# \"%s\"\n", n->guid, n->num_ports, n->guid,
                n->desc);
    for (unsigned k = 1; k <= n->num_ports; k++) {
        const struct graph_node *m = &g->nodes[n->peer[k].node];

        if (!n->peer[k].port)
            continue;
        fprintf(f, "[%u]", k);
        if (!n->is_switch)
            fprintf(f, "(%" PRIx64 ")", n->guid + k);
        fputc('\t', f);
        write_end(m, n->peer[k].port, f);
        fprintf(f, "\t\t# \"%s\"%s%s\n", m->desc, *rate ? " " : "", rate);
    }
}

bool graph_write(const struct graph *g, const char *rate, FILE *f)
{
    if (g->failed) {
        errno = ENOMEM;
        return false;
    }
    for (unsigned i = 0; i < g->num_nodes; i++)
        write_node(g, &g->nodes[i], rate, f);
    return !ferror(f);
}

void graph_free(struct graph *g)
{
    for (unsigned i = 0; i < g->num_nodes; i++)
        free(g->nodes[i].peer);
    free(g->nodes);
    *g = (struct graph){0};
}
