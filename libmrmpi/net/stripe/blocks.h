/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arrived blocks of a large message over links that lose writes. The message is a row of blocks of equal length, a
 * power of two. Each write brings a run of blocks: a power of two, at a multiple of its own length. A run is thus a
 * node of a binary tree whose leaves are the blocks, and its number fits into a notification, whatever the length of
 * the write.
 *
 * A notification has 32 bits: the highest is 1 (0 in notifications of net/stripe/filter.h), then the round of
 * writing, the node, and the place of the receive in the receiver's table. Pure.
 */
#ifndef MRMPI_BLOCKS_H
#define MRMPI_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#define MR_BLOCK_SHIFT_MIN 12 /* 4096 bytes: one packet at best */
#define MR_BLOCKS_BITS     15
#define MR_BLOCKS_MAX      (1u << MR_BLOCKS_BITS)

#define MR_RUN_INDEX_BITS 10
#define MR_RUN_ROUND_BITS 5
#define MR_RUN_ROUNDS     (1u << MR_RUN_ROUND_BITS)
#define MR_RUN_FLAG       0x80000000u

struct mr_blocks {
    uint32_t num;   /* of the message */
    uint32_t count; /* in the set */
    uint64_t *bits;
};

struct mr_block_run {
    uint32_t first, num;
};

/* The length of the blocks of a message: the shortest with at most MR_BLOCKS_MAX blocks. */
static inline unsigned mr_block_shift(uint64_t len)
{
    unsigned shift = MR_BLOCK_SHIFT_MIN;

    while ((len - 1) >> shift >= MR_BLOCKS_MAX)
        shift++;
    return shift;
}

/* An empty set, or a full one. 0 or -ENOMEM. */
int mr_blocks_init(struct mr_blocks *b, uint32_t num, bool full);
void mr_blocks_free(struct mr_blocks *b);
static inline bool mr_blocks_has(const struct mr_blocks *b, uint32_t i)
{
    return b->bits[i / 64] >> (i % 64) & 1;
}
/* The number of new blocks in the set, or of known blocks. Blocks beyond the end do not count. */
uint32_t mr_blocks_add(struct mr_blocks *b, struct mr_block_run run);
uint32_t mr_blocks_remove(struct mr_blocks *b, struct mr_block_run run);
/* The first block from from on that is in the set, or (in: false) is not; num if there is none. */
uint32_t mr_blocks_find(const struct mr_blocks *b, uint32_t from, bool in);
/*
 * The next run to write of the blocks of [from, to) in the set: the longest at the first of them, up to most blocks.
 * There is one.
 */
struct mr_block_run mr_blocks_run(const struct mr_blocks *b, uint32_t from, uint32_t to, uint32_t most);

static inline uint32_t mr_run_imm(uint32_t index, struct mr_block_run run, unsigned round)
{
    uint32_t node = (MR_BLOCKS_MAX + run.first) / run.num;

    return MR_RUN_FLAG | (round % MR_RUN_ROUNDS) << (MR_RUN_INDEX_BITS + MR_BLOCKS_BITS + 1) |
           node << MR_RUN_INDEX_BITS | index;
}

static inline bool mr_imm_is_run(uint32_t imm)
{
    return imm & MR_RUN_FLAG;
}

static inline uint32_t mr_run_index(uint32_t imm)
{
    return imm & ((1u << MR_RUN_INDEX_BITS) - 1);
}

static inline unsigned mr_run_round(uint32_t imm)
{
    return imm >> (MR_RUN_INDEX_BITS + MR_BLOCKS_BITS + 1) & (MR_RUN_ROUNDS - 1);
}

/* Of no blocks if imm is no run. */
static inline struct mr_block_run mr_run_of(uint32_t imm)
{
    uint32_t node = imm >> MR_RUN_INDEX_BITS & ((2u << MR_BLOCKS_BITS) - 1);
    unsigned level = node ? (unsigned)__builtin_clz(node) - (31 - MR_BLOCKS_BITS) : 0;

    return node ? (struct mr_block_run){.first = (node << level) - MR_BLOCKS_MAX, .num = 1u << level}
                : (struct mr_block_run){0, 0};
}

/*
 * The length of writes, as a power of two, after a round in which lost of all blocks did not arrive: long writes cost
 * less, with short writes less is lost with a packet. A link with many losses works best with a tenth to a half of the
 * writes lost.
 */
unsigned mr_run_adapt(unsigned shift, uint32_t lost, uint32_t all, unsigned most);

#endif
