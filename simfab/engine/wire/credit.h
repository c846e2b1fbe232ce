/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Link-level flow control with absolute credits (InfiniBand specification 7.9). Per lane, the sender counts the blocks
 * sent (FCTBS), and the receiver announces the count that the sender may reach (FCCL). Both count in blocks of 64 bytes
 * modulo 4096, so a lost update does no harm. Pure arithmetic.
 */
#ifndef SIMFAB_CREDIT_H
#define SIMFAB_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#define CREDIT_BLOCK_BYTES 64u
#define CREDIT_MODULUS     4096u
#define CREDIT_BLOCKS_MAX  2047u /* limit of the modular counts */

struct credit {
    uint16_t fctbs; /* sender: blocks sent */
    uint16_t fccl;  /* sender: the last limit received */
    uint16_t freed; /* receiver: blocks received and freed again, plus the buffer's size */
};

static inline uint16_t credit_blocks(uint32_t bytes)
{
    return (uint16_t)((bytes + CREDIT_BLOCK_BYTES - 1) / CREDIT_BLOCK_BYTES);
}

static inline void credit_init(struct credit *c, uint32_t buffer_bytes)
{
    uint32_t blocks = buffer_bytes / CREDIT_BLOCK_BYTES;

    c->fctbs = 0;
    c->freed = c->fccl = (uint16_t)(blocks > CREDIT_BLOCKS_MAX ? CREDIT_BLOCKS_MAX : blocks);
}

/* The sender's known credit. */
static inline uint32_t credit_available(const struct credit *c)
{
    return (uint32_t)(c->fccl - c->fctbs) & (CREDIT_MODULUS - 1);
}

/* The real free room: never less than the sender's view. */
static inline uint32_t credit_free(const struct credit *c)
{
    return (uint32_t)(c->freed - c->fctbs) & (CREDIT_MODULUS - 1);
}

static inline bool credit_may_send(const struct credit *c, uint32_t bytes)
{
    return credit_blocks(bytes) <= credit_available(c);
}

/* The invariant: no sending without credit, and never more free than the buffer has. */
static inline bool credit_holds(const struct credit *c, uint32_t buffer_bytes)
{
    uint32_t blocks = buffer_bytes / CREDIT_BLOCK_BYTES;

    return credit_available(c) <= credit_free(c) &&
           credit_free(c) <= (blocks > CREDIT_BLOCKS_MAX ? CREDIT_BLOCKS_MAX : blocks);
}

static inline void credit_sent(struct credit *c, uint32_t bytes)
{
    c->fctbs = (c->fctbs + credit_blocks(bytes)) & (CREDIT_MODULUS - 1);
}

/* The receiver has freed the room of a packet. The sender knows when it gets the update. */
static inline void credit_freed(struct credit *c, uint32_t bytes)
{
    c->freed = (c->freed + credit_blocks(bytes)) & (CREDIT_MODULUS - 1);
}

static inline void credit_update(struct credit *c, uint16_t fccl)
{
    c->fccl = fccl;
}

#endif
