/* SPDX-License-Identifier: BSD-3-Clause */
/* Context ids: see core.h. */
#include "libmrmpi/core/context.h"

#include <string.h>

static uint64_t mask[MR_CONTEXT_WORDS];

void mr_context_init(void)
{
    memset(mask, 0xff, sizeof(mask));
    mask[0] &= ~3ull;
}

void mr_context_finalize(void)
{
    memset(mask, 0, sizeof(mask));
}

const uint64_t *mr_context_ids(void)
{
    return mask;
}

void mr_context_take(uint32_t id)
{
    mask[id / 2 / 64] &= ~(1ull << (id / 2 % 64));
}

void mr_context_release(uint32_t id)
{
    if (id != MR_CONTEXT_NONE && id < MR_CONTEXT_ONCE)
        mask[id / 2 / 64] |= 1ull << (id / 2 % 64);
}
