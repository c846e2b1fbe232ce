/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes through forwarding tables: see routes.h. */
#include "fabricd/fabric/routes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK      64u   /* LIDs of a record */
#define BLOCKS_MAX 768u  /* up to the last unicast LID, 0xbfff */
#define TABLE_AT   8     /* in the record: after LID, block number and 4 bytes */
#define NO_PORT    0xffu /* of a LID without a way in the table */

static uint16_t get16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

void routes_free(struct routes *r)
{
    for (unsigned i = 0; i < r->num_tables; i++)
        free(r->table[i].out);
    free(r->table);
    free(r->cable);
    *r = (struct routes){0};
}

size_t routes_memory(const struct routes *r)
{
    size_t bytes = r->room * sizeof(*r->table) + r->num_cables * sizeof(*r->cable);
    for (unsigned i = 0; i < r->num_tables; i++)
        bytes += r->table[i].num_lids;
    return bytes;
}

void routes_forget(struct routes *r, uint64_t before)
{
    for (unsigned i = 0; i < r->num_tables; i++)
        r->table[i].stale |= r->table[i].read < before;
    r->has_cables &= r->cables_read >= before;
}

unsigned routes_parts(const struct routes *r)
{
    return 1 + r->num_tables;
}

bool routes_stale(const struct routes *r, unsigned i, routes_need *what)
{
    *what = i ? r->table[i - 1].lid : ROUTES_CABLES;
    return i ? r->table[i - 1].stale : r->cable && !r->has_cables;
}

struct routes_count routes_count(const struct routes *r)
{
    struct routes_count n = {0};
    for (unsigned i = 0, k; i < r->num_cables; i = k) {
        for (k = i + 1; k < r->num_cables && r->cable[k].lid == r->cable[i].lid; k++)
            ;
        *(k > i + 1 ? &n.switches : &n.adapters) += 1;
    }
    return n;
}

/* ---- tables ---- */

/* The first place of a switch with this LID or a higher one. */
static unsigned place_of(const struct routes *r, uint16_t lid)
{
    unsigned low = 0, high = r->num_tables;
    while (low < high) {
        unsigned mid = (low + high) / 2;
        if (r->table[mid].lid < lid)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static const struct routes_table *table_find(const struct routes *r, uint16_t lid)
{
    unsigned i = place_of(r, lid);
    return i < r->num_tables && r->table[i].lid == lid && !r->table[i].stale ? &r->table[i] : NULL;
}

static bool same_table(const struct routes_table *a, const struct routes_table *b)
{
    return a->num_lids == b->num_lids && !memcmp(a->out, b->out, a->num_lids);
}

/* Puts the table in its place, and frees the table with the same LID. -ENOMEM: there is no room. */
static int table_put(struct routes *r, const struct routes_table *t)
{
    unsigned i = place_of(r, t->lid);
    if (i < r->num_tables && r->table[i].lid == t->lid) {
        r->changed |= !same_table(&r->table[i], t);
        free(r->table[i].out);
        r->table[i] = *t;
        return 0;
    }
    if (r->num_tables == r->room) {
        unsigned room = r->room ? 2 * r->room : 16;
        struct routes_table *more = realloc(r->table, room * sizeof(*more));
        if (!more)
            return -ENOMEM;
        r->table = more;
        r->room = room;
    }
    memmove(r->table + i + 1, r->table + i, (r->num_tables - i) * sizeof(*r->table));
    r->num_tables++;
    r->table[i] = *t;
    return 0;
}

static int take_table(struct routes *r, uint16_t lid, const uint8_t *record, size_t num, size_t size, uint64_t now)
{
    struct routes_table t = {.lid = lid, .read = now};
    unsigned blocks = 0;
    for (size_t i = 0; i < num; i++) {
        unsigned block = get16(record + i * size + 2);
        if (get16(record + i * size) == lid && block < BLOCKS_MAX && block >= blocks)
            blocks = block + 1;
    }
    t.out = malloc(blocks * BLOCK + 1);
    if (!t.out)
        return -ENOMEM;
    t.num_lids = blocks * BLOCK;
    memset(t.out, NO_PORT, t.num_lids);
    for (size_t i = 0; i < num; i++) {
        unsigned block = get16(record + i * size + 2);
        if (get16(record + i * size) == lid && block < blocks)
            memcpy(t.out + block * BLOCK, record + i * size + TABLE_AT, BLOCK);
    }
    int rc = table_put(r, &t);
    if (rc)
        free(t.out);
    return rc;
}

/* ---- cables ---- */

static int by_end(const void *a, const void *b)
{
    const struct routes_cable *x = a, *y = b;
    return x->lid != y->lid ? (int)x->lid - (int)y->lid : (int)x->port - (int)y->port;
}

static bool same_cables(const struct routes_cable *a, const struct routes_cable *b, size_t num)
{
    for (size_t i = 0; i < num; i++)
        if (by_end(&a[i], &b[i]) || a[i].to != b[i].to)
            return false;
    return true;
}

static int take_cables(struct routes *r, const uint8_t *record, size_t num, size_t size, uint64_t now)
{
    struct routes_cable *cable = calloc(num + 1, sizeof(*cable));
    if (!cable)
        return -ENOMEM;
    for (size_t i = 0; i < num; i++) {
        const uint8_t *at = record + i * size;
        cable[i] = (struct routes_cable){.lid = get16(at), .port = at[2], .to = get16(at + 4)};
    }
    qsort(cable, num, sizeof(*cable), by_end);
    r->changed |= r->cable && (num != r->num_cables || !same_cables(cable, r->cable, num));
    free(r->cable);
    r->cable = cable;
    r->num_cables = (unsigned)num;
    r->has_cables = true;
    r->cables_read = now;
    return 0;
}

int routes_take(struct routes *r, routes_need what, const uint8_t *record, size_t num, size_t size, uint64_t now)
{
    if (size < (what == ROUTES_CABLES ? ROUTES_LINK_RECORD : ROUTES_TABLE_RECORD))
        num = 0;
    return what == ROUTES_CABLES ? take_cables(r, record, num, size, now) : take_table(r, what, record, num, size, now);
}

/* The LID at the other end of the cable in a port, or 0. */
static uint16_t far_end(const struct routes *r, uint16_t lid, unsigned port)
{
    struct routes_cable key = {.lid = lid, .port = (uint8_t)port};
    const struct routes_cable *c = bsearch(&key, r->cable, r->num_cables, sizeof(key), by_end);
    return c ? c->to : 0;
}

/* The same for an adapter's port, which has one cable: the number of the port is ignored. */
static uint16_t first_switch(const struct routes *r, uint16_t lid)
{
    unsigned low = 0, high = r->num_cables;
    while (low < high) {
        unsigned mid = (low + high) / 2;
        if (r->cable[mid].lid < lid)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->num_cables && r->cable[low].lid == lid ? r->cable[low].to : 0;
}

/* ---- traces ---- */

enum routes_end routes_trace(const struct routes *r, uint16_t from, uint16_t to, uint16_t to_base, struct route *out,
                             routes_need *need)
{
    uint16_t lid;
    out->num = 0;
    *need = ROUTES_CABLES;
    if (!r->has_cables)
        return ROUTES_NEEDS;
    for (lid = first_switch(r, from); lid && lid != to_base;) {
        const struct routes_table *t = table_find(r, lid);
        *need = lid;
        if (!t)
            return ROUTES_NEEDS;
        unsigned port = to < t->num_lids ? t->out[to] : NO_PORT;
        if (!port || port == NO_PORT || out->num == ROUTES_HOPS_MAX)
            return ROUTES_NOWHERE;
        out->hop[out->num++] = (struct routes_hop){lid, (uint8_t)port};
        lid = far_end(r, lid, port);
    }
    return lid ? ROUTES_THERE : ROUTES_NOWHERE;
}

enum routes_end routes_pair(const struct routes *r, uint16_t from, uint16_t to, unsigned num, struct routes_pair *out,
                            routes_need *need)
{
    out->num = num < FD_PATHS_MAX ? num : FD_PATHS_MAX;
    for (unsigned i = 0; i < out->num; i++) {
        enum routes_end there = routes_trace(r, from, (uint16_t)(to + i), to, &out->there[i], need);
        if (there == ROUTES_NEEDS)
            return there;
        enum routes_end back = routes_trace(r, to, (uint16_t)(from + i), from, &out->back[i], need);
        if (back == ROUTES_NEEDS)
            return back;
        out->has[i] = there == ROUTES_THERE && back == ROUTES_THERE;
    }
    return out->num && out->has[0] ? ROUTES_THERE : ROUTES_NOWHERE;
}

/* ---- disjoint ones ---- */

static bool share_cable(const struct route *a, const struct route *b)
{
    for (unsigned i = 0; i + 1 < a->num; i++)
        for (unsigned k = 0; k + 1 < b->num; k++)
            if (a->hop[i].lid == b->hop[k].lid && a->hop[i].port == b->hop[k].port)
                return true;
    return false;
}

/* It crosses cables between switches, and shares none with path k. */
static bool is_apart(const struct routes_pair *p, unsigned i, unsigned k)
{
    return p->has[i] && p->there[i].num > 1 && p->back[i].num > 1 && !share_cable(&p->there[i], &p->there[k]) &&
           !share_cable(&p->back[i], &p->back[k]);
}

unsigned routes_order(const struct routes_pair *p, uint8_t order[FD_PATHS_MAX])
{
    unsigned disjoint = 1, num;
    order[0] = 0;
    for (unsigned i = 1; i < p->num; i++) {
        bool apart = true;
        for (unsigned k = 0; k < disjoint && apart; k++)
            apart = is_apart(p, i, order[k]);
        if (apart)
            order[disjoint++] = (uint8_t)i;
    }
    num = disjoint;
    for (unsigned i = 1; i < p->num; i++)
        if (!memchr(order, (int)i, disjoint))
            order[num++] = (uint8_t)i;
    return disjoint;
}
