/* SPDX-License-Identifier: BSD-3-Clause */
/* Agreement of members that may fail: see era.h. */
#include "libmrmpi/p2p/fault/era.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEAD = 1,
    CAME = 2,  /* its value has come */
    ASKED = 4, /* it was asked for its value */
    ASKS = 8,  /* it has asked for ours */
};

/* Above the levels of all ancestors. */
#define BEYOND 64

/* ---- values ------------------------------------------------------------------------------------------------------ */

static struct mr_era_value *new_value(uint32_t num_failed)
{
    return calloc(1, mr_era_bytes(num_failed));
}

bool mr_era_is_value(const void *bytes, size_t len, int size)
{
    struct mr_era_value v;
    const uint8_t *at = bytes;
    uint32_t last = 0, x;

    if (len < sizeof(v))
        return false;
    memcpy(&v, bytes, sizeof(v));
    if (v.num_failed > (uint32_t)size || len != mr_era_bytes(v.num_failed))
        return false;
    for (uint32_t i = 0; i < v.num_failed; i++, last = x / 2) {
        memcpy(&x, at + mr_era_bytes(i), sizeof(x));
        if (x / 2 >= (uint32_t)size || (i && x / 2 <= last))
            return false;
    }
    return true;
}

/* The values of both; a failure counts as acknowledged if both have acknowledged it. NULL: no memory. */
static struct mr_era_value *sum_of_values(const struct mr_era_value *a, const struct mr_era_value *b)
{
    struct mr_era_value *sum = new_value(a->num_failed + b->num_failed);
    uint32_t i = 0, j = 0, n = 0;

    if (!sum)
        return NULL;
    sum->flags = a->flags & b->flags;
    sum->number = a->number > b->number ? a->number : b->number;
    while (i < a->num_failed || j < b->num_failed) {
        uint32_t x = i < a->num_failed ? a->failed[i] : UINT32_MAX, y = j < b->num_failed ? b->failed[j] : UINT32_MAX;

        if (x / 2 == y / 2)
            sum->failed[n++] = x & y;
        else
            sum->failed[n++] = (x < y ? x : y) & ~1u;
        i += x / 2 <= y / 2;
        j += y / 2 <= x / 2;
    }
    sum->num_failed = n;
    return sum;
}

static bool add_value(struct mr_era *e, const struct mr_era_value *v)
{
    struct mr_era_value *sum;

    if (e->sum) {
        sum = sum_of_values(e->sum, v);
    } else {
        sum = new_value(v->num_failed);
        if (sum)
            memcpy(sum, v, mr_era_bytes(v->num_failed));
    }
    if (!sum)
        return false;
    free(e->sum);
    e->sum = sum;
    return true;
}

bool mr_era_unacknowledged(const struct mr_era_value *v)
{
    for (uint32_t i = 0; i < v->num_failed; i++)
        if (!(v->failed[i] & 1))
            return true;
    return false;
}

bool mr_era_has_failed(const struct mr_era_value *v, int rank)
{
    for (uint32_t i = 0; i < v->num_failed; i++)
        if (v->failed[i] / 2 == (uint32_t)rank)
            return true;
    return false;
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* The parent is the rank without its lowest bit, the root is 0. */
static int parent_if_all_live(int rank)
{
    return rank & (rank - 1);
}

static bool is_dead(const struct mr_era *e, int rank)
{
    return e->of[rank] & DEAD;
}

static int lowest_living(const struct mr_era *e)
{
    int rank = 0;

    while (rank < e->size && is_dead(e, rank))
        rank++;
    return rank;
}

/* The nearest living ancestor; -1: there is none. */
static int parent_of(const struct mr_era *e, int rank)
{
    while (rank) {
        rank = parent_if_all_live(rank);
        if (!is_dead(e, rank))
            return rank;
    }
    return -1;
}

/* -1: this rank is the root. */
static int parent_or_root(const struct mr_era *e, int rank)
{
    int parent = parent_of(e, rank), lowest;

    if (parent >= 0 || !e->num_dead)
        return parent;
    lowest = lowest_living(e);
    return lowest == rank ? -1 : lowest;
}

/* A receiver of ours with a higher level is one only because all those with lower levels have failed. */
static int level_of(const struct mr_era *e, int rank)
{
    for (int at = e->me; at;) {
        at = parent_if_all_live(at);
        if (at == rank)
            return BEYOND - __builtin_popcount((unsigned)rank);
    }
    return BEYOND + 1 + rank;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* Calls f for each child; true if f is for all. */
static bool each_child(struct mr_era *e, bool (*f)(struct mr_era *e, int child))
{
    bool all = true;

    if (!e->num_dead) {
        for (int bit = 1; e->me + bit < e->size && !(e->me & bit); bit *= 2)
            all &= f(e, e->me + bit);
        return all;
    }
    for (int r = 0; r < e->size; r++)
        if (r != e->me && !is_dead(e, r) && parent_or_root(e, r) == e->me)
            all &= f(e, r);
    return all;
}

/* An adopted child may have the decision, or may not know of its new parent: it is asked. */
static bool has_child_come(struct mr_era *e, int child)
{
    if (e->of[child] & CAME)
        return true;
    if (parent_if_all_live(child) != e->me && !(e->of[child] & ASKED)) {
        e->of[child] |= ASKED;
        e->send(e->arg, child, MR_ERA_ASK, NULL);
    }
    return false;
}

static bool mark_for_decision(struct mr_era *e, int child)
{
    e->of[child] |= ASKS;
    return true;
}

/* e->sum is the decision. from: where it comes from, or -1. */
static void decide_era(struct mr_era *e, int from)
{
    int parent = parent_or_root(e, e->me);

    e->decided = true;
    each_child(e, mark_for_decision);
    if (e->up_to < 0 && parent >= 0) /* it waits for us, and has not heard */
        e->of[parent] |= ASKS;
    for (int r = 0; r < e->size; r++)
        if (e->of[r] & (CAME | ASKS) && !is_dead(e, r) && r != e->me && r != from)
            e->send(e->arg, r, MR_ERA_DOWN, e->sum);
}

/* Failures since the root's call, which nobody has acknowledged in this agreement. False: no memory. */
static bool add_late_failures(struct mr_era *e)
{
    struct mr_era_value *grown = new_value(e->sum->num_failed + (uint32_t)e->num_dead);
    uint32_t i = 0, n = 0;

    if (!grown)
        return false;
    *grown = *e->sum;
    for (int r = 0; r < e->size; r++) {
        if (i < e->sum->num_failed && e->sum->failed[i] / 2 == (uint32_t)r)
            grown->failed[n++] = e->sum->failed[i++];
        else if (is_dead(e, r))
            grown->failed[n++] = (uint32_t)r * 2;
    }
    grown->num_failed = n;
    free(e->sum);
    e->sum = grown;
    return true;
}

static bool step_era(struct mr_era *e)
{
    int to;

    if (!e->called || e->decided || !each_child(e, has_child_come))
        return true;
    to = parent_or_root(e, e->me);
    if (to < 0) {
        if (!add_late_failures(e))
            return false;
        decide_era(e, -1);
        return true;
    }
    if (e->asked_by >= 0 && !is_dead(e, e->asked_by) && level_of(e, e->asked_by) > level_of(e, to))
        to = e->asked_by;
    if (level_of(e, to) <= e->level)
        return true;
    e->up_to = to;
    e->level = level_of(e, to);
    e->send(e->arg, to, MR_ERA_UP, e->sum);
    return true;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void mark_dead(struct mr_era *e, int rank)
{
    if (is_dead(e, rank))
        return;
    e->of[rank] |= DEAD;
    e->num_dead++;
    if (rank == e->up_to)
        e->up_to = -1;
}

bool mr_era_call(struct mr_era *e, const struct mr_era_value *own)
{
    e->called = true;
    for (uint32_t i = 0; i < own->num_failed; i++)
        mark_dead(e, (int)(own->failed[i] / 2));
    if (e->decided)
        return true;
    return add_value(e, own) && step_era(e);
}

static bool take_up(struct mr_era *e, int from, const struct mr_era_value *value)
{
    if (e->decided) {
        e->send(e->arg, from, MR_ERA_DOWN, e->sum);
        return true;
    }
    e->of[from] |= CAME;
    return add_value(e, value) && step_era(e);
}

static bool take_ask(struct mr_era *e, int from)
{
    if (e->decided) {
        e->send(e->arg, from, MR_ERA_DOWN, e->sum);
        return true;
    }
    e->of[from] |= ASKS;
    if (e->asked_by < 0 || level_of(e, from) > level_of(e, e->asked_by))
        e->asked_by = from;
    return step_era(e);
}

static bool take_down(struct mr_era *e, int from, const struct mr_era_value *value)
{
    struct mr_era_value *decision;

    if (e->decided || (e->up_to >= 0 ? from != e->up_to : level_of(e, from) <= e->level))
        return true;
    decision = new_value(value->num_failed);
    if (!decision)
        return false;
    memcpy(decision, value, mr_era_bytes(value->num_failed));
    free(e->sum);
    e->sum = decision;
    decide_era(e, from);
    return true;
}

bool mr_era_message(struct mr_era *e, int from, enum mr_era_kind kind, const struct mr_era_value *value)
{
    if (from < 0 || from >= e->size || from == e->me || is_dead(e, from))
        return true;
    if (kind == MR_ERA_UP)
        return take_up(e, from, value);
    return kind == MR_ERA_ASK ? take_ask(e, from) : take_down(e, from, value);
}

bool mr_era_died(struct mr_era *e, int rank)
{
    if (rank < 0 || rank >= e->size || is_dead(e, rank))
        return true;
    mark_dead(e, rank);
    return step_era(e);
}

bool mr_era_init(struct mr_era *e, int size, int me)
{
    *e = (struct mr_era){.size = size, .me = me, .up_to = -1, .asked_by = -1};
    e->of = calloc((size_t)size, sizeof(*e->of));
    return e->of;
}

void mr_era_free(struct mr_era *e)
{
    free(e->of);
    free(e->sum);
}
