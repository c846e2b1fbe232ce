/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The output of `ibnetdiscover -p`: a line for every port, with the port at the other end of its cable, if any.
 *
 *   CA     5  1 0x0002c90000002011 4x QDR - SW     2  4 0x0002c90000000100 ( 'h2 mlx5_1' - 'leaf1' )
 *   SW     2  8 0x0002c90000000100 4x QDR                                    'leaf1'
 *
 * The GUID is the node's for switches, the port's for adapters and routers. Ports with the same description, and GUIDs
 * in the order of the port numbers, are taken for ports of one adapter.
 */
#include "simfab/engine/fabric/netlist_ports.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/netlist.h"

struct end {
    enum node_kind kind;
    unsigned port;
    uint64_t guid;
};

/* "CA     5  1 0x0002c90000002011"; the rest of the line in *rest. */
static bool parse_end(const char *text, struct end *e, const char **rest)
{
    char kind[3];
    int n = 0;

    if (sscanf(text, "%2s %*u %3u 0x%16" SCNx64 "%n", kind, &e->port, &e->guid, &n) != 3 || !n)
        return false;
    e->kind = !strcmp(kind, "SW") ? NODE_SWITCH : !strcmp(kind, "CA") ? NODE_CA : NODE_ROUTER;
    *rest = text + n;
    return e->kind != NODE_ROUTER || !strcmp(kind, "RT");
}

/* Is there a GUID, and one left for the node? */
static bool has_guid(const struct end *e)
{
    return e->guid > (e->kind == NODE_SWITCH ? 0 : e->port);
}

/* The name of the node that the port belongs to. */
static void node_id(const struct end *e, char id[64])
{
    if (e->kind == NODE_SWITCH)
        snprintf(id, 64, "S-%016" PRIx64, e->guid);
    else
        snprintf(id, 64, "%c-%016" PRIx64, e->kind == NODE_CA ? 'H' : 'R', e->guid - e->port);
}

/* The node of the port, made at its first port. */
static struct netlist_node *node_of(struct netlist *nl, const struct end *e, const char *desc, unsigned line,
                                    struct parse_error *err)
{
    struct netlist_node *n;
    char id[64];

    node_id(e, id);
    for (unsigned i = 0; i < nl->num_nodes; i++)
        if (!strcmp(nl->nodes[i].id, id)) {
            n = &nl->nodes[i];
            if (n->num_ports < e->port)
                n->num_ports = e->port;
            return n;
        }
    n = netlist_add_node(nl, line, err);
    if (!n)
        return NULL;
    n->kind = e->kind;
    n->num_ports = e->port;
    snprintf(n->id, sizeof n->id, "%s", id);
    snprintf(n->desc, sizeof n->desc, "%s", desc);
    return n;
}

/* ( 'h2 mlx5_1' - 'leaf1' ), or 'leaf1': the first of them */
static bool parse_description(const char *text, bool pair, char *desc, size_t cap)
{
    const char *from = strchr(text, '\''), *to = NULL;

    if (from)
        to = pair ? strstr(from + 1, "' - '") : strrchr(from + 1, '\'');
    if (!to)
        return false;
    snprintf(desc, cap, "%.*s", (int)(to - from - 1), from + 1);
    return true;
}

static int add_cable(struct netlist *nl, const struct end *e, const struct end *peer, const struct link_rate *rate,
                     unsigned node, unsigned line, struct parse_error *err)
{
    struct netlist_link *l = netlist_add_link(nl, line, err);

    if (!l)
        return -1;
    l->node = node;
    l->port = e->port;
    l->port_guid = e->kind == NODE_SWITCH ? 0 : e->guid;
    l->peer_port = peer->port;
    l->peer_guid = peer->kind == NODE_SWITCH ? 0 : peer->guid;
    node_id(peer, l->peer_id);
    l->rate = *rate;
    return 0;
}

int netlist_port_line(struct netlist *nl, const char *text, unsigned line, struct parse_error *err)
{
    char width[8], speed[16], word[24], desc[65];
    struct end e, peer = {0};
    struct netlist_node *n;
    struct link_rate rate = {0};
    const char *rest;
    int at = 0;

    if (!parse_end(text, &e, &rest))
        return 1;
    if (sscanf(rest, " %7s %15s%n", width, speed, &at) != 2 || !at)
        return netlist_error(nl, line, err, "width and speed are missing behind the GUID");
    snprintf(word, sizeof word, "%s%s", width, speed);
    rest += at;
    while (*rest == ' ')
        rest++;
    if (*rest == '-' && !parse_end(rest + 1, &peer, &rest))
        return netlist_error(nl, line, err,
                             "behind \"-\" the port at the other end is wanted: CA, SW or RT, LID, number, GUID");
    if (!e.port || e.port > FABRIC_PORTS_MAX || peer.port > FABRIC_PORTS_MAX || (peer.guid && !peer.port))
        return netlist_error(nl, line, err, "port numbers are 1 to %d", FABRIC_PORTS_MAX);
    if (!has_guid(&e) || (peer.port && !has_guid(&peer)))
        return netlist_error(nl, line, err, "a GUID is not 0, and an adapter's larger than the number of its port");
    if (!parse_description(rest, peer.port, desc, sizeof desc))
        return netlist_error(nl, line, err, "the description in single quotes is missing");
    n = node_of(nl, &e, desc, line, err);
    if (!n)
        return -1;
    if (!peer.port)
        return 0;
    if (link_rate_parse(word, strlen(word), &rate))
        return netlist_error(nl, line, err, "unknown rate \"%s %s\"", width, speed);
    return add_cable(nl, &e, &peer, &rate, (unsigned)(n - nl->nodes), line, err);
}
