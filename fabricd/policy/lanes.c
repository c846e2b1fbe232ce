/* SPDX-License-Identifier: BSD-3-Clause */
/* Service levels to virtual lanes: see lanes.h. */
#include "fabricd/policy/lanes.h"
#include "fabricd/policy/weights.h"

#include <string.h>

struct assigner {
    const struct policy *p;
    const struct policy_lock *lock;
    const uint8_t *priority;
    struct qos_tables *t;
    struct diag *d;
    unsigned next_vl;
};

/* Free lanes. */
static unsigned lanes_left(const struct assigner *a)
{
    return a->p->vls - a->next_vl;
}

/* Takes the class's levels from the lock; the lock may hold more. */
static void take_levels(const struct policy_class *c, const struct lock_class *have, struct class_levels *l)
{
    l->sl_small = have->sl_small;
    l->num_medium = (uint8_t)c->num_medium;
    memcpy(l->sl_medium, have->sl_medium, c->num_medium);
    l->num_lanes = (uint8_t)c->lanes;
    memcpy(l->sl_bulk, have->sl_bulk, c->lanes);
}

/* The default class first: its bulk is on VL 0. Everything else begins with the bulk. */
static void assign_bulk(struct assigner *a)
{
    for (unsigned k = 0; k < a->p->num_classes; k++) {
        unsigned i = k ? k - (k <= a->p->default_class) : a->p->default_class;
        struct class_levels *l = &a->t->classes[i];
        take_levels(&a->p->classes[i], lock_find(a->lock, a->p->classes[i].name), l);
        for (unsigned n = 0; n < l->num_lanes; n++)
            l->vl_bulk[n] = (uint8_t)a->next_vl++;
        l->priority = a->priority[i];
        l->vl_small = l->vl_bulk[0];
        for (unsigned n = 0; n < l->num_medium; n++)
            l->vl_medium[n] = l->vl_bulk[0];
    }
}

/* Classes whose small messages go ahead, the most important first; equals in the policy's order. */
static unsigned small_order(const struct assigner *a, unsigned out[POLICY_CLASSES_MAX])
{
    unsigned n = 0;
    for (int priority = PRIORITY_HIGH; priority > PRIORITY_LOW; priority--)
        for (unsigned i = 0; i < a->p->num_classes; i++)
            if (a->priority[i] == priority)
                out[n++] = i;
    return n;
}

/*
 * A turn in the table is one packet, whatever its size: the smallest weight. A lane has as many turns as its priority,
 * spread over the round. In a table too short for that, a lane has one turn, of so many blocks: as many of the smallest
 * packets.
 */
static void fill_high(struct qos_tables *t, const struct vlarb *lanes, unsigned n, unsigned cap)
{
    struct vlarb_slot slots[POLICY_CLASSES_MAX * PRIORITY_HIGH];
    unsigned turns = 0, num = 0;
    for (unsigned i = 0; i < n; i++)
        turns += lanes[i].weight;
    for (unsigned i = 0; i < n; i++) {
        unsigned mine = turns <= cap ? lanes[i].weight : 1;
        for (unsigned k = 0; k < mine; k++)
            slots[num++] =
                (struct vlarb_slot){.k = k, .mine = mine, .e = {lanes[i].vl, turns <= cap ? 1 : lanes[i].weight}};
    }
    t->num_high = vlarb_spread(slots, num, t->high);
}

static void assign_small(struct assigner *a, unsigned high_cap)
{
    unsigned order[POLICY_CLASSES_MAX], n = small_order(a, order), room = lanes_left(a), num = 0;
    struct vlarb lanes[POLICY_CLASSES_MAX];
    for (unsigned k = 0; k < n && room; k++) {
        struct class_levels *l = &a->t->classes[order[k]];
        unsigned lane = k < room ? k : room - 1; /* the last lane takes all remaining classes */
        l->vl_small = (uint8_t)(a->next_vl + lane);
        l->own_small_lane = lane < room - 1 || n <= room;
        l->num_ahead++;
        if (lane == num)
            lanes[num++] = (struct vlarb){l->vl_small, a->priority[order[k]]};
    }
    fill_high(a->t, lanes, num, high_cap);
    a->next_vl += num;
    if (n && !room)
        diag_warn(a->d, a->p->vls_at, "all %u virtual lanes carry bulk: small messages go with the bulk of their class",
                  a->p->vls);
    else if (n > room)
        diag_warn(a->d, a->p->vls_at,
                  "%u classes want a lane for small messages and %u are left: the less important share the last", n,
                  room);
}

/* In proportion to the bulk, instead of ahead: a lane beside it in the low-priority table. */
static void assign_ratio(struct assigner *a)
{
    struct class_levels *l = &a->t->classes[0];
    if (lanes_left(a)) {
        l->vl_small = (uint8_t)a->next_vl++;
        l->own_small_lane = true;
    }
}

bool lanes_medium_own(const struct class_levels *l, unsigned n)
{
    return l->vl_medium[n] != l->vl_bulk[0];
}

static void assign_medium(struct assigner *a, unsigned low_cap)
{
    unsigned wanted = 0, given = 0, room = lanes_left(a), used = 0;
    for (unsigned i = 0; i < a->p->num_classes; i++) {
        wanted += a->p->classes[i].num_medium;
        used += a->p->classes[i].lanes + (a->p->classes[i].ratio_small && a->t->classes[i].own_small_lane);
    }
    if (low_cap < used || room > low_cap - used)
        room = low_cap < used ? 0 : low_cap - used;
    for (int priority = PRIORITY_HIGH; priority >= PRIORITY_LOW; priority--)
        for (unsigned i = 0; i < a->p->num_classes; i++) {
            struct class_levels *l = &a->t->classes[i];
            for (unsigned n = 0; n < l->num_medium && a->priority[i] == priority && given < room; n++) {
                l->vl_medium[n] = (uint8_t)a->next_vl++;
                l->num_ahead++;
                given++;
            }
        }
    if (given < wanted)
        diag_warn(a->d, a->p->vls_at,
                  "%u levels between small messages and bulk want a lane and %u are left: the others, of the less "
                  "important classes, go with the bulk of their class",
                  wanted, room);
}

/* Levels of no class, or of a retired class, stay on VL 0; unused levels of a class go with its bulk. */
static void fill_sl2vl(const struct assigner *a)
{
    for (unsigned i = 0; i < a->p->num_classes; i++) {
        const struct lock_class *have = lock_find(a->lock, a->p->classes[i].name);
        const struct class_levels *l = &a->t->classes[i];
        a->t->sl2vl[have->sl_small] = l->vl_small;
        for (unsigned n = 0; n < have->num_medium; n++)
            a->t->sl2vl[have->sl_medium[n]] = n < l->num_medium ? l->vl_medium[n] : l->vl_bulk[0];
        for (unsigned n = 0; n < have->num_bulk; n++)
            a->t->sl2vl[have->sl_bulk[n]] = l->vl_bulk[n % l->num_lanes];
    }
}

void lanes_assign(const struct policy *p, const struct policy_lock *lock, const uint8_t *priority, unsigned low_cap,
                  unsigned high_cap, struct qos_tables *t, struct diag *d)
{
    struct assigner a = {.p = p, .lock = lock, .priority = priority, .t = t, .d = d};
    assign_bulk(&a);
    if (p->classes[0].ratio_small)
        assign_ratio(&a);
    else
        assign_small(&a, high_cap);
    assign_medium(&a, low_cap);
    fill_sl2vl(&a);
}
