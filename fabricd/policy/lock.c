/* SPDX-License-Identifier: BSD-3-Clause */
/* Service levels given out once and kept: see lock.h. How the text is read is in lock_text.c. */
#include "fabricd/policy/lock.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_LEVEL 0 /* of traffic without levels */

static int index_in_policy(const struct policy *p, const char *name)
{
    for (unsigned i = 0; p && i < p->num_classes; i++)
        if (!strcmp(p->classes[i].name, name))
            return (int)i;
    return -1;
}

static struct lock_class *find_line(struct policy_lock *l, const char *name)
{
    for (unsigned i = 0; i < l->num_classes; i++)
        if (!strcmp(l->classes[i].name, name))
            return &l->classes[i];
    return NULL;
}

const struct lock_class *lock_find(const struct policy_lock *l, const char *name)
{
    for (unsigned i = 0; i < l->num_classes; i++)
        if (!strcmp(l->classes[i].name, name))
            return &l->classes[i];
    return NULL;
}

uint16_t lock_levels(const struct lock_class *c)
{
    unsigned bits = 1u << c->sl_small;
    for (unsigned i = 0; i < c->num_medium; i++)
        bits |= 1u << c->sl_medium[i];
    for (unsigned i = 0; i < c->num_bulk; i++)
        bits |= 1u << c->sl_bulk[i];
    return (uint16_t)bits;
}

static uint16_t levels_used(const struct policy_lock *l)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < l->num_classes; i++)
        bits |= lock_levels(&l->classes[i]);
    return (uint16_t)bits;
}

bool lock_knows_fabric(const struct policy_lock *l)
{
    return l->fabric.low_cap && l->fabric.mtu;
}

static bool same_line(const struct lock_class *a, const struct lock_class *b)
{
    return !strcmp(a->name, b->name) && a->sl_small == b->sl_small && a->num_medium == b->num_medium &&
           a->num_bulk == b->num_bulk && !memcmp(a->sl_medium, b->sl_medium, a->num_medium) &&
           !memcmp(a->sl_bulk, b->sl_bulk, a->num_bulk);
}

static bool same_tables_fit(const struct fabric_caps *f, const struct fabric_caps *g)
{
    return f->vls == g->vls && f->low_cap == g->low_cap && f->high_cap == g->high_cap && f->mtu == g->mtu;
}

static bool same_caps(const struct fabric_caps *f, const struct fabric_caps *g)
{
    return same_tables_fit(f, g) && f->rate_mbps == g->rate_mbps && f->hops == g->hops &&
           f->oversubscription == g->oversubscription;
}

static bool same_planes(const struct policy_lock *a, const struct policy_lock *b)
{
    bool same = a->num_planes == b->num_planes;
    for (unsigned i = 0; same && i < a->num_planes; i++)
        same = a->planes[i].guid == b->planes[i].guid && same_caps(&a->planes[i].caps, &b->planes[i].caps);
    return same;
}

void lock_take_planes(struct policy_lock *l, const struct fabric_caps *all, const struct lock_plane *seen, unsigned n)
{
    bool differ = false;
    l->fabric = *all;
    l->num_planes = 0;
    for (unsigned i = 0; i < n && l->num_planes < LOCK_PLANES_MAX; i++)
        if (seen[i].caps.vls && seen[i].guid)
            l->planes[l->num_planes++] = seen[i];
    for (unsigned i = 0; i < l->num_planes; i++) {
        differ = differ || !same_tables_fit(&l->planes[i].caps, &l->planes[0].caps);
        if (l->planes[i].caps.vls > l->fabric.vls)
            l->fabric = l->planes[i].caps;
    }
    l->fabric.oversubscription = all->oversubscription; /* budgets suit all planes */
    if (differ)
        return;
    l->fabric = *all;
    l->num_planes = 0;
}

void lock_add_planes(struct policy_lock *l, const struct lock_plane *seen, unsigned n)
{
    for (unsigned i = 0; i < n && l->num_planes < LOCK_PLANES_MAX; i++) {
        bool known =
            !seen[i].guid || !seen[i].caps.vls || (!l->num_planes && same_tables_fit(&seen[i].caps, &l->fabric));
        for (unsigned k = 0; k < l->num_planes; k++)
            known = known || l->planes[k].guid == seen[i].guid;
        if (!known)
            l->planes[l->num_planes++] = seen[i];
    }
}

bool lock_equal(const struct policy_lock *a, const struct policy_lock *b)
{
    bool same = same_caps(&a->fabric, &b->fabric) && same_planes(a, b) && a->num_classes == b->num_classes;
    for (unsigned i = 0; same && i < a->num_classes; i++)
        same = same_line(&a->classes[i], &b->classes[i]) && a->classes[i].retired == b->classes[i].retired;
    return same;
}

/* ---- the lock that follows ---- */

/* The number of levels that the class needs beyond its line, which may be missing. */
static unsigned missing_levels(const struct policy_class *c, const struct lock_class *have)
{
    unsigned medium = have ? have->num_medium : 0, bulk = have ? have->num_bulk : 0;
    return !have + (c->num_medium > medium ? c->num_medium - medium : 0) + (c->lanes > bulk ? c->lanes - bulk : 0);
}

/* Names classes that could give levels back. */
static void tell_holders(const struct policy *p, const struct policy_lock *l, struct text *out)
{
    for (unsigned i = 0; i < l->num_classes; i++) {
        struct policy_lock spare = *l;
        unsigned before = (unsigned)__builtin_popcount(levels_used(l));
        if (lock_forget(&spare, p, l->classes[i].name))
            text_printf(out, "%s%s '%s' holds %u", out->len ? ", " : "",
                        l->classes[i].retired ? "retired class" : "class", l->classes[i].name,
                        before - (unsigned)__builtin_popcount(levels_used(&spare)));
    }
}

static bool enough_levels(const struct policy *p, const struct policy_lock *l, unsigned wanted, unsigned there,
                          struct diag *d)
{
    struct text holders = {0};
    if (wanted <= there)
        return true;
    tell_holders(p, l, &holders);
    if (holders.len)
        diag_error(d, p->vls_at,
                   "the classes need %u more service levels, and %u of the %d are free; %s: 'fabricctl policy forget "
                   "CLASS' sets those free when no job uses them any more",
                   wanted, there, SLS, holders.s);
    else
        diag_error(
            d, p->vls_at,
            "the classes need %u service levels (one for small messages, one for each size in medium and one for "
            "each lane); there are %d",
            wanted + (unsigned)__builtin_popcount(levels_used(l)), SLS);
    text_free(&holders);
    return false;
}

static uint8_t take_level(unsigned *used)
{
    uint8_t sl = 1;
    while (*used & 1u << sl)
        sl++;
    *used |= 1u << sl;
    return sl;
}

/* Level 0 goes to the default class's bulk if nothing else is left. */
static void give_levels(const struct policy_class *c, bool with_default_level, unsigned *used, struct policy_lock *l)
{
    struct lock_class *line = find_line(l, c->name);
    if (!line) {
        line = &l->classes[l->num_classes++];
        *line = (struct lock_class){.sl_small = take_level(used)};
        snprintf(line->name, sizeof(line->name), "%s", c->name);
    }
    while (line->num_medium < c->num_medium)
        line->sl_medium[line->num_medium++] = take_level(used);
    while (line->num_bulk < c->lanes) {
        line->sl_bulk[line->num_bulk++] = with_default_level ? DEFAULT_LEVEL : take_level(used);
        with_default_level = false;
    }
}

static bool default_level_fits(const struct policy *p, const struct policy_lock *l, struct diag *d)
{
    for (unsigned i = 0; i < l->num_classes; i++) {
        const struct lock_class *c = &l->classes[i];
        if (c->retired || !(lock_levels(c) & 1u << DEFAULT_LEVEL) ||
            !strcmp(c->name, p->classes[p->default_class].name))
            continue;
        diag_error(
            d, p->vls_at,
            "the default class cannot become '%s': jobs of class '%s' use service level 0, with which all traffic "
            "travels that knows nothing of classes. Keep it as the default, or give it another name: then it gets "
            "other levels, and its running jobs become those of the default class",
            p->classes[p->default_class].name, c->name);
        return false;
    }
    return true;
}

bool lock_next(const struct policy *p, const struct policy_lock *old, const struct fabric_caps *fabric,
               struct policy_lock *next, struct diag *d)
{
    const struct policy_class *standard = &p->classes[p->default_class];
    unsigned used = levels_used(old), wanted = 0;
    *next = *old;
    next->generation = next->digest = 0; /* those of the former policy */
    next->none = false;
    if (fabric) {
        next->fabric = *fabric;
        next->num_planes = 0;
    }
    for (unsigned i = 0; i < next->num_classes; i++)
        next->classes[i].retired = index_in_policy(p, next->classes[i].name) < 0;
    for (unsigned i = 0; i < p->num_classes; i++)
        wanted += missing_levels(&p->classes[i], lock_find(next, p->classes[i].name));

    const struct lock_class *has = lock_find(next, standard->name);
    unsigned there = 15 - (unsigned)__builtin_popcount(used >> 1);
    bool zero = wanted > there && !(used & 1) && standard->lanes > (has ? has->num_bulk : 0u);
    if (!default_level_fits(p, next, d) || !enough_levels(p, next, wanted, there + zero, d))
        return false;
    used |= zero;
    for (unsigned i = 0; i < p->num_classes; i++)
        give_levels(&p->classes[i], zero && i == p->default_class, &used, next);
    return true;
}

/* ---- other ways to a lock ---- */

bool lock_of_before(const struct policy *p, struct policy_lock *out)
{
    unsigned sl = 0, wanted = 0;
    *out = (struct policy_lock){.num_classes = p->num_classes};
    for (unsigned i = 0; i < p->num_classes; i++)
        wanted += missing_levels(&p->classes[i], NULL);
    if (wanted > SLS)
        return false;
    for (unsigned k = 0; k < p->num_classes; k++) { /* bulk, the default class's first */
        unsigned i = k ? k - (k <= p->default_class) : p->default_class;
        struct lock_class *c = &out->classes[i];
        snprintf(c->name, sizeof(c->name), "%s", p->classes[i].name);
        while (c->num_bulk < p->classes[i].lanes)
            c->sl_bulk[c->num_bulk++] = (uint8_t)sl++;
    }
    for (unsigned i = 0; i < p->num_classes; i++)
        out->classes[i].sl_small = (uint8_t)sl++;
    for (unsigned i = 0; i < p->num_classes; i++)
        while (out->classes[i].num_medium < p->classes[i].num_medium)
            out->classes[i].sl_medium[out->classes[i].num_medium++] = (uint8_t)sl++;
    return true;
}

/* As far as both have given out levels, are they the same? */
static bool same_given_levels(const uint8_t *a, unsigned num_a, const uint8_t *b, unsigned num_b)
{
    return !memcmp(a, b, num_a < num_b ? num_a : num_b);
}

bool lock_merge(struct policy_lock *l, const struct policy_lock *other, const struct policy *p)
{
    bool agree = true, was_empty = !l->num_classes;
    if (!lock_knows_fabric(l)) {
        l->fabric = other->fabric;
        l->num_planes = other->num_planes;
        memcpy(l->planes, other->planes, sizeof(l->planes));
    }
    if (!l->fabric.oversubscription) /* missing in older locks */
        l->fabric.oversubscription = other->fabric.oversubscription;
    for (unsigned i = 0; i < other->num_classes; i++) {
        const struct lock_class *theirs = &other->classes[i], *ours = lock_find(l, theirs->name);
        if (ours)
            agree = agree && ours->sl_small == theirs->sl_small &&
                    same_given_levels(ours->sl_medium, ours->num_medium, theirs->sl_medium, theirs->num_medium) &&
                    same_given_levels(ours->sl_bulk, ours->num_bulk, theirs->sl_bulk, theirs->num_bulk);
        else if (!was_empty && index_in_policy(p, theirs->name) < 0)
            continue; /* perhaps forgotten here */
        else if (lock_levels(theirs) & levels_used(l))
            agree = false;
        else
            l->classes[l->num_classes++] = *theirs; /* each line has two levels: there is room */
    }
    return agree;
}

bool lock_forget(struct policy_lock *l, const struct policy *p, const char *name)
{
    struct lock_class *c = find_line(l, name);
    int i = index_in_policy(p, name);
    if (!c)
        return false;
    if (i < 0) {
        memmove(c, c + 1, (size_t)(&l->classes[l->num_classes] - (c + 1)) * sizeof(*c));
        l->num_classes--;
        return true;
    }
    const struct policy_class *now = &p->classes[i];
    if (c->num_medium <= now->num_medium && c->num_bulk <= now->lanes)
        return false;
    if (c->num_medium > now->num_medium)
        c->num_medium = (uint8_t)now->num_medium;
    if (c->num_bulk > now->lanes)
        c->num_bulk = (uint8_t)now->lanes;
    return true;
}

bool lock_path(const char *policy_path, char *out, size_t size)
{
    const char *base = strrchr(policy_path, '/'), *dot = strrchr(base ? base + 1 : policy_path, '.');
    size_t len = strlen(policy_path);
    if (dot && (!strcmp(dot, ".yaml") || !strcmp(dot, ".yml")))
        len = (size_t)(dot - policy_path);
    return snprintf(out, size, "%.*s.lock", (int)len, policy_path) < (int)size;
}
