/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/rma/winlock/taker.h"

/*
 * Of one who wants to be alone and one who shares, both of whom have come at the same time, the one who shares leaves
 * at once, and the other one looks again: else both would leave and come again in step. Only a few times, since those
 * who hold it may wait for another lock (part.h).
 */
#define KEEPS 3

void mr_taker_init(struct mr_taker *t, uint64_t number, uint32_t slot, uint32_t slots)
{
    *t = (struct mr_taker){.number = number, .slot = slot, .slots = slots};
}

bool mr_taker_is_sound(const struct mr_taker *t)
{
    return !t->lost;
}

void mr_taker_begin(struct mr_taker *t, bool alone)
{
    t->state = MR_TAKER_WANTS;
    t->alone = alone;
    t->looks = false;
    t->hints = t->unhints = false;
    t->keeps = 0;
    t->tries = 0;
}

void mr_taker_borrow(struct mr_taker *t)
{
    t->state = MR_TAKER_HOLDS;
    t->alone = t->lent = true;
}

void mr_taker_refuse(struct mr_taker *t)
{
    t->refuses = true;
}

void mr_taker_return(struct mr_taker *t)
{
    t->state = MR_TAKER_IDLE;
    t->lent = false;
}

static void take_back(struct mr_taker *t)
{
    t->give = true;
    t->gives_alone = t->alone;
    t->gives_lent = t->lent;
}

void mr_taker_give(struct mr_taker *t)
{
    t->state = MR_TAKER_IDLE;
    t->again = true;
    take_back(t);
    t->lent = false;
}

void mr_taker_stop(struct mr_taker *t)
{
    t->state = MR_TAKER_IDLE;
}

/* What was lost is cleared when nothing is under way that might still succeed. */
enum mr_taker_step mr_taker_next(const struct mr_taker *t)
{
    if (t->lost)
        return t->taking || t->giving || t->clearing ? MR_STEP_NONE : MR_STEP_CLEAR;
    if (t->give || t->refuses)
        return t->giving ? MR_STEP_NONE : MR_STEP_GIVE;
    if (t->state != MR_TAKER_WANTS || t->taking)
        return MR_STEP_NONE;
    return t->looks || t->keeps || t->hints || t->unhints ? MR_STEP_LOOK : MR_STEP_TAKE;
}

static struct mr_word store(size_t at, uint32_t bytes, uint64_t value)
{
    return (struct mr_word){.what = MR_WORD_STORE, .at = at, .bytes = bytes, .value = value};
}

static struct mr_word swap(uint64_t compare, uint64_t value)
{
    return (struct mr_word){
        .what = MR_WORD_SWAP, .at = offsetof(struct mr_part, owner), .compare = compare, .value = value};
}

static struct mr_word give_back(const struct mr_taker *t)
{
    if (t->give ? t->gives_lent : t->refuses)
        return store(offsetof(struct mr_part, holders) + MR_PART_BORROWER, sizeof(uint32_t), 0);
    return t->gives_alone ? swap(t->number, 0) : store(mr_part_slot(t->slot), 1, 0);
}

struct mr_word mr_taker_word(const struct mr_taker *t, enum mr_taker_step step, uint64_t *result)
{
    struct mr_word w = {.what = MR_WORD_LOOK};

    if (step == MR_STEP_GIVE)
        w = give_back(t);
    else if (step == MR_STEP_TAKE)
        w = t->alone ? swap(0, t->number) : store(mr_part_slot(t->slot), 1, 1);
    else if (t->hints || t->unhints)
        w = store(offsetof(struct mr_part, wanted), 1, !t->unhints);
    if (step != MR_STEP_GIVE)
        w.look = t->alone ? mr_part_bytes(t->slots) : sizeof(struct mr_part); /* who shares minds nobody's slot */
    w.result = w.look || w.what == MR_WORD_SWAP ? result : NULL;
    return w;
}

void mr_taker_posted(struct mr_taker *t, enum mr_taker_step step)
{
    if (step == MR_STEP_CLEAR)
        t->clearing = true;
    else if (step == MR_STEP_GIVE)
        t->giving = true;
    else
        t->taking = true;
    if (step == MR_STEP_CLEAR || (step == MR_STEP_GIVE && !t->give))
        t->refuses = false;
    if (step == MR_STEP_GIVE)
        t->give = false;
    else if (step == MR_STEP_LOOK)
        t->hints = t->unhints = false;
}

static enum mr_part_seen see(struct mr_taker *t, const uint64_t *result)
{
    const struct mr_part *seen = (const struct mr_part *)(result + 1);
    enum mr_part_seen what = mr_part_look(seen, t->slots, t->slot, t->number, t->alone);

    t->slots = seen->slots > t->slots ? seen->slots : t->slots;
    return what;
}

static bool is_wanted(const uint64_t *result)
{
    return ((const struct mr_part *)(result + 1))->wanted;
}

/* It is not free. An owner's word that is not changed disturbs nobody, so that may be tried again at once. */
static void wait(struct mr_taker *t, enum mr_part_seen what, const uint64_t *result)
{
    t->looks = what == MR_PART_TAKEN || (what == MR_PART_OWNED && !t->alone);
    t->hints = what != MR_PART_GREW && !is_wanted(result);
    t->again = false;
    t->keeps = 0;
    t->tries++;
}

static void hold(struct mr_taker *t)
{
    t->state = MR_TAKER_HOLDS;
    t->keeps = 0;
}

static void leave_to_others(struct mr_taker *t)
{
    take_back(t);
    t->unhints = true;
    t->again = false;
    t->tries++;
}

static void took(struct mr_taker *t, const uint64_t *result)
{
    bool ours = !t->alone || result[0] == 0;
    enum mr_part_seen what = see(t, result);

    if (!ours) {
        wait(t, MR_PART_OWNED, result);
    } else if (what == MR_PART_FREE) {
        if (t->again && is_wanted(result))
            leave_to_others(t);
        else
            hold(t);
    } else if (t->alone) {
        t->keeps = KEEPS;
    } else {
        take_back(t);
        wait(t, what, result);
    }
}

static void looked(struct mr_taker *t, const uint64_t *result)
{
    enum mr_part_seen what = see(t, result);

    if (t->keeps) {
        if (what == MR_PART_FREE) {
            hold(t);
        } else if (what != MR_PART_GREW && !--t->keeps) {
            take_back(t);
            wait(t, MR_PART_TAKEN, result);
        }
    } else if (what == MR_PART_FREE) {
        t->looks = false;
    } else {
        wait(t, what, result);
    }
}

void mr_taker_done(struct mr_taker *t, enum mr_taker_step step, int error, const uint64_t *result)
{
    if (step == MR_STEP_GIVE)
        t->giving = false;
    else
        t->taking = false;
    if (error)
        t->lost = true;
    if (t->lost)
        return;
    if (step == MR_STEP_TAKE)
        took(t, result);
    if (step == MR_STEP_LOOK)
        looked(t, result);
}

void mr_taker_lose(struct mr_taker *t)
{
    t->lost = true;
}

void mr_taker_cleared(struct mr_taker *t)
{
    t->lost = t->clearing = t->give = false;
    t->keeps = 0;
}
