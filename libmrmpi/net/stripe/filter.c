/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of the completion filter: the table of targets. */
#include "libmrmpi/net/stripe/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_MASK ((1u << MR_TOKEN_INDEX_BITS) - 1)
#define GEN_MASK   ((1u << (MR_TOKEN_BITS - MR_TOKEN_INDEX_BITS)) - 1)

static int grow_targets(struct mr_targets *t)
{
    uint32_t num = t->num ? 2 * t->num : 64;
    struct mr_target *e;

    if (t->num > INDEX_MASK)
        return -EAGAIN;
    e = realloc(t->entry, num * sizeof *e);
    if (!e)
        return -ENOMEM;
    memset(e + t->num, 0, (num - t->num) * sizeof *e);
    for (uint32_t i = t->num; i < num; i++)
        e[i].next_free = i + 1;
    t->entry = e;
    t->first_free = t->num;
    t->num = num;
    return 0;
}

int mr_target_open(struct mr_targets *t, void *owner, uint32_t *token)
{
    struct mr_target *e;
    uint32_t i;

    if (t->first_free == t->num) {
        int err = grow_targets(t);

        if (err)
            return err;
    }
    i = t->first_free;
    e = &t->entry[i];
    t->first_free = e->next_free;
    e->owner = owner;
    e->generation = (uint8_t)((e->generation + 1) & GEN_MASK);
    e->expected = 0;
    e->arrived = 0;
    *token = i | (uint32_t)e->generation << MR_TOKEN_INDEX_BITS;
    return 0;
}

static struct mr_target *find_target(const struct mr_targets *t, uint32_t token)
{
    uint32_t i = token & INDEX_MASK;
    struct mr_target *e = i < t->num ? &t->entry[i] : NULL;

    return e && e->owner && e->generation == (token >> MR_TOKEN_INDEX_BITS & GEN_MASK) ? e : NULL;
}

void mr_target_close(struct mr_targets *t, uint32_t token)
{
    struct mr_target *e = find_target(t, token);

    if (!e)
        return;
    e->owner = NULL;
    e->next_free = t->first_free;
    t->first_free = token & INDEX_MASK;
}

static uint32_t stripe_bit(uint32_t imm)
{
    return 1u << (imm >> MR_TOKEN_BITS & ((1u << MR_STRIPE_INDEX_BITS) - 1));
}

static uint32_t stripe_bits(unsigned n)
{
    return n < 32 ? (1u << n) - 1 : UINT32_MAX;
}

void *mr_target_arrived(struct mr_targets *t, uint32_t imm, bool *stray)
{
    struct mr_target *e = find_target(t, imm & ((1u << MR_TOKEN_BITS) - 1));
    uint8_t stripes = (uint8_t)((imm >> (MR_TOKEN_BITS + MR_STRIPE_INDEX_BITS)) + 1);
    uint32_t bit = stripe_bit(imm);

    *stray = !e || (e->expected && e->expected != stripes) || !(bit & stripe_bits(stripes)) || (e->arrived & bit);
    if (*stray)
        return NULL;
    e->expected = stripes;
    e->arrived |= bit;
    if (e->arrived != stripe_bits(stripes))
        return NULL;
    e->expected = 0;
    e->arrived = 0;
    return e->owner;
}

bool mr_target_waits(const struct mr_targets *t, uint32_t imm)
{
    const struct mr_target *e = find_target(t, imm & ((1u << MR_TOKEN_BITS) - 1));

    return e && !(e->arrived & stripe_bit(imm));
}

void mr_targets_free(struct mr_targets *t)
{
    free(t->entry);
    memset(t, 0, sizeof *t);
}
