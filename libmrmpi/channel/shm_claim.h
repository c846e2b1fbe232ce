/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A claim: two processes move the chunks of one message at the same time, one from the front, one from the back, until
 * they meet. Each claims a chunk before touching it, so no chunk is moved twice, neither waits for the other's part,
 * and a process that does not come leaves all to the other.
 *
 * The claim lies in the box of the message's receiver, which opens it, takes from the back, and knows that all bytes
 * have arrived when no chunk is left and as many chunks are written as were taken from the front. The ticket tells a
 * late sender whether the claim still belongs to its message. The receiver trusts nothing read there (shm_box.h).
 */
#ifndef MRMPI_SHM_CLAIM_H
#define MRMPI_SHM_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_CLAIMS       16        /* of each rank */
#define MR_CLAIM_CHUNKS 0xffffffu /* at most */

struct mr_claim {
    _Alignas(64) uint64_t ends; /* ticket, chunks taken from the front, chunks left up to the back: 16, 24, 24 bits */
    uint64_t written;           /* by the sender: chunks of the front that are there */
};

/* Of one rank. */
struct mr_claims {
    struct mr_claim of[MR_CLAIMS];
    uint8_t mode[8]; /* copy mode + 1 of messages to the rank while it has some to send, too; 0: p2p/rndv/near.c */
};

static inline uint64_t mr_claim_ends(uint16_t ticket, uint32_t front, uint32_t back)
{
    return (uint64_t)ticket << 48 | (uint64_t)front << 24 | back;
}
static inline uint32_t mr_claim_front(uint64_t ends)
{
    return ends >> 24 & MR_CLAIM_CHUNKS;
}
static inline uint32_t mr_claim_back(uint64_t ends)
{
    return ends & MR_CLAIM_CHUNKS;
}

/* Bytes of a chunk of a message: of eight, but none is shorter or longer than these. */
#define MR_CLAIM_LEAST (16u << 10)
#define MR_CLAIM_MOST  (256u << 10)
static inline uint32_t mr_claim_chunk(size_t total)
{
    size_t chunk = ((total + 7) / 8 + 4095) & ~(size_t)4095;

    return (uint32_t)(chunk < MR_CLAIM_LEAST ? MR_CLAIM_LEAST : chunk > MR_CLAIM_MOST ? MR_CLAIM_MOST : chunk);
}

/* By the receiver. */
static inline void mr_claim_open(struct mr_claim *c, uint16_t ticket, uint32_t chunks)
{
    __atomic_store_n(&c->written, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&c->ends, mr_claim_ends(ticket, 0, chunks), __ATOMIC_RELEASE);
}

/* The next chunk of `chunks` from that end, -1: none is left, or another message is meant by now. */
static inline int64_t mr_claim_take(struct mr_claim *c, uint16_t ticket, uint32_t chunks, bool from_front)
{
    uint64_t ends = __atomic_load_n(&c->ends, __ATOMIC_ACQUIRE), next;
    uint32_t front, back;

    do {
        front = mr_claim_front(ends), back = mr_claim_back(ends);
        if (ends >> 48 != ticket || front >= back || back > chunks)
            return -1;
        next = from_front ? mr_claim_ends(ticket, front + 1, back) : mr_claim_ends(ticket, front, back - 1);
    } while (!__atomic_compare_exchange_n(&c->ends, &ends, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return from_front ? front : back - 1;
}

/* By the sender: the chunk taken last could not be moved, and is left to the receiver. */
static inline void mr_claim_return(struct mr_claim *c)
{
    __atomic_fetch_add(&c->ends, -(UINT64_C(1) << 24), __ATOMIC_ACQ_REL);
}

/* By the receiver: no more chunks are taken; chunks taken by the sender are still being written, or were returned. */
static inline void mr_claim_close(struct mr_claim *c)
{
    uint64_t ends = __atomic_load_n(&c->ends, __ATOMIC_ACQUIRE), next;

    do
        next = (ends & ~(uint64_t)MR_CLAIM_CHUNKS) | mr_claim_front(ends);
    while (!__atomic_compare_exchange_n(&c->ends, &ends, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}
static inline bool mr_claim_is_quiet(const struct mr_claim *c)
{
    return __atomic_load_n(&c->written, __ATOMIC_ACQUIRE) ==
           mr_claim_front(__atomic_load_n(&c->ends, __ATOMIC_ACQUIRE));
}

/* By the sender: the chunk is in the receiver's memory. */
static inline void mr_claim_wrote(struct mr_claim *c)
{
    __atomic_store_n(&c->written, c->written + 1, __ATOMIC_RELEASE);
}

/*
 * By the receiver: all chunks taken from both ends have arrived. The receiver itself knows the chunks of its own end.
 */
static inline bool mr_claim_over(const struct mr_claim *c)
{
    uint64_t ends = __atomic_load_n(&c->ends, __ATOMIC_ACQUIRE);

    return mr_claim_front(ends) >= mr_claim_back(ends) &&
           __atomic_load_n(&c->written, __ATOMIC_ACQUIRE) == mr_claim_front(ends);
}

#endif
