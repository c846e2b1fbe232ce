/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of blocks, and the runs to write. */
#include "libmrmpi/net/stripe/blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int mr_blocks_init(struct mr_blocks *b, uint32_t num, bool full)
{
    *b = (struct mr_blocks){.num = num, .bits = calloc((num + 63) / 64 + 1, sizeof *b->bits)};
    if (!b->bits)
        return -ENOMEM;
    if (full)
        mr_blocks_add(b, (struct mr_block_run){0, num});
    return 0;
}

void mr_blocks_free(struct mr_blocks *b)
{
    free(b->bits);
    *b = (struct mr_blocks){0};
}

/* The bits of word w that [run.first, end) has. */
static uint64_t word_mask(uint32_t w, uint32_t first, uint32_t end)
{
    uint64_t mask = UINT64_MAX;

    if (first > w * 64)
        mask <<= first - w * 64;
    if (end < (w + 1) * 64)
        mask &= (1ull << (end - w * 64)) - 1;
    return mask;
}

static uint32_t change_blocks(struct mr_blocks *b, struct mr_block_run run, bool add)
{
    uint32_t end = run.num < b->num && run.first < b->num - run.num ? run.first + run.num : b->num, changed = 0;

    if (run.first >= b->num)
        return 0;
    for (uint32_t w = run.first / 64; w * 64 < end; w++) {
        uint64_t mask = word_mask(w, run.first, end);

        changed += (uint32_t)__builtin_popcountll(mask & (add ? ~b->bits[w] : b->bits[w]));
        b->bits[w] = add ? b->bits[w] | mask : b->bits[w] & ~mask;
    }
    return changed;
}

uint32_t mr_blocks_add(struct mr_blocks *b, struct mr_block_run run)
{
    uint32_t n = change_blocks(b, run, true);

    b->count += n;
    return n;
}

uint32_t mr_blocks_remove(struct mr_blocks *b, struct mr_block_run run)
{
    uint32_t n = change_blocks(b, run, false);

    b->count -= n;
    return n;
}

uint32_t mr_blocks_find(const struct mr_blocks *b, uint32_t from, bool in)
{
    uint64_t word;

    if (from >= b->num)
        return b->num;
    word = (in ? b->bits[from / 64] : ~b->bits[from / 64]) & UINT64_MAX << (from % 64);
    for (uint32_t w = from / 64;;) {
        if (word) {
            uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(word);

            return i < b->num ? i : b->num;
        }
        if (++w * 64 >= b->num)
            return b->num;
        word = in ? b->bits[w] : ~b->bits[w];
    }
}

struct mr_block_run mr_blocks_run(const struct mr_blocks *b, uint32_t from, uint32_t to, uint32_t most)
{
    uint32_t first = mr_blocks_find(b, from, true), end = mr_blocks_find(b, first, false), num = 1;

    if (end > to)
        end = to;
    while (2 * num <= most && first % (2 * num) == 0 && first + 2 * num <= end)
        num *= 2;
    return (struct mr_block_run){first, num};
}

unsigned mr_run_adapt(unsigned shift, uint32_t lost, uint32_t all, unsigned most)
{
    unsigned less = 2 * (uint64_t)lost > all ? 2 : 8 * (uint64_t)lost > all ? 1 : 0;

    if (!less && 32 * (uint64_t)lost < all && shift < most)
        return shift + 1;
    return shift > MR_BLOCK_SHIFT_MIN + less ? shift - less : MR_BLOCK_SHIFT_MIN;
}
