/* SPDX-License-Identifier: BSD-3-Clause */
/* Policy to tables: see compile.h. */
#include "fabricd/compile.h"

#include <stdlib.h>
#include <string.h>

#define LIDS              0xbfffu
#define DEFAULT_TABLE_CAP 8 /* entries that every adapter and switch we know has */

static unsigned vls_code(unsigned vls)
{
    static const uint8_t vls_of[] = {0, 1, 2, 4, 8, 15};
    for (unsigned c = 1; c <= 5; c++)
        if (vls_of[c] == vls)
            return c;
    return 0;
}

/* The default class first: its bulk becomes service level 0 and VL 0. */
static void class_order(const struct policy *p, unsigned order[POLICY_CLASSES_MAX])
{
    unsigned n = 0;
    order[n++] = p->default_class;
    for (unsigned i = 0; i < p->num_classes; i++)
        if (i != p->default_class)
            order[n++] = i;
}

/* ---- service levels and lanes ---- */

static void assign_bulk(const struct policy *p, const unsigned *order, struct qos_tables *t, unsigned *next_sl,
                        unsigned *next_vl)
{
    for (unsigned k = 0; k < p->num_classes; k++) {
        unsigned i = order[k];
        struct class_levels *l = &t->classes[i];
        l->num_lanes = (uint8_t)p->classes[i].lanes;
        for (unsigned n = 0; n < l->num_lanes; n++) {
            l->sl_bulk[n] = (uint8_t)(*next_sl)++;
            l->vl_bulk[n] = (uint8_t)(*next_vl)++;
            t->sl2vl[l->sl_bulk[n]] = l->vl_bulk[n];
            l->vl_low[l->num_low++] = l->vl_bulk[n];
        }
    }
}

/* Classes whose small messages go ahead, the most important first; equals in the policy's order. */
static unsigned small_order(const struct policy *p, unsigned out[POLICY_CLASSES_MAX])
{
    unsigned n = 0;
    for (int priority = PRIORITY_HIGH; priority > PRIORITY_LOW; priority--)
        for (unsigned i = 0; i < p->num_classes; i++)
            if ((int)p->classes[i].priority == priority)
                out[n++] = i;
    return n;
}

static void assign_small(const struct policy *p, struct qos_tables *t, unsigned next_sl, unsigned first_vl,
                         unsigned room, unsigned quantum, struct diag *d)
{
    unsigned order[POLICY_CLASSES_MAX], n = small_order(p, order);
    for (unsigned i = 0; i < p->num_classes; i++) {
        t->classes[i].sl_small = (uint8_t)next_sl++;
        t->classes[i].vl_small = t->classes[i].vl_bulk[0];
    }
    for (unsigned k = 0; k < n && room; k++) {
        struct class_levels *l = &t->classes[order[k]];
        unsigned lane = k < room ? k : room - 1; /* the last lane takes all who are left */
        l->vl_small = (uint8_t)(first_vl + lane);
        l->own_small_lane = lane < room - 1 || n <= room;
        if (lane == t->num_high) {
            t->high[t->num_high].vl = l->vl_small;
            t->high[t->num_high++].weight = (uint8_t)(p->classes[order[k]].priority * quantum);
        }
    }
    for (unsigned i = 0; i < p->num_classes; i++)
        t->sl2vl[t->classes[i].sl_small] = t->classes[i].vl_small;
    if (n && !room)
        diag_warn(d, p->vls_at, "all %u virtual lanes carry bulk: small messages go with the bulk of their class",
                  p->vls);
    else if (n > room)
        diag_warn(d, p->vls_at,
                  "%u classes want a lane for small messages and %u are left: the less important share the last", n,
                  room);
}

/*
 * The levels between small and bulk, after all others: a policy without them has the same tables as before there were
 * such. room: lanes that are left, and have a place in the low-priority table.
 */
static void assign_medium(const struct policy *p, struct qos_tables *t, unsigned next_sl, unsigned next_vl,
                          unsigned room, struct diag *d)
{
    unsigned wanted = 0, given = 0;
    for (unsigned i = 0; i < p->num_classes; i++) {
        struct class_levels *l = &t->classes[i];
        l->num_medium = (uint8_t)p->classes[i].num_medium;
        wanted += l->num_medium;
        for (unsigned n = 0; n < l->num_medium; n++) {
            l->sl_medium[n] = (uint8_t)next_sl++;
            l->vl_medium[n] = l->vl_bulk[0];
        }
    }
    for (int priority = PRIORITY_HIGH; priority >= PRIORITY_LOW; priority--)
        for (unsigned i = 0; i < p->num_classes; i++) {
            struct class_levels *l = &t->classes[i];
            for (unsigned n = 0; n < l->num_medium && (int)p->classes[i].priority == priority && given < room; n++) {
                l->vl_medium[n] = l->vl_low[l->num_low++] = (uint8_t)next_vl++;
                given++;
            }
        }
    for (unsigned i = 0; i < p->num_classes; i++)
        for (unsigned n = 0; n < t->classes[i].num_medium; n++)
            t->sl2vl[t->classes[i].sl_medium[n]] = t->classes[i].vl_medium[n];
    if (given < wanted)
        diag_warn(d, p->vls_at,
                  "%u levels between small messages and bulk want a lane and %u are left: the others, of the less "
                  "important classes, go with the bulk of their class",
                  wanted, room);
}

/* ---- weights ---- */

struct low_plan {
    unsigned packets[POLICY_CLASSES_MAX]; /* of every lane of the class, in one round of the table */
    double worst;                         /* how far the worst class is from its share, in points of percent */
};

static bool low_try(const struct policy *p, const struct qos_tables *t, const double *want, unsigned round,
                    unsigned per_entry, unsigned cap, struct low_plan *out)
{
    unsigned total = 0, entries = 0;
    for (unsigned i = 0; i < p->num_classes; i++) {
        unsigned lanes = t->classes[i].num_low;
        double exact = want[i] / 100.0 / lanes * round;
        unsigned n = exact < 1.0 ? 1 : (unsigned)(exact + 0.5);
        out->packets[i] = n;
        total += n * lanes;
        entries += lanes * ((n + per_entry - 1) / per_entry);
    }
    out->worst = 0;
    for (unsigned i = 0; i < p->num_classes; i++) {
        double off = 100.0 * out->packets[i] * t->classes[i].num_low / total - want[i];
        if (off < 0)
            off = -off;
        if (off > out->worst)
            out->worst = off;
    }
    return entries <= cap;
}

/* The shortest round of the table that gives every class its share within half a point, else the closest that fits. */
static bool low_best(const struct policy *p, const struct qos_tables *t, const double *want, unsigned lanes,
                     unsigned per_entry, unsigned cap, struct low_plan *best)
{
    bool found = false;
    for (unsigned round = lanes; round <= cap * per_entry; round++) {
        struct low_plan plan;
        if (!low_try(p, t, want, round, per_entry, cap, &plan))
            continue;
        if (!found || plan.worst < best->worst - 1e-9)
            *best = plan;
        found = true;
        if (best->worst <= 0.5)
            break;
    }
    return found;
}

struct slot {
    double at; /* where in the round, 0..1 */
    struct vlarb e;
};

static int by_place(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (int)x->e.vl - (int)y->e.vl;
}

/* A lane with several entries has them spread over the round, so that it need not wait for all the others at once. */
static void low_fill(const struct policy *p, const struct low_plan *plan, unsigned per_entry, unsigned quantum,
                     struct qos_tables *t)
{
    struct slot slots[TABLE_ENTRIES_MAX];
    unsigned n = 0, total = 0;
    for (unsigned i = 0; i < p->num_classes; i++) {
        struct class_levels *l = &t->classes[i];
        unsigned entries = (plan->packets[i] + per_entry - 1) / per_entry;
        total += plan->packets[i] * l->num_low;
        for (unsigned lane = 0; lane < l->num_low; lane++)
            for (unsigned e = 0; e < entries; e++) {
                unsigned packets = plan->packets[i] / entries + (e < plan->packets[i] % entries);
                slots[n++] = (struct slot){(e + 0.5) / entries, {l->vl_low[lane], (uint8_t)(packets * quantum)}};
            }
    }
    qsort(slots, n, sizeof(slots[0]), by_place);
    for (unsigned e = 0; e < n; e++)
        t->low[e] = slots[e].e;
    t->num_low = n;
    for (unsigned i = 0; i < p->num_classes; i++)
        t->classes[i].share = 100.0 * plan->packets[i] * t->classes[i].num_low / total;
}

static void compile_low(const struct policy *p, unsigned bulk, unsigned cap, unsigned quantum, struct qos_tables *t,
                        struct diag *d)
{
    unsigned per_entry = 255 / quantum, total = 0, lanes = 0;
    double want[POLICY_CLASSES_MAX];
    struct low_plan plan;
    for (unsigned i = 0; i < p->num_classes; i++)
        total += p->classes[i].share;
    for (unsigned i = 0; i < p->num_classes; i++)
        lanes += t->classes[i].num_low;
    for (unsigned i = 0; i < p->num_classes; i++)
        want[i] = 100.0 * p->classes[i].share / total;
    if (!low_best(p, t, want, lanes, per_entry, cap, &plan)) {
        diag_error(d, p->vls_at,
                   "the classes use %u lanes for bulk, but the ports' low-priority tables have %u entries", bulk, cap);
        return;
    }
    low_fill(p, &plan, per_entry, quantum, t);
    for (unsigned i = 0; i < p->num_classes; i++) {
        double off = t->classes[i].share - want[i];
        if (off > 2 || off < -2)
            diag_warn(
                d, p->classes[i].share_at,
                "class '%s' asks for %.1f percent, the tables of %u entries can give %.1f; use fewer classes or lanes, "
                "or rounder shares",
                p->classes[i].name, want[i], cap, t->classes[i].share);
    }
}

/*
 * The port sends up to limit * 4096 bytes from the high-priority table before the low-priority table may send one
 * packet; that packet must be at least bulk_minimum percent of the whole. 0 lets one packet through by turns.
 */
static unsigned limit_of(const struct policy *p, unsigned mtu)
{
    if (p->high_limit >= 0)
        return (unsigned)p->high_limit;
    unsigned minimum = p->bulk_minimum ? p->bulk_minimum : 20, bytes = mtu * (100 - minimum) / minimum;
    return bytes / 4096 > 254 ? 254 : bytes / 4096;
}

/* ---- what the fabric must be able to do ---- */

static void check_routing(const struct policy *p, const struct fabric_caps *caps, struct diag *d)
{
    static const char *const need_vls[] = {"lash", "dfsssp", "torus-2QoS", "nue", NULL};
    if (!caps->routing_engine)
        return;
    for (const char *s = caps->routing_engine; *s;) {
        size_t n = strcspn(s, ", \t");
        for (int i = 0; need_vls[i]; i++)
            if (n == strlen(need_vls[i]) && !strncmp(s, need_vls[i], n))
                diag_error(
                    d, p->vls_at,
                    "opensm's routing engine %s needs service levels and lanes of its own to be free of deadlock; "
                    "choose another routing_engine in opensm.conf, or no classes",
                    need_vls[i]);
        if (n == 5 && !strncmp(s, "ftree", n) && p->lmc)
            diag_error(d, p->lmc_at,
                       "opensm's routing engine ftree does not know lmc %u and would silently become minhop", p->lmc);
        s += n;
        s += strspn(s, ", \t");
    }
}

static void check_caps(const struct policy *p, const struct fabric_caps *caps, const struct qos_tables *t,
                       struct diag *d)
{
    if (caps->vls && p->vls > caps->vls)
        diag_error(d, p->vls_at, "vls is %u, but some link of the fabric can have only %u data virtual lanes", p->vls,
                   caps->vls);
    if (caps->high_cap && t->num_high > caps->high_cap)
        diag_error(d, p->vls_at, "%u lanes for small messages, but the ports' high-priority tables have %u entries",
                   t->num_high, caps->high_cap);
    if (p->mtu && caps->mtu > p->mtu)
        diag_warn(d, p->vls_at, "links have an MTU of %u and the weights are made for %u: shares will be inexact",
                  caps->mtu, p->mtu);
    if ((uint64_t)caps->ca_ports << p->lmc > LIDS)
        diag_error(d, p->lmc_at, "%u adapter ports with 2^%u LIDs each are more than the %u LIDs of a subnet",
                   caps->ca_ports, p->lmc, LIDS);
    if (caps->sm_sl >= SLS)
        diag_error(d, (struct place){0}, "opensm's sm_sl is %u; allowed: 0 to 15", caps->sm_sl);
    check_routing(p, caps, d);
}

bool policy_compile(const struct policy *p, const struct fabric_caps *caps, struct qos_tables *t, struct diag *d)
{
    unsigned errors = d->errors, lanes = 0, levels = 0, order[POLICY_CLASSES_MAX], next_sl = 0, next_vl = 0;
    unsigned cap = caps->low_cap ? caps->low_cap : DEFAULT_TABLE_CAP, room;
    unsigned mtu = p->mtu ? p->mtu : caps->mtu ? caps->mtu : 4096, quantum = mtu < 64 ? 1 : mtu / 64;
    *t = (struct qos_tables){.lmc = (uint8_t)p->lmc, .vls = (uint8_t)p->vls, .num_classes = p->num_classes};
    t->op_vls_code = (uint8_t)vls_code(p->vls);
    for (unsigned i = 0; i < p->num_classes; i++)
        lanes += p->classes[i].lanes;
    for (unsigned i = 0; i < p->num_classes; i++)
        levels += 1 + p->classes[i].num_medium;
    if (lanes > p->vls)
        diag_error(d, p->vls_at, "the classes use %u lanes for bulk, and vls is %u", lanes, p->vls);
    if (lanes + levels > SLS)
        diag_error(d, p->vls_at,
                   "the classes need %u service levels (one for small messages%s and one for each lane); there are %d",
                   lanes + levels, levels > p->num_classes ? ", one for each size in medium" : "", SLS);
    if (d->errors > errors)
        return false;

    /* Levels that no class has stay with the default class: sl2vl is zero there, and VL 0 is its bulk. */
    class_order(p, order);
    assign_bulk(p, order, t, &next_sl, &next_vl);
    assign_small(p, t, next_sl, next_vl, p->vls - lanes, quantum, d);
    next_vl += t->num_high;
    room = p->vls - next_vl;
    if (cap < lanes || room > cap - lanes)
        room = cap < lanes ? 0 : cap - lanes;
    assign_medium(p, t, next_sl + p->num_classes, next_vl, room, d);
    t->high_limit = (uint8_t)limit_of(p, mtu);
    compile_low(p, lanes, cap, quantum, t, d);
    check_caps(p, caps, t, d);
    return d->errors == errors;
}

/* ---- text ---- */

void tables_vlarb_text(struct text *out, const struct vlarb *e, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        text_printf(out, "%s%u:%u", i ? "," : "", e[i].vl, e[i].weight);
}

void tables_sl2vl_text(struct text *out, const uint8_t sl2vl[SLS])
{
    for (unsigned i = 0; i < SLS; i++)
        text_printf(out, "%s%u", i ? "," : "", sl2vl[i]);
}

static void list_text(struct text *out, const uint8_t *v, unsigned n)
{
    text_put(out, "[", 1);
    for (unsigned i = 0; i < n; i++)
        text_printf(out, "%s%u", i ? ", " : "", v[i]);
    text_put(out, "]", 1);
}

static void rails_text(struct text *out, const struct fd_spread *s)
{
    if (!*s->small && !*s->large)
        return;
    text_printf(out, ", rails: {small: ");
    text_yaml_string(out, *s->small ? s->small : "auto");
    text_printf(out, ", large: ");
    text_yaml_string(out, *s->large ? s->large : "auto");
    text_printf(out, "}");
}

void tables_classes_text(struct text *out, const struct policy *p, const struct qos_tables *t, const char *indent)
{
    for (unsigned i = 0; i < p->num_classes; i++) {
        const struct class_levels *l = &t->classes[i];
        text_printf(out, "%s- {name: ", indent);
        text_yaml_string(out, p->classes[i].name);
        text_printf(out, ", share: %.1f, priority: %u, small: %u, sl_small: %u, vl_small: %u, sl_bulk: ", l->share,
                    p->classes[i].priority, p->classes[i].small_max, l->sl_small, l->vl_small);
        list_text(out, l->sl_bulk, l->num_lanes);
        text_printf(out, ", vl_bulk: ");
        list_text(out, l->vl_bulk, l->num_lanes);
        for (unsigned n = 0; n < l->num_medium; n++)
            text_printf(out, "%s{upto: %u, sl: %u, vl: %u}", n ? ", " : ", medium: [", p->classes[i].medium_max[n],
                        l->sl_medium[n], l->vl_medium[n]);
        text_printf(out, "%s", l->num_medium ? "]" : "");
        rails_text(out, &p->classes[i].spread);
        text_printf(out, "}\n");
    }
}

void tables_plan_text(struct text *out, const struct policy *p, const struct qos_tables *t)
{
    text_printf(out, "classes:\n");
    tables_classes_text(out, p, t, "  ");
    text_printf(out, "tables:\n  sl2vl: \"");
    tables_sl2vl_text(out, t->sl2vl);
    text_printf(out, "\"\n  vlarb_high: \"");
    tables_vlarb_text(out, t->high, t->num_high);
    text_printf(out, "\"\n  vlarb_low: \"");
    tables_vlarb_text(out, t->low, t->num_low);
    text_printf(out, "\"\n  high_limit: %u\n  vls: %u\n  lmc: %u\n", t->high_limit, t->vls, t->lmc);
}

bool tables_equal(const struct qos_tables *a, const struct qos_tables *b)
{
    return !memcmp(a->sl2vl, b->sl2vl, SLS) && a->num_low == b->num_low && a->num_high == b->num_high &&
           !memcmp(a->low, b->low, a->num_low * sizeof(a->low[0])) &&
           !memcmp(a->high, b->high, a->num_high * sizeof(a->high[0])) && a->high_limit == b->high_limit &&
           a->lmc == b->lmc && a->vls == b->vls;
}
