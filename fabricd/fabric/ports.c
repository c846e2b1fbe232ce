/* SPDX-License-Identifier: BSD-3-Clause */
/* One port: see ports.h. Attributes' layouts are those of the InfiniBand specification, volume 1, 14.2.5. */
#include "fabricd/fabric/ports.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PKEY_BLOCKS_MAX 32
#define UNREACHABLE_MAX 3 /* each costs a time-out, and more would say nothing new */

/* ---- what is said of a port ---- */

void port_differs(struct look *w, const struct node *n, unsigned port, const char *fmt, ...)
{
    if (w->plane)
        w->plane->differences++;
    if (w->r->differences++ >= VERIFY_DIFFERENCES_MAX)
        return;
    struct text what = {0};
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(&what, fmt, ap);
    va_end(ap);
    text_printf(&w->r->text, "%s (0x%016" PRIx64 ") port %u: %s\n", n->desc, n->guid, port, text_str(&what));
    text_printf(&w->r->list, "  - {node: ");
    text_yaml_string(&w->r->list, n->desc);
    text_printf(&w->r->list, ", guid: \"0x%016" PRIx64 "\", port: %u, what: ", n->guid, port);
    text_yaml_string(&w->r->list, text_str(&what));
    text_put(&w->r->list, "}\n", 2);
    text_free(&what);
}

void port_no_answer(struct look *w, const struct node *n, unsigned port, const char *what, int rc)
{
    w->r->unsettled = true;
    if (rc > 0)
        port_differs(w, n, port, "%s: refused with status 0x%04x", what, (unsigned)rc);
    else
        port_differs(w, n, port, "%s: %s", what, rc == -ETIMEDOUT ? "no answer" : strerror(-rc));
}

/* ---- reading ---- */

void port_read_ahead(struct look *w, const struct node *n, unsigned num)
{
    smp_ahead(w->smp, &n->path, SMP_PORT_INFO, num, NULL);
}

int port_read(struct look *w, const struct node *n, unsigned num, struct port *p)
{
    uint8_t d[64];
    int rc = smp_get(w->smp, &n->path, SMP_PORT_INFO, num, d);
    if (rc)
        return rc;
    *p = (struct port){
        .num = (uint8_t)num,
        .lid = (uint16_t)(d[16] << 8 | d[17]),
        .sm_lid = (uint16_t)(d[18] << 8 | d[19]),
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
        .has_sm = d[23] & 2,
    };
    return 0;
}

void node_read_ahead(struct look *w, const struct smp_path *path)
{
    smp_ahead(w->smp, path, SMP_NODE_INFO, 0, NULL);
    smp_ahead(w->smp, path, SMP_NODE_DESC, 0, NULL);
}

int node_read(struct look *w, struct node *n)
{
    uint8_t d[64];
    int rc = smp_get(w->smp, &n->path, SMP_NODE_INFO, 0, d);
    if (rc)
        return rc;
    n->type = d[2];
    n->num_ports = d[3];
    memcpy(&n->guid, d + 12, 8);
    n->guid = be64toh(n->guid);
    memcpy(&n->port_guid, d + 20, 8);
    n->port_guid = be64toh(n->port_guid);
    n->num_pkeys = (uint16_t)(d[28] << 8 | d[29]);
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

static uint32_t sl2vl_modifier(const struct node *n, unsigned in, unsigned out)
{
    return n->type == TYPE_SWITCH ? in << 8 | out : 0;
}

void port_compare_sl2vl_ahead(struct look *w, const struct node *n, unsigned in, unsigned out)
{
    smp_ahead(w->smp, &n->path, SMP_SL2VL, sl2vl_modifier(n, in, out), NULL);
}

void port_compare_sl2vl(struct look *w, const struct node *n, unsigned in, unsigned out)
{
    uint8_t d[64], found[SLS];
    int rc = smp_get(w->smp, &n->path, SMP_SL2VL, sl2vl_modifier(n, in, out), d);
    if (rc) {
        port_no_answer(w, n, out, "SL2VL", rc);
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
        port_differs(w, n, out, "SL2VL for packets from port %u: expected %s found %s", in, want.s, have.s);
    else
        port_differs(w, n, out, "SL2VL: expected %s found %s", want.s, have.s);
    text_free(&want);
    text_free(&have);
}

/*
 * Entries without weight are skipped by the arbiter, and opensm fills tables up with them: they are neither shown nor
 * compared.
 */
static unsigned drop_empty(struct vlarb *e, unsigned n)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < n; i++)
        if (e[i].weight)
            e[kept++] = e[i];
    return kept;
}

/* Entries of a table, 32 to a block; blocks 1 and 2 are the low-priority table, 3 and 4 the high-priority one. */
static unsigned vlarb_entries(const struct port *p, bool high)
{
    unsigned cap = high ? p->high_cap : p->low_cap;
    return cap < TABLE_ENTRIES_MAX ? cap : TABLE_ENTRIES_MAX;
}

static uint32_t vlarb_modifier(const struct node *n, const struct port *p, bool high, unsigned entry)
{
    return ((high ? 3 : 1) + entry / 32) << 16 | (n->type == TYPE_SWITCH ? p->num : 0);
}

static void compare_vlarb_ahead(struct look *w, const struct node *n, const struct port *p, bool high)
{
    for (unsigned done = 0; done < vlarb_entries(p, high); done += 32)
        smp_ahead(w->smp, &n->path, SMP_VLARB, vlarb_modifier(n, p, high, done), NULL);
}

static void compare_vlarb(struct look *w, const struct node *n, const struct port *p, bool high)
{
    const char *name = high ? "VLArb high" : "VLArb low";
    const struct vlarb *want = high ? w->want->high : w->want->low;
    unsigned num_want = high ? w->want->num_high : w->want->num_low, cap = vlarb_entries(p, high);
    struct vlarb found[TABLE_ENTRIES_MAX];
    for (unsigned done = 0; done < cap; done += 32) {
        uint8_t d[64];
        int rc = smp_get(w->smp, &n->path, SMP_VLARB, vlarb_modifier(n, p, high, done), d);
        if (rc) {
            port_no_answer(w, n, p->num, name, rc);
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
    port_differs(w, n, p->num, "%s: expected %s found %s", name, a.len ? a.s : "empty", b.len ? b.s : "empty");
    text_free(&a);
    text_free(&b);
}

void port_compare_ahead(struct look *w, const struct node *n, const struct port *p)
{
    compare_vlarb_ahead(w, n, p, false);
    compare_vlarb_ahead(w, n, p, true);
}

void port_compare(struct look *w, const struct node *n, const struct port *p)
{
    static const uint8_t vls_of[16] = {0, 1, 2, 4, 8, 15};
    const struct qos_tables *t = w->want;
    if (p->state != STATE_ACTIVE) {
        w->r->unsettled = true;
        port_differs(w, n, p->num, "state: expected Active found %s", p->state == STATE_INIT ? "Initialize" : "Armed");
    }
    if (p->op_vls < t->op_vls_code) {
        w->r->vls_lag = true;
        port_differs(w, n, p->num, "OperVLs: expected %u data VLs found %u", t->vls, vls_of[p->op_vls]);
    }
    if (w->high_limit && p->high_limit != t->high_limit)
        port_differs(w, n, p->num, "VLHighLimit: expected %u found %u", t->high_limit, p->high_limit);
    if (n->type != TYPE_SWITCH && p->lmc != t->lmc)
        port_differs(w, n, p->num, "LMC: expected %u found %u", t->lmc, p->lmc);
    compare_vlarb(w, n, p, false);
    compare_vlarb(w, n, p, true);
}

/* Of an adapter's table: 32 entries to a block. */
static unsigned pkey_blocks(const struct node *n)
{
    unsigned blocks = (n->num_pkeys + 31u) / 32;
    return blocks < PKEY_BLOCKS_MAX ? blocks : PKEY_BLOCKS_MAX;
}

void port_compare_pkeys_ahead(struct look *w, const struct node *n)
{
    for (unsigned b = 0; b < pkey_blocks(n); b++)
        smp_ahead(w->smp, &n->path, SMP_PKEYS, b, NULL);
}

struct pkey_table {
    unsigned n;
    uint16_t key[32 * PKEY_BLOCKS_MAX];
};

static bool read_pkeys(struct look *w, const struct node *n, struct pkey_table *t)
{
    t->n = 0;
    for (unsigned b = 0; b < pkey_blocks(n); b++) {
        uint8_t d[64];
        int rc = smp_get(w->smp, &n->path, SMP_PKEYS, b, d);
        if (rc) {
            port_no_answer(w, n, n->entry, "P_KeyTable", rc);
            return false;
        }
        for (unsigned i = 0; i < 32; i++)
            t->key[t->n++] = (uint16_t)(d[2 * i] << 8 | d[2 * i + 1]);
    }
    return true;
}

/* Only blocks that change are written. */
static void write_pkeys(struct look *w, const struct node *n, const struct pkey_table *was, const struct pkey_table *t)
{
    for (unsigned b = 0; b < pkey_blocks(n); b++) {
        uint8_t d[64];
        if (!memcmp(was->key + 32 * b, t->key + 32 * b, 64))
            continue;
        for (unsigned i = 0; i < 32; i++) {
            d[2 * i] = (uint8_t)(t->key[32 * b + i] >> 8);
            d[2 * i + 1] = (uint8_t)t->key[32 * b + i];
        }
        int rc = smp_set(w->smp, &n->path, SMP_PKEYS, b, d);
        if (rc)
            port_no_answer(w, n, n->entry, "P_KeyTable, set", rc);
    }
}

static const char *membership(bool full, bool limited)
{
    return full ? "full membership" : limited ? "limited membership" : "none";
}

/* Puts the key into the table: at its first place or the first free one, or removes it. */
static void put_pkey(struct pkey_table *t, unsigned key, bool want)
{
    unsigned place = t->n;
    for (unsigned k = t->n; k--;) {
        bool is = (t->key[k] & 0x7fff) == key;
        if (is || (!t->key[k] && (place == t->n || (t->key[place] & 0x7fff) != key)))
            place = k;
        if (is)
            t->key[k] = 0;
    }
    if (want && place < t->n)
        t->key[place] = (uint16_t)(0x8000 | key);
}

void port_compare_pkeys(struct look *w, const struct node *n, const struct policy *p, const struct host_keys *jobs,
                        bool mend)
{
    const struct policy_partition *part;
    struct pkey_table t, was;
    if (!read_pkeys(w, n, &t))
        return;
    was = t;
    for (unsigned i = 0; (part = policy_partition(p, i)); i++) {
        if (policy_partition_by_key(p, part->pkey) != part)
            continue;
        bool want = policy_is_member(p, jobs, part->pkey, n->desc), full = false, limited = false;
        for (unsigned k = 0; k < was.n; k++) {
            full = full || was.key[k] == (0x8000 | part->pkey);
            limited = limited || was.key[k] == part->pkey;
        }
        bool unknown = !jobs && !want && policy_has_job_members(p, part->pkey);
        if (unknown || (full == want && !limited))
            continue;
        char of[64];
        policy_partition_name(p, part, of);
        w->r->pkeys++;
        w->r->pkeys_lacking += want && !full;
        port_differs(w, n, n->entry, "P_Key 0x%04x of %s: expected %s found %s", part->pkey, of,
                     membership(want, false), membership(full, limited));
        put_pkey(&t, part->pkey, want);
    }
    if (mend)
        write_pkeys(w, n, &was, &t);
}

void port_compare_route_ahead(struct look *w, const struct port *p)
{
    for (unsigned i = 0; i < 1u << p->lmc && p->lid && p->state == STATE_ACTIVE; i++)
        smp_ahead(w->smp, &(struct smp_path){.lid = (uint16_t)(p->lid + i)}, SMP_NODE_INFO, 0, NULL);
}

void port_compare_route(struct look *w, const struct node *n, const struct port *p)
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
            port_differs(w, n, p->num, "LID %u leads to another node (0x%016" PRIx64 ")", path.lid, be64toh(guid));
        else
            port_differs(w, n, p->num, "LID %u: %s", path.lid,
                         p->lid ? "no route there from this host" : "none assigned");
        return;
    }
}
