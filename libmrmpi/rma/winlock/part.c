/* SPDX-License-Identifier: BSD-3-Clause */
#include "libmrmpi/rma/winlock/part.h"

static const uint8_t *part_slots(const struct mr_lock_part *part)
{
    return (const uint8_t *)(part + 1);
}

/* True if the adapters' part of the lock, owner and slots, excludes this request. */
static bool is_taken(const struct mr_lock_part *part, bool alone)
{
    uint32_t slots = __atomic_load_n(&part->slots, __ATOMIC_SEQ_CST);

    if (!slots)
        return false;
    if (__atomic_load_n(&part->owner, __ATOMIC_SEQ_CST))
        return true;
    for (uint32_t i = 0; alone && i < slots; i++)
        if (__atomic_load_n(&part_slots(part)[i], __ATOMIC_ACQUIRE))
            return true;
    return false;
}

/* Adapters hold the lock, or are about to take it. The hint makes the last holder leave the lock to waiters once. */
static bool leave_hint(struct mr_lock_part *part)
{
    __atomic_store_n(&part->wanted, 1, __ATOMIC_RELAXED);
    return false;
}

/* The first check spares adapters that are about to take it another failure. */
bool mr_lock_part_try(struct mr_lock_part *part, bool alone)
{
    uint64_t was = __atomic_load_n(&part->holders, __ATOMIC_RELAXED), sharers;

    if (is_taken(part, alone))
        return leave_hint(part);
    do {
        sharers = was == MR_LOCK_PART_DELEGATED ? 0 : was;
        if (alone ? sharers : sharers >= MR_LOCK_PART_DELEGATED)
            return false;
    } while (!__atomic_compare_exchange_n(&part->holders, &was, alone ? MR_LOCK_PART_ALONE : sharers + 1, false,
                                          __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!is_taken(part, alone))
        return true;
    mr_lock_part_drop(part, alone);
    return leave_hint(part);
}

void mr_lock_part_drop(struct mr_lock_part *part, bool alone)
{
    if (alone)
        __atomic_store_n(&part->holders, 0, __ATOMIC_RELEASE);
    else
        __atomic_fetch_sub(&part->holders, 1, __ATOMIC_RELEASE);
}

static uint64_t delegated_to(uint32_t slot)
{
    return MR_LOCK_PART_DELEGATED | (uint64_t)(slot + 1) << 32;
}

void mr_lock_part_delegate(struct mr_lock_part *part, uint32_t slot)
{
    __atomic_store_n(&part->holders, delegated_to(slot), __ATOMIC_RELEASE);
}

void mr_lock_part_take_back(struct mr_lock_part *part, uint32_t slot)
{
    uint64_t was = delegated_to(slot);

    __atomic_compare_exchange_n(&part->holders, &was, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

uint32_t mr_lock_part_add_slot(struct mr_lock_part *part)
{
    return __atomic_fetch_add(&part->slots, 1, __ATOMIC_SEQ_CST);
}

void mr_lock_part_clear(struct mr_lock_part *part, uint64_t owner, uint32_t slot)
{
    __atomic_store_n((uint8_t *)(part + 1) + slot, 0, __ATOMIC_RELEASE);
    if (__atomic_load_n(&part->owner, __ATOMIC_ACQUIRE) == owner)
        __atomic_store_n(&part->owner, 0, __ATOMIC_RELEASE);
}

enum mr_lock_part_seen mr_lock_part_read(const struct mr_lock_part *seen, uint32_t slots, uint32_t mine, uint64_t owner,
                                         bool alone)
{
    uint64_t sharers = seen->holders == MR_LOCK_PART_DELEGATED ? 0 : seen->holders;

    if (alone ? sharers : sharers >= MR_LOCK_PART_DELEGATED)
        return MR_LOCK_PART_TAKEN;
    if (seen->owner && seen->owner != owner)
        return MR_LOCK_PART_OWNED;
    if (alone && seen->slots > slots)
        return MR_LOCK_PART_GREW;
    for (uint32_t i = 0; alone && i < slots && i < seen->slots; i++)
        if (i != mine && part_slots(seen)[i])
            return MR_LOCK_PART_TAKEN;
    return MR_LOCK_PART_FREE;
}
