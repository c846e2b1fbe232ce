/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefixes and bounce buffers by arithmetic: see batch.h. */
#include "libmrmpi/p2p/choice/batch.h"

static uint64_t least_bytes(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Slow rails carry less than a processor copies in a round trip. */
static uint64_t in_gap(const struct mr_model *m, unsigned rate_mbps)
{
    uint64_t bytes = (uint64_t)rate_mbps * m->gap_ns / 1000;

    return least_bytes(bytes > m->prefix ? bytes : m->prefix, MR_BATCH_MOST);
}

/* Bytes that can be copied while all but the last message are on their way, for each of prefix and bounce buffer. */
static uint64_t hidden(const struct mr_model *m, const struct mr_batch_size *all, unsigned rate_mbps)
{
    return (all->bytes - all->last) * (m->busy_copy_mbps / 2) / rate_mbps;
}

/* Of the message that begins at `from` in a batch assumed to equal the one before. */
static struct mr_batch_plan plan(const struct mr_model *m, const struct mr_batch_size *all, uint64_t from, uint64_t len,
                                 unsigned rate_mbps, uint64_t whole)
{
    uint64_t most = least_bytes(in_gap(m, rate_mbps), hidden(m, all, rate_mbps)) & ~(uint64_t)(MR_MODEL_PAGE - 1);
    uint64_t prefix = least_bytes(most, all->last), end = from + len, bounce_from;
    bool last = end == all->bytes && len == all->last;
    struct mr_batch_plan p = {0};

    if (!most || most < whole || all->last < whole || (!last && end > all->bytes - all->last))
        return p;
    bounce_from = all->bytes - prefix - least_bytes(most, all->bytes - prefix); /* of the bytes read */
    if (last) {
        p.prefix = (uint32_t)prefix;
        end -= prefix;
    }
    if (end > bounce_from)
        p.bounce = (uint32_t)least_bytes(end - bounce_from, len - p.prefix);
    if (p.bounce < MR_MODEL_PAGE || p.bounce < whole)
        p.bounce = 0;
    return p;
}

static void next_batch(struct mr_batch *b, uint64_t received)
{
    bool same = b->now.bytes == b->before.bytes && b->now.last == b->before.last;

    b->alike = !same ? 0 : b->alike < MR_BATCH_ALIKE ? b->alike + 1 : b->alike;
    b->before = b->now;
    b->now = (struct mr_batch_size){0};
    b->both_ways = received != b->received;
    b->received = received;
}

struct mr_batch_plan mr_batch_begin(struct mr_batch *b, const struct mr_model *m, uint64_t len, unsigned rate_mbps,
                                    uint64_t whole, uint64_t received)
{
    uint64_t from;

    if (!b->open++)
        next_batch(b, received);
    from = b->now.bytes;
    b->now.bytes += len;
    b->now.last = len;
    if (b->alike < MR_BATCH_ALIKE || b->both_ways || !rate_mbps)
        return (struct mr_batch_plan){0};
    return plan(m, &b->before, from, len, rate_mbps, whole);
}
