/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares to weights: see weights.h. Whole numbers only, so the result does not depend on the machine. */
#include "fabricd/policy/weights.h"

#include <stdlib.h>

#define BLOCK       64u
#define WEIGHT_MAX  255u
#define MILLION     1000000u
#define GOOD_ERROR  5000u  /* millionths of the share */
#define GOOD_SPREAD 10000u /* millionths of the link */
#define GOOD_SINGLE 20000u
#define STEP        2500u /* differences below this are not worth a longer round */

struct search {
    const struct weight_group *g;
    unsigned n, num_single;
    uint64_t part[WEIGHT_GROUPS_MAX]; /* of the link, in millionths */
    unsigned quantum;                 /* blocks of data of the largest packet */
    unsigned per_entry;               /* quanta that an entry can have */
    unsigned cap;
};

struct plan {
    unsigned quanta[WEIGHT_GROUPS_MAX]; /* of each lane of the group, in one round */
    unsigned rank[4];                   /* the less the better, the first counts most */
};

unsigned weights_sent(unsigned weight, unsigned packet_blocks)
{
    return (weight + packet_blocks - 1) / packet_blocks * packet_blocks;
}

/* ---- one lane ---- */

static unsigned entries_of(const struct search *s, unsigned quanta)
{
    return (quanta + s->per_entry - 1) / s->per_entry;
}

/* Entry k of a lane. 256 blocks do not fit, and 255 let as many packets go. */
static unsigned entry_weight(const struct search *s, unsigned quanta, unsigned k)
{
    unsigned entries = entries_of(s, quanta), q = quanta / entries + (k < quanta % entries);
    return q * s->quantum > WEIGHT_MAX ? WEIGHT_MAX : q * s->quantum;
}

/* The blocks that a lane sends in a round. */
static unsigned lane_sends(const struct search *s, unsigned quanta, unsigned packet_blocks)
{
    unsigned entries = entries_of(s, quanta), more = quanta % entries;
    return more * weights_sent(entry_weight(s, quanta, 0), packet_blocks) +
           (entries - more) * weights_sent(entry_weight(s, quanta, entries - 1), packet_blocks);
}

/* ---- judging a round ---- */

/* Packets with data of 64, 128, ... bytes up to the MTU: the headers are one block more. */
static void sends_range(const struct search *s, unsigned quanta, unsigned *least, unsigned *most)
{
    *least = *most = lane_sends(s, quanta, 2);
    for (unsigned data = 2; data <= s->quantum; data *= 2) {
        unsigned sent = lane_sends(s, quanta, data + 1);
        if (sent < *least)
            *least = sent;
        if (sent > *most)
            *most = sent;
    }
}

static unsigned excess(uint64_t value, unsigned good)
{
    uint64_t steps = value > good ? (value - good + STEP - 1) / STEP : 0;
    return steps > 0xffffffffu ? 0xffffffffu : (unsigned)steps;
}

static uint64_t distance_of(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void rank_plan(const struct search *s, struct plan *plan, unsigned round)
{
    unsigned full = s->quantum + 1;
    uint64_t sent[WEIGHT_GROUPS_MAX], least[WEIGHT_GROUPS_MAX], most[WEIGHT_GROUPS_MAX];
    uint64_t all = 0, all_least = 0, all_most = 0, error = 0, moves = 0;
    for (unsigned i = 0; i < s->n; i++) {
        unsigned lo, hi;
        sends_range(s, plan->quanta[i], &lo, &hi);
        all += sent[i] = (uint64_t)lane_sends(s, plan->quanta[i], full) * s->g[i].lanes;
        all_least += least[i] = (uint64_t)lo * s->g[i].lanes;
        all_most += most[i] = (uint64_t)hi * s->g[i].lanes;
    }
    for (unsigned i = 0; i < s->n; i++) {
        uint64_t want = s->part[i];
        error = larger(error, distance_of(sent[i] * MILLION / all, want) * MILLION / want);
        moves = larger(moves, distance_of(least[i] * MILLION / (least[i] + all_most - most[i]), want));
        moves = larger(moves, distance_of(most[i] * MILLION / (most[i] + all_least - least[i]), want));
    }
    uint64_t single = (uint64_t)s->num_single * full;
    plan->rank[0] = excess(error, GOOD_ERROR);
    plan->rank[1] = excess(moves, GOOD_SPREAD);
    plan->rank[2] = excess(single * MILLION / (all + single), GOOD_SINGLE);
    plan->rank[3] = round;
}

static bool is_better(const struct plan *a, const struct plan *b)
{
    for (unsigned i = 0; i < 4; i++)
        if (a->rank[i] != b->rank[i])
            return a->rank[i] < b->rank[i];
    return false;
}

/* The round nearest to the shares with about so many quanta. False: too long for the table. */
static bool make_plan(const struct search *s, unsigned round, struct plan *out)
{
    unsigned entries = s->num_single;
    for (unsigned i = 0; i < s->n; i++) {
        uint64_t lanes = (uint64_t)s->g[i].lanes * MILLION;
        uint64_t q = (s->part[i] * round + lanes / 2) / lanes;
        out->quanta[i] = q ? (unsigned)q : 1;
        entries += s->g[i].lanes * entries_of(s, out->quanta[i]);
    }
    if (entries > s->cap)
        return false;
    rank_plan(s, out, round);
    return true;
}

/* ---- the table ---- */

static int by_place(const void *a, const void *b)
{
    const struct vlarb_slot *x = a, *y = b;
    unsigned at_x = x->at * y->of, at_y = y->at * x->of;
    if (at_x != at_y)
        return at_x < at_y ? -1 : 1;
    return (int)x->e.vl - (int)y->e.vl;
}

/* A lane's entries are as far from each other as can be; lanes with as many entries are not all at the same places. */
static void spread_slot(struct vlarb_slot *s, const struct vlarb_slot *slots, unsigned n)
{
    unsigned alike = 0, before = 0;
    for (unsigned i = 0; i < n; i++)
        if (slots[i].k == 0 && slots[i].mine == s->mine) {
            alike++;
            before += slots[i].e.vl < s->e.vl;
        }
    s->at = 2 * alike * s->k + 2 * before + 1;
    s->of = 2 * alike * s->mine;
}

unsigned vlarb_spread(struct vlarb_slot *slots, unsigned n, struct vlarb *out)
{
    for (unsigned i = 0; i < n; i++)
        spread_slot(&slots[i], slots, n);
    qsort(slots, n, sizeof(slots[0]), by_place);
    for (unsigned i = 0; i < n; i++)
        out[i] = slots[i].e;
    return n;
}

static void fill_low_slots(const struct search *s, const struct plan *plan, const uint8_t *single, struct qos_tables *t)
{
    struct vlarb_slot slots[TABLE_ENTRIES_MAX];
    unsigned n = 0;
    for (unsigned i = 0; i < s->n; i++) {
        unsigned entries = entries_of(s, plan->quanta[i]);
        for (unsigned lane = 0; lane < s->g[i].lanes; lane++)
            for (unsigned k = 0; k < entries; k++)
                slots[n++] = (struct vlarb_slot){
                    .k = k, .mine = entries, .e = {s->g[i].vl[lane], (uint8_t)entry_weight(s, plan->quanta[i], k)}};
    }
    for (unsigned i = 0; i < s->num_single; i++)
        slots[n++] = (struct vlarb_slot){.mine = 1, .e = {single[i], 1}};
    t->num_low = vlarb_spread(slots, n, t->low);
}

bool weights_fill(struct weight_group *g, unsigned n, const uint8_t *single, unsigned num_single, unsigned mtu,
                  unsigned cap, struct qos_tables *t)
{
    struct search s = {.g = g, .n = n, .num_single = num_single, .quantum = mtu / BLOCK, .cap = cap};
    struct plan best, plan;
    bool found = false;
    uint64_t total = 0, all = 0;
    s.per_entry = (WEIGHT_MAX + 1) / s.quantum;
    for (unsigned i = 0; i < n; i++)
        total += g[i].want;
    for (unsigned i = 0; i < n; i++) {
        s.part[i] = (uint64_t)g[i].want * MILLION / total;
        s.part[i] += !s.part[i];
    }
    for (unsigned round = 1; round <= cap * s.per_entry; round++)
        if (make_plan(&s, round, &plan) && (!found || is_better(&plan, &best))) {
            best = plan;
            found = true;
        }
    if (!found)
        return false;
    fill_low_slots(&s, &best, single, t);
    for (unsigned i = 0; i < n; i++)
        all += (uint64_t)lane_sends(&s, best.quanta[i], s.quantum + 1) * g[i].lanes;
    for (unsigned i = 0; i < n; i++)
        g[i].got = 100.0 * lane_sends(&s, best.quanta[i], s.quantum + 1) * g[i].lanes / (double)all;
    return true;
}
