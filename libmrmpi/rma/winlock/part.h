/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a process's part of a window (MPI-4.1 section 12.5.3), in that process's memory. Two kinds of holders
 * take the lock, each with its own means:
 *
 * - processors of its node, and the process itself on request of others, by the count `holders`;
 * - adapters, for processes of other hosts. An exclusive holder has `owner` changed from 0 to its own number by an
 *   atomic operation; a sharing holder writes 1 into a byte of its own, its slot. All atomic operations are those of
 *   one adapter, because they are atomic among each other only.
 *
 * Neither side can change the other side's words, so each writes its own first and then reads the other's (Dekker). A
 * processor's change is a locked instruction, and so before its read; an adapter's read comes behind the change on the
 * same queue pair. If two meet, at least one sees the other, takes back its change, and tries again. Nobody holds
 * anything while waiting: with MPI_Win_lock_all a process shares some locks and waits for others, and two such
 * processes would wait for each other behind a process that waits for an exclusive lock.
 *
 * Processors change owner and slots only for a process without anything under way (mr_lock_part_clear): another
 * process's atomic operation does not write while owner is not 0.
 *
 * A process that returns the lock and wants it again at once would get it before anybody else. Waiting processes
 * therefore leave a hint, on which the last holder leaves the lock to them once.
 *
 * Slots are given in the order of requests. A process that reads fewer slots than there are reads again: an unknown
 * slot may be taken.
 */
#ifndef MRMPI_WINLOCK_PART_H
#define MRMPI_WINLOCK_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the form read by adapters: the slots are behind it, a byte each. Zero: free, without slots. */
struct mr_lock_part {
    uint64_t holders; /* the number of sharing processors, MR_LOCK_PART_ALONE, or MR_LOCK_PART_DELEGATED and the
                         holder in the upper half */
    uint64_t owner;   /* 0: none */
    uint32_t slots;   /* given slots; 0: only processors take the lock */
    uint8_t wanted;   /* 1: a process waits; any process may write this hint */
    uint8_t unused[3];
};
#define MR_LOCK_PART_ALONE     0x80000000u
#define MR_LOCK_PART_DELEGATED 0x40000000u      /* with an upper half of 0 the lock is free: stored by the holder */
#define MR_LOCK_PART_DELEGATE  sizeof(uint32_t) /* the place of that half, as little endian */

static inline size_t mr_lock_part_bytes(size_t slots)
{
    return sizeof(struct mr_lock_part) + slots;
}
/* Where a slot is, from the beginning of the part's lock on. */
static inline size_t mr_lock_part_slot(uint32_t slot)
{
    return sizeof(struct mr_lock_part) + slot;
}

/* By a processor. False: the lock is taken. */
bool mr_lock_part_try(struct mr_lock_part *part, bool alone);
void mr_lock_part_drop(struct mr_lock_part *part, bool alone);
/*
 * An exclusive holder delegates the lock to the process with that slot, whose adapter returns it: the process need not
 * ask again. And: takes the lock back, if the process has not returned it.
 */
void mr_lock_part_delegate(struct mr_lock_part *part, uint32_t slot);
void mr_lock_part_take_back(struct mr_lock_part *part, uint32_t slot);
/* By the owner of the part: gives another slot, for which there is room. */
uint32_t mr_lock_part_add_slot(struct mr_lock_part *part);
/* The same: removes owner and slot of a process that has nothing under way. */
void mr_lock_part_clear(struct mr_lock_part *part, uint64_t owner, uint32_t slot);
/* The meaning of an adapter's read, up to so many slots; mine: the slot of the reading process. */
enum mr_lock_part_seen {
    MR_LOCK_PART_FREE,
    MR_LOCK_PART_TAKEN,
    MR_LOCK_PART_OWNED, /* the same, by an adapter's owner */
    MR_LOCK_PART_GREW,  /* there are more slots */
};
enum mr_lock_part_seen mr_lock_part_read(const struct mr_lock_part *seen, uint32_t slots, uint32_t mine, uint64_t owner,
                                         bool alone);

#endif
