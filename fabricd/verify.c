/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and compares the tables of every live port: see verify.h. */
#include "fabricd/verify.h"
#include "fabricd/cables.h"
#include "fabricd/rate.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX       65536
#define UNREACHABLE_MAX 3 /* each costs a time-out, and more would say nothing new */

enum { TYPE_CA = 1, TYPE_SWITCH = 2 };
enum { STATE_DOWN = 1, STATE_INIT = 2, STATE_ACTIVE = 4 };

struct node {
    struct smp_path path;
    uint64_t guid;
    uint8_t type, num_ports;
    uint8_t entry; /* the port by which the path comes in */
    char desc[65];
};

struct port {
    uint8_t num;
    uint16_t lid;
    uint8_t state, lmc, mtu_code, vl_cap, op_vls, high_limit, high_cap, low_cap;
    uint8_t width, speed, speed_ext; /* as PortInfo codes them */
};

struct walk {
    struct smp *smp;
    const struct verify_options *options;
    const struct qos_tables *want;
    struct verify_result *r;
    struct node *nodes;
    size_t num_nodes, cap_nodes;
    struct cable *cables;
    size_t num_cables, cap_cables;
    unsigned unreachable;
    uint32_t *hash; /* node number + 1, by guid and, for an adapter, port */
    size_t hash_size;
};

/* ---- what is said of a port ---- */

static void differs(struct walk *w, const struct node *n, unsigned port, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void differs(struct walk *w, const struct node *n, unsigned port, const char *fmt, ...)
{
    if (w->r->differences++ >= VERIFY_DIFFERENCES_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    text_printf(&w->r->text, "%s (0x%016" PRIx64 ") port %u: ", n->desc, n->guid, port);
    text_vprintf(&w->r->text, fmt, ap);
    text_put(&w->r->text, "\n", 1);
    va_end(ap);
}

static void no_answer(struct walk *w, const struct node *n, unsigned port, const char *what, int rc)
{
    w->r->unsettled = true;
    if (rc > 0)
        differs(w, n, port, "%s: refused with status 0x%04x", what, (unsigned)rc);
    else
        differs(w, n, port, "%s: %s", what, rc == -ETIMEDOUT ? "no answer" : strerror(-rc));
}

/* ---- reading ---- */

static int read_port(struct walk *w, const struct node *n, unsigned num, struct port *p)
{
    uint8_t d[64];
    int rc = smp_get(w->smp, &n->path, SMP_PORT_INFO, num, d);
    if (rc)
        return rc;
    *p = (struct port){
        .num = (uint8_t)num,
        .lid = (uint16_t)(d[16] << 8 | d[17]),
        .state = d[32] & 15,
        .lmc = d[34] & 7,
        .mtu_code = d[36] >> 4,
        .vl_cap = d[37] >> 4,
        .high_limit = d[38],
        .high_cap = d[39],
        .low_cap = d[40],
        .op_vls = d[43] >> 4,
        .width = d[31],
        .speed = d[35] >> 4,
        .speed_ext = d[62] >> 4,
    };
    return 0;
}

static int read_node(struct walk *w, struct node *n)
{
    uint8_t d[64];
    int rc = smp_get(w->smp, &n->path, SMP_NODE_INFO, 0, d);
    if (rc)
        return rc;
    n->type = d[2];
    n->num_ports = d[3];
    memcpy(&n->guid, d + 12, 8);
    n->guid = be64toh(n->guid);
    n->entry = d[36];
    snprintf(n->desc, sizeof(n->desc), "node");
    if (!smp_get(w->smp, &n->path, SMP_NODE_DESC, 0, d)) {
        for (int i = 0; i < 64; i++) /* the text comes from the wire and goes to logs and terminals */
            n->desc[i] = d[i] >= 0x20 && d[i] < 0x7f ? (char)d[i] : d[i] ? '?' : 0;
        n->desc[64] = 0;
    }
    return 0;
}

/* ---- comparing ---- */

static void compare_sl2vl(struct walk *w, const struct node *n, unsigned in, unsigned out)
{
    uint8_t d[64], found[SLS];
    int rc = smp_get(w->smp, &n->path, SMP_SL2VL, n->type == TYPE_SWITCH ? in << 8 | out : 0, d);
    if (rc) {
        no_answer(w, n, out, "SL2VL", rc);
        return;
    }
    for (unsigned i = 0; i < SLS; i++)
        found[i] = i & 1 ? d[i / 2] & 15 : d[i / 2] >> 4;
    if (!memcmp(found, w->want->sl2vl, SLS))
        return;
    struct text want = {0}, have = {0};
    tables_sl2vl_text(&want, w->want->sl2vl);
    tables_sl2vl_text(&have, found);
    if (n->type == TYPE_SWITCH)
        differs(w, n, out, "SL2VL for packets from port %u: expected %s found %s", in, want.s, have.s);
    else
        differs(w, n, out, "SL2VL: expected %s found %s", want.s, have.s);
    text_free(&want);
    text_free(&have);
}

/* Entries without weight are skipped by the arbiter, and opensm fills up with them: they are not shown nor compared. */
static unsigned drop_empty(struct vlarb *e, unsigned n)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < n; i++)
        if (e[i].weight)
            e[kept++] = e[i];
    return kept;
}

static void compare_vlarb(struct walk *w, const struct node *n, const struct port *p, bool high)
{
    const char *name = high ? "VLArb high" : "VLArb low";
    const struct vlarb *want = high ? w->want->high : w->want->low;
    unsigned num_want = high ? w->want->num_high : w->want->num_low, cap = high ? p->high_cap : p->low_cap;
    struct vlarb found[TABLE_ENTRIES_MAX];
    if (cap > TABLE_ENTRIES_MAX)
        cap = TABLE_ENTRIES_MAX;
    for (unsigned done = 0, block = high ? 3 : 1; done < cap; done += 32, block++) {
        uint8_t d[64];
        int rc = smp_get(w->smp, &n->path, SMP_VLARB, block << 16 | (n->type == TYPE_SWITCH ? p->num : 0), d);
        if (rc) {
            no_answer(w, n, p->num, name, rc);
            return;
        }
        for (unsigned i = 0; i < 32 && done + i < cap; i++)
            found[done + i] = (struct vlarb){d[2 * i] & 15, d[2 * i + 1]};
    }
    unsigned num_found = drop_empty(found, cap);
    if (num_found == num_want && !memcmp(found, want, num_want * sizeof(found[0])))
        return;
    struct text a = {0}, b = {0};
    tables_vlarb_text(&a, want, num_want);
    tables_vlarb_text(&b, found, num_found);
    differs(w, n, p->num, "%s: expected %s found %s", name, a.len ? a.s : "empty", b.len ? b.s : "empty");
    text_free(&a);
    text_free(&b);
}

static void compare_port(struct walk *w, const struct node *n, const struct port *p)
{
    static const uint8_t vls_of[16] = {0, 1, 2, 4, 8, 15};
    const struct qos_tables *t = w->want;
    if (p->state != STATE_ACTIVE) {
        w->r->unsettled = true;
        differs(w, n, p->num, "state: expected Active found %s", p->state == STATE_INIT ? "Initialize" : "Armed");
    }
    if (p->op_vls < t->op_vls_code) {
        w->r->vls_lag = true;
        differs(w, n, p->num, "OperVLs: expected %u data VLs found %u", t->vls, vls_of[p->op_vls]);
    }
    if (w->options->high_limit && p->high_limit != t->high_limit)
        differs(w, n, p->num, "VLHighLimit: expected %u found %u", t->high_limit, p->high_limit);
    if (n->type != TYPE_SWITCH && p->lmc != t->lmc)
        differs(w, n, p->num, "LMC: expected %u found %u", t->lmc, p->lmc);
    compare_vlarb(w, n, p, false);
    compare_vlarb(w, n, p, true);
}

/* Every LID of an adapter's port leads there and back: a subnet that is being set up anew is not ready before. */
static void compare_route(struct walk *w, const struct node *n, const struct port *p)
{
    if (p->state != STATE_ACTIVE || w->unreachable >= UNREACHABLE_MAX)
        return;
    for (unsigned i = 0; i < 1u << p->lmc; i++) {
        struct smp_path path = {.lid = (uint16_t)(p->lid + i)};
        uint8_t d[64];
        uint64_t guid;
        int rc = p->lid ? smp_get(w->smp, &path, SMP_NODE_INFO, 0, d) : -ENOENT;
        memcpy(&guid, d + 12, 8);
        if (!rc && be64toh(guid) == n->guid)
            continue;
        w->r->unsettled = true;
        w->unreachable++;
        if (!rc)
            differs(w, n, p->num, "LID %u leads to another node (0x%016" PRIx64 ")", path.lid, be64toh(guid));
        else
            differs(w, n, p->num, "LID %u: %s", path.lid, p->lid ? "no route there from this host" : "none assigned");
        return;
    }
}

/* ---- walking ---- */

static void least(unsigned *least_so_far, unsigned v)
{
    if (!*least_so_far || v < *least_so_far)
        *least_so_far = v;
}

static void note_caps(struct walk *w, const struct port *p)
{
    static const uint8_t vls_of[16] = {0, 1, 2, 4, 8, 15};
    struct fabric_caps *c = &w->r->caps;
    least(&c->vls, vls_of[p->vl_cap]);
    least(&c->low_cap, p->low_cap < TABLE_ENTRIES_MAX ? p->low_cap : TABLE_ENTRIES_MAX);
    least(&c->high_cap, p->high_cap < TABLE_ENTRIES_MAX ? p->high_cap : TABLE_ENTRIES_MAX);
    unsigned rate = rate_mbps(p->width, p->speed, p->speed_ext);
    if (rate)
        least(&c->rate_mbps, rate);
    unsigned mtu = p->mtu_code >= 1 && p->mtu_code <= 5 ? 128u << p->mtu_code : 0;
    if (mtu > c->mtu)
        c->mtu = mtu; /* the largest packets decide how coarse the weights are */
    w->r->ports++;
}

/* A switch is one node whichever way one comes in; the ports of an adapter may lie in different places. */
static uint8_t key_port(const struct node *n)
{
    return n->type == TYPE_SWITCH ? 0 : n->entry;
}

/* The slot of a node that is known already, or the empty one where it would be. */
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

/* Room for one more of what the array has so many of. */
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

/* Its number + 1; 0: there are too many. */
static uint32_t add_node(struct walk *w, const struct node *n)
{
    uint32_t *slot = find_slot(w, n);
    if (*slot || w->num_nodes == NODES_MAX)
        return *slot;
    w->nodes = grown(w->nodes, w->num_nodes, &w->cap_nodes, sizeof(*w->nodes));
    w->nodes[w->num_nodes++] = *n;
    *slot = (uint32_t)w->num_nodes;
    return *slot;
}

/*
 * A cable is followed from the end that is visited first, and from the other, later, unless that was found by it: so
 * the first counts.
 */
static void add_cable(struct walk *w, size_t from, size_t to)
{
    if (from >= to)
        return;
    w->cables = grown(w->cables, w->num_cables, &w->cap_cables, sizeof(*w->cables));
    w->cables[w->num_cables++] = (struct cable){(uint32_t)from, (uint32_t)to};
}

static unsigned oversubscription(struct walk *w)
{
    bool *is_switch = calloc(w->num_nodes + 1, sizeof(*is_switch));
    if (!is_switch)
        abort();
    for (size_t i = 0; i < w->num_nodes; i++)
        is_switch[i] = w->nodes[i].type == TYPE_SWITCH;
    unsigned most = cables_oversubscription(is_switch, w->num_nodes, w->cables, w->num_cables);
    free(is_switch);
    return most;
}

static void step_out(struct walk *w, const struct node *from, size_t index, unsigned port)
{
    struct node n = {.path = from->path};
    if (from->path.hops == SMP_HOPS_MAX)
        return;
    n.path.port[++n.path.hops] = (uint8_t)port;
    uint32_t slot;
    int rc = read_node(w, &n);
    if (rc)
        no_answer(w, from, port, "the node behind this port", rc);
    else if ((slot = add_node(w, &n)))
        add_cable(w, index, slot - 1);
}

/* Its live ports into ports[]; how many. */
static unsigned read_live_ports(struct walk *w, const struct node *n, struct port ports[256])
{
    unsigned live = 0;
    for (unsigned i = 1; i <= n->num_ports; i++) {
        int rc = read_port(w, n, i, &ports[live]);
        if (rc)
            no_answer(w, n, i, "PortInfo", rc);
        else if (ports[live].state > STATE_DOWN)
            live++;
    }
    return live;
}

/* One of a switch's live ports, and what it does with packets from each of the others. */
static void check_switch_port(struct walk *w, const struct node *n, const struct port *p, const struct port *ports,
                              unsigned live)
{
    note_caps(w, p);
    if (!w->want)
        return;
    compare_port(w, n, p);
    compare_sl2vl(w, n, 0, p->num);
    for (unsigned k = 0; k < live; k++)
        compare_sl2vl(w, n, ports[k].num, p->num);
}

static void visit_switch(struct walk *w, size_t index)
{
    struct node n = w->nodes[index]; /* add_node moves the array */
    struct port ports[256];
    unsigned live = read_live_ports(w, &n, ports);
    for (unsigned i = 0; i < live; i++) {
        check_switch_port(w, &n, &ports[i], ports, live);
        if (!(n.path.hops && ports[i].num == n.entry))
            step_out(w, &n, index, ports[i].num);
    }
}

/* The port by which the path comes in. False: it is down, or does not answer. */
static bool check_ca(struct walk *w, const struct node *n)
{
    struct port p;
    int rc = read_port(w, n, n->entry, &p);
    if (rc) {
        no_answer(w, n, n->entry, "PortInfo", rc);
        return false;
    }
    if (!n->path.hops)
        w->r->lmc = p.lmc;
    if (p.state <= STATE_DOWN) {
        w->r->unsettled = true;
        differs(w, n, p.num, "state: Down; this is the port that the fabric is looked at from");
        return false;
    }
    note_caps(w, &p);
    w->r->ca_ports++;
    if (n->path.hops > w->r->caps.hops)
        w->r->caps.hops = n->path.hops;
    if (w->want) {
        compare_port(w, n, &p);
        compare_sl2vl(w, n, 0, p.num);
        compare_route(w, n, &p);
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
    add_node(w, self);
    for (size_t i = 0; i < w->num_nodes; i++) {
        if (w->nodes[i].type == TYPE_SWITCH)
            visit_switch(w, i);
        else
            visit_ca(w, i);
    }
}

/* This host's port and the one at the other end of its cable. */
static void look_near(struct walk *w, const struct node *self)
{
    struct node n = {.path = self->path};
    struct port ports[256];
    add_node(w, self);
    if (!check_ca(w, self))
        return;
    n.path.port[++n.path.hops] = self->entry;
    int rc = read_node(w, &n);
    if (rc) {
        no_answer(w, self, self->entry, "the node behind this port", rc);
        return;
    }
    add_node(w, &n);
    if (n.type != TYPE_SWITCH) {
        check_ca(w, &n);
        return;
    }
    unsigned live = read_live_ports(w, &n, ports);
    for (unsigned i = 0; i < live; i++)
        if (ports[i].num == n.entry)
            check_switch_port(w, &n, &ports[i], ports, live);
}

/* From one port of this host. 0, or the negative errno that kept us from looking. */
static int look_from(struct walk *w, const char *device, int port)
{
    struct node self = {0};
    w->smp = smp_open(device, port);
    if (!w->smp)
        return -errno;
    int rc = read_node(w, &self);
    if (rc > 0)
        rc = -EIO;
    if (!rc && w->options->near)
        look_near(w, &self);
    else if (!rc)
        walk_subnet(w, &self);
    smp_close(w->smp);
    return rc;
}

/* From each port of this host that is up; the first error counts. */
static int look_from_all(struct walk *w)
{
    struct smp_port port[SMP_PORTS_MAX];
    unsigned n = smp_active_ports(port);
    int rc = n ? 0 : -ENODEV;
    for (unsigned i = 0; i < n; i++) {
        int one = look_from(w, port[i].device, port[i].num);
        rc = rc ? rc : one;
    }
    return rc;
}

bool verify_fabric(const struct verify_options *o, const struct qos_tables *want, struct verify_result *r)
{
    struct walk w = {.options = o, .want = want, .r = r, .hash_size = 2 * NODES_MAX};
    *r = (struct verify_result){0};
    w.hash = calloc(w.hash_size, sizeof(*w.hash));
    if (!w.hash)
        abort();
    r->error = o->near && !o->device ? look_from_all(&w) : look_from(&w, o->device, o->port);
    r->nodes = (unsigned)w.num_nodes;
    if (r->ports)
        r->caps.oversubscription = oversubscription(&w);
    if (r->differences > VERIFY_DIFFERENCES_MAX)
        text_printf(&r->text, "and %u more\n", r->differences - VERIFY_DIFFERENCES_MAX);
    free(w.nodes);
    free(w.cables);
    free(w.hash);
    return !r->error && !r->differences;
}

void verify_result_free(struct verify_result *r)
{
    text_free(&r->text);
}
