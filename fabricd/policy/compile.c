/* SPDX-License-Identifier: BSD-3-Clause */
/* Policy and lock to tables: see compile.h. */
#include "fabricd/policy/compile.h"
#include "fabricd/policy/ahead.h"
#include "fabricd/policy/lanes.h"
#include "fabricd/policy/wait.h"
#include "fabricd/policy/weights.h"

#include <inttypes.h>
#include <string.h>

#define LIDS               0xbfffu
#define DEFAULT_TABLE_CAP  8 /* entries supported by every known adapter and switch */
#define DEFAULT_MTU        4096u
#define LIMIT_BYTES        4096u
#define LIMIT_NONE         255
#define SHARE_OFF_POINTS   2.0
#define SHARE_OFF_RELATIVE 0.25

/* The input of a compilation: the facts of the lock, or the minimum of all hardware. */
struct job {
    const struct policy *p;
    const struct policy_lock *lock;
    unsigned low_cap, high_cap, mtu;
};

static unsigned vls_code(unsigned vls)
{
    static const uint8_t vls_of[] = {0, 1, 2, 4, 8, 15};
    for (unsigned c = 1; c <= 5; c++)
        if (vls_of[c] == vls)
            return c;
    return 0;
}

/*
 * Entries of a table that opensm can write. A table has two blocks of 32 entries; of the second, opensm (3.3.23) writes
 * cap % 32 entries: of a full table none.
 */
static unsigned entries_or_default(unsigned cap)
{
    return !cap ? DEFAULT_TABLE_CAP : cap >= TABLE_ENTRIES_MAX ? TABLE_ENTRIES_MAX / 2 : cap;
}

/* ---- tables for priorities that are known ---- */

static unsigned single_lanes(const struct qos_tables *t, uint8_t out[POLICY_CLASSES_MAX * FD_MEDIUM_MAX])
{
    unsigned n = 0;
    for (unsigned i = 0; i < t->num_classes; i++)
        for (unsigned m = 0; m < t->classes[i].num_medium; m++)
            if (lanes_medium_own(&t->classes[i], m))
                out[n++] = t->classes[i].vl_medium[m];
    return n;
}

static void warn_of_shares(const struct job *j, const struct qos_tables *t, struct diag *d)
{
    double total = 0;
    for (unsigned i = 0; i < j->p->num_classes; i++)
        total += j->p->classes[i].share;
    for (unsigned i = 0; i < j->p->num_classes; i++) {
        double want = 100.0 * j->p->classes[i].share / total, off = t->classes[i].share - want;
        off = off < 0 ? -off : off;
        if (off > SHARE_OFF_POINTS || off > want * SHARE_OFF_RELATIVE)
            diag_warn(d, j->p->classes[i].share_at,
                      "class '%s' asks for %.1f percent, the tables of %u entries can give %.1f; use fewer classes or "
                      "lanes, or rounder shares",
                      j->p->classes[i].name, want, j->low_cap, t->classes[i].share);
    }
}

static void fill_low_tables(const struct job *j, struct qos_tables *t, struct diag *d)
{
    struct weight_group g[WEIGHT_GROUPS_MAX] = {0};
    uint8_t single[POLICY_CLASSES_MAX * FD_MEDIUM_MAX];
    unsigned n = 0, num_single = single_lanes(t, single), lanes = 0;
    const struct policy_class *first = &j->p->classes[0];
    bool ratio = first->ratio_small && t->classes[0].own_small_lane;
    for (unsigned i = 0; i < t->num_classes; i++) {
        struct class_levels *l = &t->classes[i];
        g[n++] = (struct weight_group){
            .want = ratio ? first->ratio_large : j->p->classes[i].share, .lanes = l->num_lanes, .vl = l->vl_bulk};
        lanes += l->num_lanes;
    }
    if (ratio) /* of the only class */
        g[n++] = (struct weight_group){.want = first->ratio_small, .lanes = 1, .vl = &t->classes[0].vl_small};
    if (!weights_fill(g, n, single, num_single, j->mtu, j->low_cap, t)) {
        diag_error(d, j->p->vls_at,
                   "the classes use %u lanes for bulk, but the ports' low-priority tables have %u entries",
                   lanes + ratio, j->low_cap);
        return;
    }
    for (unsigned i = 0; i < t->num_classes; i++)
        t->classes[i].share = ratio ? 100.0 : g[i].got;
    warn_of_shares(j, t, d);
}

unsigned policy_high_bytes(const struct policy *p, const struct qos_tables *t)
{
    unsigned most = 0;
    for (unsigned e = 0; e < t->num_high; e++)
        for (unsigned i = 0; i < t->num_classes; i++)
            if (t->classes[i].vl_small == t->high[e].vl && p->classes[i].small_max > most)
                most = p->classes[i].small_max;
    return t->num_high && !most ? 1 : most; /* control messages have no data, and travel there in any case */
}

/*
 * With a limit of 1 a packet that goes ahead need not wait for a packet of bulk because of another's control packet.
 * Traffic ahead beyond all budgets then gets 4096 bytes, and a packet begun before, for each packet of bulk; with 0 the
 * tables take turns, and bulk has at least half.
 */
static uint8_t limit_of(const struct job *j, const struct qos_tables *t)
{
    unsigned most = policy_high_bytes(j->p, t), high = LIMIT_BYTES + (most < j->mtu ? most : j->mtu);
    if (j->p->high_limit >= 0)
        return (uint8_t)j->p->high_limit;
    return 100 * j->mtu >= j->p->bulk_minimum * (j->mtu + high);
}

static void fill_tables(const struct job *j, const uint8_t *priority, struct qos_tables *t, struct diag *d)
{
    const struct policy *p = j->p;
    *t = (struct qos_tables){.lmc = (uint8_t)p->lmc, .vls = (uint8_t)p->vls, .num_classes = p->num_classes};
    t->op_vls_code = (uint8_t)vls_code(p->vls);
    t->oversubscription = j->lock->fabric.oversubscription;
    lanes_assign(p, j->lock, priority, j->low_cap, j->high_cap, t, d);
    t->high_limit = limit_of(j, t);
    fill_low_tables(j, t, d);
}

/* ---- goals ---- */

static uint64_t small_wait_ns(const struct job *j, const struct qos_tables *t, unsigned i)
{
    struct fabric_caps c = j->lock->fabric;
    struct wait_load load = {.high_bytes = policy_high_bytes(j->p, t)};
    c.mtu = j->mtu;
    return tables_wait_ns(t, t->classes[i].vl_small, &c, &load);
}

static bool has_goal(const struct policy_class *c)
{
    return c->latency_ns && !c->has_priority;
}

/*
 * A goal missed with the lowest priority raises the priority, which makes others wait longer: repeated until nothing
 * changes.
 */
static void choose_priorities(const struct job *j, uint8_t priority[POLICY_CLASSES_MAX], struct diag *d)
{
    bool moved = false;
    for (unsigned i = 0; i < j->p->num_classes; i++) {
        const struct policy_class *c = &j->p->classes[i];
        priority[i] = (uint8_t)(has_goal(c) ? PRIORITY_LOW : c->priority);
        moved |= has_goal(c);
        if (!has_goal(c) || j->lock->fabric.rate_mbps)
            continue;
        priority[i] = PRIORITY_NORMAL;
        diag_warn(d, c->latency_at,
                  "class '%s': whether its latency can be met is known when the fabric is; until then it has priority "
                  "normal",
                  c->name);
    }
    while (moved && j->lock->fabric.rate_mbps) {
        struct qos_tables t;
        struct diag scratch = {.file = d->file};
        fill_tables(j, priority, &t, &scratch);
        moved = false;
        for (unsigned i = 0; i < j->p->num_classes && !scratch.errors; i++)
            if (has_goal(&j->p->classes[i]) && priority[i] < PRIORITY_HIGH &&
                small_wait_ns(j, &t, i) > j->p->classes[i].latency_ns) {
                priority[i]++;
                moved = true;
                break; /* the others again with the new tables */
            }
        text_free(&scratch.out);
    }
}

static void check_goals(const struct job *j, const struct qos_tables *t, struct diag *d)
{
    const struct fabric_caps *f = &j->lock->fabric;
    for (unsigned i = 0; f->rate_mbps && i < j->p->num_classes; i++) {
        const struct policy_class *c = &j->p->classes[i];
        uint64_t wait = has_goal(c) ? small_wait_ns(j, t, i) : 0;
        if (wait <= c->latency_ns)
            continue;
        if (wait == WAIT_UNBOUNDED)
            diag_error(d, c->latency_at, "class '%s' asks for a latency, and with high_limit %d no bound can be given",
                       c->name, j->p->high_limit);
        else
            diag_error(
                d, c->latency_at,
                "class '%s' asks for %.1f us, and a small message may wait up to %.1f us in this fabric (%u links, "
                "%u Mb/s, MTU %u) even with the highest priority; allowed: %llu us or more",
                c->name, c->latency_ns / 1000.0, (double)wait / 1000.0, f->hops ? f->hops : WAIT_HOPS, f->rate_mbps,
                j->mtu, (unsigned long long)((wait + 999) / 1000));
    }
}

/* ---- what must be true before and after ---- */

static void check_policy(const struct policy *p, const struct policy_lock *lock, struct diag *d)
{
    unsigned lanes = 0;
    for (unsigned i = 0; i < p->num_classes; i++) {
        const struct policy_class *c = &p->classes[i];
        const struct lock_class *have = lock_find(lock, c->name);
        lanes += c->lanes;
        if (!have || have->num_medium < c->num_medium || have->num_bulk < c->lanes)
            diag_error(d, c->at, "the lock has not all service levels that class '%s' needs", c->name);
        if (c->ratio_small && p->num_classes > 1)
            diag_error(
                d, c->ratio_at,
                "class '%s' has a ratio, which is for a policy of one class: weighted round robin knows no classes "
                "in classes, so whenever the small or the large messages of this one pause, their part would go to "
                "all lanes instead of to the other half",
                c->name);
    }
    if (lanes > p->vls)
        diag_error(d, p->vls_at, "the classes use %u lanes for bulk, and vls is %u", lanes, p->vls);
}

/* The port sends up to limit * 4096 bytes from the high-priority table before the other one may send a packet. */
static void warn_of_limit(const struct job *j, const struct qos_tables *t, struct diag *d)
{
    unsigned bytes = t->high_limit * LIMIT_BYTES;
    if (j->p->high_limit < 2 || !t->num_high)
        return;
    if (t->high_limit == LIMIT_NONE)
        diag_warn(
            d, j->p->limits_at,
            "high_limit 255: small messages of any class with a priority can take all of a link, whatever its share");
    else
        diag_warn(
            d, j->p->limits_at,
            "high_limit %u lets %u bytes of small messages go for every packet of %u bytes of bulk: small messages "
            "of any class with a priority can take %u percent of a link, whatever its share, if their senders know no "
            "budget",
            t->high_limit, bytes, j->mtu, 100 * bytes / (bytes + j->mtu));
}

static void check_caps(const struct job *j, const struct qos_tables *t, struct diag *d)
{
    const struct policy *p = j->p;
    const struct fabric_caps *f = &j->lock->fabric;
    if (f->vls && p->vls > f->vls)
        diag_error(d, p->vls_at, "vls is %u, but some link of the fabric can have only %u data virtual lanes", p->vls,
                   f->vls);
    if (f->high_cap && t->num_high > f->high_cap)
        diag_error(d, p->vls_at, "%u lanes for small messages, but the ports' high-priority tables have %u entries",
                   t->num_high, f->high_cap);
    if (f->mtu && p->mtu && f->mtu > p->mtu)
        diag_error(d, p->vls_at, "mtu is %u, and links have %u, for which the weights must be made; leave mtu out",
                   p->mtu, f->mtu);
    warn_of_limit(j, t, d);
}

bool policy_compile(const struct policy *p, const struct policy_lock *lock, struct qos_tables *t, struct diag *d)
{
    unsigned errors = d->errors, mtu = p->mtu ? p->mtu : lock->fabric.mtu ? lock->fabric.mtu : DEFAULT_MTU;
    uint8_t priority[POLICY_CLASSES_MAX];
    struct job j = {p, lock, entries_or_default(lock->fabric.low_cap), entries_or_default(lock->fabric.high_cap), mtu};
    check_policy(p, lock, d);
    if (d->errors > errors)
        return false;
    choose_priorities(&j, priority, d);
    fill_tables(&j, priority, t, d);
    check_goals(&j, t, d);
    check_caps(&j, t, d);
    return d->errors == errors;
}

/* Lanes of a link: as many as the policy wants, or as the plane can have. */
static uint32_t lanes_of_policy(const struct policy *p, const struct fabric_caps *caps)
{
    return caps->vls && caps->vls < p->vls ? caps->vls : p->vls;
}

static bool compile_plane(const struct policy *p, const struct policy_lock *lock, const struct lock_plane *plane,
                          struct qos_tables *t, struct diag *d)
{
    struct policy of_plane = *p;
    struct policy_lock with = *lock;
    struct diag said = {.file = d->file};
    of_plane.vls = lanes_of_policy(p, &plane->caps);
    with.fabric = plane->caps;
    with.fabric.oversubscription = lock->fabric.oversubscription;
    bool good = policy_compile(&of_plane, &with, t, &said);
    if (good && of_plane.vls < p->vls)
        diag_warn(d, p->vls_at,
                  "vls is %u, and links of the plane of port 0x%016" PRIx64
                  " can have only %u: there classes share lanes",
                  p->vls, plane->guid, of_plane.vls);
    if (!good)
        diag_error(d, p->vls_at, "the policy does not fit the plane of port 0x%016" PRIx64 ":\n%.*s", plane->guid,
                   (int)(said.out.len ? said.out.len - 1 : 0), text_str(&said.out));
    text_free(&said.out);
    return good;
}

bool policy_compile_planes(const struct policy *p, const struct policy_lock *lock, struct qos_tables *t,
                           struct plane_tables *planes, struct diag *d)
{
    bool good = policy_compile(p, lock, t, d);
    *planes = (struct plane_tables){0};
    for (unsigned i = 0; good && i < lock->num_planes; i++) {
        planes->guid[i] = lock->planes[i].guid;
        good = compile_plane(p, lock, &lock->planes[i], &planes->of[i], d);
        planes->n++;
    }
    return good;
}

const struct qos_tables *tables_of_plane(const struct plane_tables *planes, const struct qos_tables *common,
                                         uint64_t guid)
{
    for (unsigned i = 0; i < planes->n; i++)
        if (planes->guid[i] == guid)
            return &planes->of[i];
    return common;
}

static void check_routing(const struct policy *p, const char *engines, struct diag *d)
{
    static const char *const need_vls[] = {"lash", "dfsssp", "torus-2QoS", "nue", NULL};
    if (!engines)
        return;
    for (const char *s = engines; *s;) {
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

bool policy_check_subnet(const struct policy *p, const struct subnet *s, struct diag *d)
{
    unsigned errors = d->errors;
    if ((uint64_t)s->ca_ports << p->lmc > LIDS)
        diag_error(d, p->lmc_at, "%u adapter ports with 2^%u LIDs each are more than the %u LIDs of a subnet",
                   s->ca_ports, p->lmc, LIDS);
    if (s->sm_sl >= SLS)
        diag_error(d, (struct place){0}, "opensm's sm_sl is %u; allowed: 0 to 15", s->sm_sl);
    check_routing(p, s->routing_engine, d);
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

static void put_partition_text(struct text *out, const struct policy_partition *part)
{
    if (part->pkey)
        text_printf(out, ", pkey: \"0x%04x\"", part->pkey);
    for (unsigned n = 0; n < part->num_members; n++) {
        text_printf(out, n ? ", " : ", members: [");
        text_yaml_string(out, part->members[n]);
    }
    text_printf(out, "%s%s", part->num_members ? "]" : "", part->of_jobs ? ", job_members: \"yes\"" : "");
}

static void put_pkeys_text(struct text *out, const struct policy *p)
{
    for (unsigned i = 0; i < p->num_pkeys; i++) {
        const struct pattern *of = &p->pkeys[i].of;
        const struct {
            const char *key, *value;
        } all[] = {{"user", of->user}, {"group", of->group},         {"account", of->account},
                   {"qos", of->qos},   {"partition", of->partition}, {"name", of->name}};
        const char *before = "";
        text_printf(out, "%s  - {", i ? "" : "pkeys:\n");
        for (unsigned k = 0; k < sizeof(all) / sizeof(all[0]); k++)
            if (*all[k].value) {
                text_printf(out, "%s%s: ", before, all[k].key);
                text_yaml_string(out, all[k].value);
                before = ", ";
            }
        put_partition_text(out, &p->pkeys[i].partition);
        text_printf(out, "}\n");
    }
}

void tables_classes_text(struct text *out, const struct policy *p, const struct qos_tables *t, const char *indent)
{
    double ahead[POLICY_CLASSES_MAX];
    ahead_budgets(t, ahead);
    for (unsigned i = 0; i < p->num_classes; i++) {
        const struct class_levels *l = &t->classes[i];
        text_printf(out, "%s- {name: ", indent);
        text_yaml_string(out, p->classes[i].name);
        text_printf(out, ", share: %.1f, priority: %u, small: %u, sl_small: %u, vl_small: %u, sl_bulk: ", l->share,
                    l->priority, p->classes[i].small_max, l->sl_small, l->vl_small);
        list_text(out, l->sl_bulk, l->num_lanes);
        text_printf(out, ", vl_bulk: ");
        list_text(out, l->vl_bulk, l->num_lanes);
        if (ahead[i] > 0)
            text_printf(out, ", ahead: %.2f", ahead[i]);
        for (unsigned n = 0; n < l->num_medium; n++)
            text_printf(out, "%s{upto: %u, sl: %u, vl: %u}", n ? ", " : ", medium: [", p->classes[i].medium_max[n],
                        l->sl_medium[n], l->vl_medium[n]);
        text_printf(out, "%s", l->num_medium ? "]" : "");
        rails_text(out, &p->classes[i].spread);
        if (p->classes[i].paths && p->classes[i].paths < FD_PATHS_MAX)
            text_printf(out, ", paths: %u", p->classes[i].paths);
        put_partition_text(out, &p->classes[i].partition);
        text_printf(out, "}\n");
    }
}

void tables_planes_text(struct text *out, const struct plane_tables *planes, const char *indent)
{
    for (unsigned i = 0; i < planes->n; i++) {
        const struct qos_tables *t = &planes->of[i];
        text_printf(out, "%s- {port: \"0x%016" PRIx64 "\", vls: %u, high_limit: %u, sl2vl: \"", indent, planes->guid[i],
                    t->vls, t->high_limit);
        tables_sl2vl_text(out, t->sl2vl);
        text_printf(out, "\", vlarb_high: \"");
        tables_vlarb_text(out, t->high, t->num_high);
        text_printf(out, "\", vlarb_low: \"");
        tables_vlarb_text(out, t->low, t->num_low);
        text_printf(out, "\"}\n");
    }
}

void tables_plan_text(struct text *out, const struct policy *p, const struct qos_tables *t)
{
    text_printf(out, "classes:\n");
    tables_classes_text(out, p, t, "  ");
    put_pkeys_text(out, p);
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

bool tables_planes_equal(const struct plane_tables *a, const struct plane_tables *b)
{
    bool same = a->n == b->n;
    for (unsigned i = 0; same && i < a->n; i++)
        same = a->guid[i] == b->guid[i] && tables_equal(&a->of[i], &b->of[i]);
    return same;
}
