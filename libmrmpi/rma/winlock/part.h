/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lock of a process's part of a window (MPI-4.1 section 12.5.3), in that process's memory. Two kinds of processes
 * take it, each with the means it has:
 *
 * - processors of its node, and for those that ask it the process itself, by the count `holders`;
 * - adapters, for processes of other hosts: one that wants it alone has `owner` changed from 0 to its own number by an
 *   atomic operation; one that shares it writes 1 into a byte of its own, its slot. All atomic operations are those of
 *   one adapter, since they are atomic among each other only.
 *
 * Neither can change what the other one changes, so each writes its own first and then looks at the other's (Dekker). A
 * processor's change is a locked instruction, and so before its look; an adapter's look is a read behind the change on
 * the same queue pair. Of two that meet so one sees the other at least, takes back what it has written, and comes
 * again. Nobody holds anything while it waits: with MPI_Win_lock_all a process shares some locks and waits for others,
 * and two of them would wait for each other behind one that waits to be alone.
 *
 * Processors change owner and slots only for a process of which nothing can be under way any more (mr_part_clear): an
 * atomic operation of another one does not write while owner is not 0.
 *
 * One that gives it back and wants it again at once would have it again before anybody else. So those that wait leave a
 * hint, on which it leaves it to them once.
 *
 * Slots are given in the order in which processes ask for them. Who looks at fewer than there are looks again: a slot
 * that it did not know of may be taken.
 */
#ifndef MRMPI_WINLOCK_PART_H
#define MRMPI_WINLOCK_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As adapters read it: the slots are behind it, a byte each. Zero: it is free, and there are no slots. */
struct mr_part {
    uint64_t holders; /* how many processors share it, MR_PART_ALONE, or MR_PART_LENT and in the upper half to whom */
    uint64_t owner;   /* 0: none */
    uint32_t slots;   /* that have been given; 0: only processors take it */
    uint8_t wanted;   /* 1: somebody waits for it; anybody may write it, a hint */
    uint8_t unused[3];
};
#define MR_PART_ALONE    0x80000000u
#define MR_PART_LENT     0x40000000u      /* with an upper half of 0 it is free: the borrower has stored that */
#define MR_PART_BORROWER sizeof(uint32_t) /* where that half lies in it, as little endian */

static inline size_t mr_part_bytes(size_t slots)
{
    return sizeof(struct mr_part) + slots;
}
/* Where a slot is, from the beginning of the part's lock on. */
static inline size_t mr_part_slot(uint32_t slot)
{
    return sizeof(struct mr_part) + slot;
}

/* By a processor. False: somebody has it. */
bool mr_part_try(struct mr_part *part, bool alone);
void mr_part_drop(struct mr_part *part, bool alone);
/*
 * One that holds it alone lends it to the process with that slot, which its adapter gives back for it: so that process
 * need not ask again. And: takes it back, if that has not done so.
 */
void mr_part_lend(struct mr_part *part, uint32_t slot);
void mr_part_take_back(struct mr_part *part, uint32_t slot);
/* The process to whom it belongs: gives another slot, for which there is room. */
uint32_t mr_part_add_slot(struct mr_part *part);
/* The same: owner and slot are no longer those of a process that has nothing under way. */
void mr_part_clear(struct mr_part *part, uint64_t owner, uint32_t slot);
/* What an adapter has read of it, as far as so many slots; mine: the slot of the process that looks. */
enum mr_part_seen {
    MR_PART_FREE,
    MR_PART_TAKEN,
    MR_PART_OWNED, /* the same, by an adapter's owner */
    MR_PART_GREW,  /* there are more slots */
};
enum mr_part_seen mr_part_look(const struct mr_part *seen, uint32_t slots, uint32_t mine, uint64_t owner, bool alone);

#endif
