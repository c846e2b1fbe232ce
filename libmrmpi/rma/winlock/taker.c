/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/rma/winlock/taker.h"

/*
 * Of an exclusive and a sharing taker that come at the same time, the sharing one leaves at once, and the exclusive one
 * polls again: otherwise both would leave and come again in step. Only a few times, since the holders may wait for
 * another lock (part.h).
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
    t->polls = false;
    t->hints = t->unhints = false;
    t->keeps = 0;
    t->tries = 0;
}

void mr_taker_delegated(struct mr_taker *t)
{
    t->state = MR_TAKER_HOLDS;
    t->alone = t->delegated = true;
}

void mr_taker_refuse(struct mr_taker *t)
{
    t->refuses = true;
}

void mr_taker_return(struct mr_taker *t)
{
    t->state = MR_TAKER_IDLE;
    t->delegated = false;
}

static void give_again(struct mr_taker *t)
{
    t->give = true;
    t->gives_alone = t->alone;
    t->gives_delegated = t->delegated;
}

void mr_taker_give(struct mr_taker *t)
{
    t->state = MR_TAKER_IDLE;
    t->again = true;
    give_again(t);
    t->delegated = false;
}

void mr_taker_stop(struct mr_taker *t)
{
    t->state = MR_TAKER_IDLE;
}

/* A lost lock is cleared when nothing under way might still succeed. */
enum mr_taker_step mr_taker_next(const struct mr_taker *t)
{
    if (t->lost)
        return t->taking || t->giving || t->clearing ? MR_STEP_NONE : MR_STEP_CLEAR;
    if (t->give || t->refuses)
        return t->giving ? MR_STEP_NONE : MR_STEP_GIVE;
    if (t->state != MR_TAKER_WANTS || t->taking)
        return MR_STEP_NONE;
    return t->polls || t->keeps || t->hints || t->unhints ? MR_STEP_POLL : MR_STEP_TAKE;
}

static struct mr_atomic store_atomic(size_t at, uint32_t bytes, uint64_t value)
{
    return (struct mr_atomic){.what = MR_ATOMIC_STORE, .at = at, .bytes = bytes, .value = value};
}

static struct mr_atomic swap_owner(uint64_t compare, uint64_t value)
{
    return (struct mr_atomic){
        .what = MR_ATOMIC_SWAP, .at = offsetof(struct mr_lock_part, owner), .compare = compare, .value = value};
}

static struct mr_atomic release_atomic(const struct mr_taker *t)
{
    if (t->give ? t->gives_delegated : t->refuses)
        return store_atomic(offsetof(struct mr_lock_part, holders) + MR_LOCK_PART_DELEGATE, sizeof(uint32_t), 0);
    return t->gives_alone ? swap_owner(t->number, 0) : store_atomic(mr_lock_part_slot(t->slot), 1, 0);
}

struct mr_atomic mr_taker_atomic(const struct mr_taker *t, enum mr_taker_step step, uint64_t *result)
{
    struct mr_atomic w = {.what = MR_ATOMIC_READ};

    if (step == MR_STEP_GIVE)
        w = release_atomic(t);
    else if (step == MR_STEP_TAKE)
        w = t->alone ? swap_owner(0, t->number) : store_atomic(mr_lock_part_slot(t->slot), 1, 1);
    else if (t->hints || t->unhints)
        w = store_atomic(offsetof(struct mr_lock_part, wanted), 1, !t->unhints);
    if (step != MR_STEP_GIVE)
        w.peek =
            t->alone ? mr_lock_part_bytes(t->slots) : sizeof(struct mr_lock_part); /* a sharing taker ignores slots */
    w.result = w.peek || w.what == MR_ATOMIC_SWAP ? result : NULL;
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
    else if (step == MR_STEP_POLL)
        t->hints = t->unhints = false;
}

static enum mr_lock_part_seen see(struct mr_taker *t, const uint64_t *result)
{
    const struct mr_lock_part *seen = (const struct mr_lock_part *)(result + 1);
    enum mr_lock_part_seen what = mr_lock_part_read(seen, t->slots, t->slot, t->number, t->alone);

    t->slots = seen->slots > t->slots ? seen->slots : t->slots;
    return what;
}

static bool lock_wanted_by(const uint64_t *result)
{
    return ((const struct mr_lock_part *)(result + 1))->wanted;
}

/* Not free. An unchanged owner disturbs no process, so this may be tried again at once. */
static void wait(struct mr_taker *t, enum mr_lock_part_seen what, const uint64_t *result)
{
    t->polls = what == MR_LOCK_PART_TAKEN || (what == MR_LOCK_PART_OWNED && !t->alone);
    t->hints = what != MR_LOCK_PART_GREW && !lock_wanted_by(result);
    t->again = false;
    t->keeps = 0;
    t->tries++;
}

static void hold_lock(struct mr_taker *t)
{
    t->state = MR_TAKER_HOLDS;
    t->keeps = 0;
}

static void leave_to_others(struct mr_taker *t)
{
    give_again(t);
    t->unhints = true;
    t->again = false;
    t->tries++;
}

static void took(struct mr_taker *t, const uint64_t *result)
{
    bool ours = !t->alone || result[0] == 0;
    enum mr_lock_part_seen what = see(t, result);

    if (!ours) {
        wait(t, MR_LOCK_PART_OWNED, result);
    } else if (what == MR_LOCK_PART_FREE) {
        if (t->again && lock_wanted_by(result))
            leave_to_others(t);
        else
            hold_lock(t);
    } else if (t->alone) {
        t->keeps = KEEPS;
    } else {
        give_again(t);
        wait(t, what, result);
    }
}

static void lock_polled(struct mr_taker *t, const uint64_t *result)
{
    enum mr_lock_part_seen what = see(t, result);

    if (t->keeps) {
        if (what == MR_LOCK_PART_FREE) {
            hold_lock(t);
        } else if (what != MR_LOCK_PART_GREW && !--t->keeps) {
            give_again(t);
            wait(t, MR_LOCK_PART_TAKEN, result);
        }
    } else if (what == MR_LOCK_PART_FREE) {
        t->polls = false;
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
    if (step == MR_STEP_POLL)
        lock_polled(t, result);
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
