/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Batches: a program sends several large messages to a peer, waits for all of them, and begins again. Between two
 * batches the wire is idle until the end has been reported to the sender, and until the next data has been requested.
 * Two measures fill this gap, once batches are found to be alike:
 *
 * - the bounce buffer: the bytes that are read last are copied, so the program continues before they have left;
 * - the last message has an eager prefix (prefix.c), which needs no request. The last one, since messages offered
 *   behind a prefix wait for it.
 *
 * Each is as long as the rails carry in the gap (gap_ns of the model), in whole pages. Copies are made during the
 * transfer of earlier messages; copies that would take longer are not made. Nor are any while large messages arrive: a
 * processor that copies does not request those. Pure: decides the prefix and bounce buffer of a message, by earlier
 * messages.
 */
#ifndef MRMPI_BATCH_H
#define MRMPI_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/model.h"

#define MR_BATCH_MOST  131072u /* of a prefix, and of a bounce buffer */
#define MR_BATCH_ALIKE 2u      /* consecutive batches equal to the one before them */

struct mr_batch_size {
    uint64_t bytes, last; /* of all messages, and of the latest */
};

struct mr_batch {
    unsigned open; /* sends that are under way, as far as the program knows; 0: the batch is over */
    unsigned alike;
    uint64_t received; /* large messages that had arrived at its beginning, */
    bool both_ways;    /* more than at the beginning of the batch before */
    struct mr_batch_size now, before;
};

struct mr_batch_plan {
    uint32_t prefix, bounce;
};

/*
 * A message of len bytes is offered; the rails to its peer carry rate_mbps. Prefix and bounce buffer are not shorter
 * than whole: several rails would not share them evenly. `received` large messages have been received, from any peer.
 */
struct mr_batch_plan mr_batch_begin(struct mr_batch *b, const struct mr_model *m, uint64_t len, unsigned rate_mbps,
                                    uint64_t whole, uint64_t received);

/* Its send is complete. */
static inline void mr_batch_end(struct mr_batch *b)
{
    b->open--;
}

#endif
