/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages as datagrams without a copy: what zcopy_in.c (the receiver), zcopy_wait.c (its queue
 * pairs) and zcopy_out.c (the sender) share.
 *
 * The message is a row of blocks, one datagram each. The receiver takes queue pairs from the pools of its rails
 * (verbs/pool.c), posts the places of some blocks to each, in order, and says CLEAR: which blocks, over which
 * subchannel, to which queue pair. The sender posts them as datagrams that lie in the program's memory, each with its
 * number in the row of that CLEAR, and says WRITTEN when they have left. Receives are filled in the order in which
 * datagrams come. When all are, or nothing more comes, what landed in another's place is moved (bulk/repair.h), and
 * what is missing is cleared again. LANDED ends the message.
 *
 * Nothing is moved while a receive is posted: a late datagram would be written over what has been put right. And
 * nothing lands in memory that was given back: the message ends when all receives are filled, or have come back from
 * queue pairs that were stopped. A queue pair that was stopped, or that got what it was not cleared for, has another
 * key when it is used again, so the adapter drops what is late. A key for each message would cost a change of state of
 * the queue pair, some microseconds and a system call, where nothing can be under way: all that it was cleared for has
 * come. The number of the turn in each datagram finds out what keys do not, once their numbers have come round.
 */
#ifndef MRMPI_ZCOPY_H
#define MRMPI_ZCOPY_H

#include "libmrmpi/bulk/internal.h"

/* Words, after those of track.c. ctx: the receiver's number for the message (mr_remote.serial). */
enum zcopy_control {
    ZCOPY_CLEAR = MR_CONTROL_BULK + 3, /* tag: the subchannel; payload: struct zcopy_clear */
    ZCOPY_WRITTEN,                         /* tag: the turn; rreq: the queue pair. All has left, or will not */
    ZCOPY_LANDED,
    ZCOPY_RECALL, /* as WRITTEN, from the receiver: what has not left shall not */
};

/* The blocks of these runs, in this order. */
struct zcopy_clear {
    uint32_t qpn, qkey;
    uint16_t turn, num_runs;
    struct mr_run run[];
};
_Static_assert(sizeof(struct zcopy_clear) == 12, "on the wire");

/* Bytes of block number i of a message of len bytes. */
static inline uint32_t mr_zcopy_bytes(uint64_t len, uint32_t size, uint32_t i)
{
    uint64_t left = len - (uint64_t)i * size;

    return left < size ? (uint32_t)left : size;
}
static inline uint32_t mr_zcopy_blocks(uint64_t len, uint32_t size)
{
    return (uint32_t)((len - 1) / size) + 1;
}

/* A receive that is open. */
struct mr_inflow {
    struct region *region;
    struct mr_peer *peer;
    struct mr_inflow *next, **at;
    struct mr_blocks have, todo; /* what is there, and what nobody is cleared for */
    struct mr_intake *intakes;
    uint64_t len;
    uint32_t serial, size; /* size: of a block */
    bool asleep;           /* its sender was cleared, but has said nothing for so long that this was taken back */
    bool starves;          /* no queue pair is taken for it, and it is in the list of that name */
    struct mr_inflow *next_starved, **at_starved;
    unsigned parts;
    struct mr_stripe part[MR_SUBS_MAX]; /* in blocks: which subchannel is to carry what, to begin with */
};

/* What one queue pair takes in: the sender is cleared for num blocks, or was. */
struct mr_intake {
    struct mr_pool_qp *q;
    struct mr_peer *peer;
    struct mr_inflow *inflow; /* NULL: nobody wants it any more */
    struct mr_intake *next;
    struct mr_sub *sub;
    unsigned num, came;
    bool written, stopped, recalled;
    uint64_t begun_ns;
    uint64_t first_ns; /* when the first datagram came */
    uint64_t due_ns;   /* written: when what is missing is taken for lost */
    uint16_t *lies;    /* [num]: as mr_repair_plan() wants it */
    uint32_t block[];
};

#define ZCOPY_SIZE_MAX 4096u /* bytes of a datagram */

static inline unsigned char *mr_inflow_address(const struct mr_inflow *f, uint32_t block)
{
    return (unsigned char *)(uintptr_t)f->region->addr + (uint64_t)block * f->size;
}

/* ---- zcopy_plan.c ---- */
uint32_t mr_inflow_datagram_size(const struct mr_peer *p);
bool mr_inflow_choose_blocks(const struct mr_inflow *f, const struct mr_sub *sub, uint32_t *from, uint32_t *to,
                             uint32_t *most);
void mr_inflow_make_parts(struct mr_inflow *f);

/* ---- zcopy_settle.c ---- */
bool mr_intake_settle(struct mr_intake *in);
void mr_intake_judge(struct mr_intake *in);

/* ---- zcopy_in.c ---- */
/* Clear the sender for what is left, as far as there are queue pairs for it. */
void mr_inflow_feed(struct mr_inflow *f);
/* What is posted for it is given up; then it is settled. */
void mr_intake_stop(struct mr_intake *in);

/* ---- zcopy_wait.c ---- */
/* Datagrams of size bytes can come over it now. */
bool mr_inflow_usable(const struct mr_sub *sub, uint32_t size);
unsigned mr_intakes_on(const struct mr_inflow *f, const struct mr_sub *sub);
/* It may have a queue pair, or one more. */
bool mr_inflow_may_take(const struct mr_inflow *f, const struct mr_sub *sub);
/* Its queue pairs have become more or less, or what they are wanted for: does it wait now? */
void mr_inflow_count(struct mr_inflow *f);

#endif
