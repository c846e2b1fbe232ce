/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Batches: a program sends several large messages to a peer, waits for all of them, and begins again. Between two of
 * them nothing is on the wire until the end has been reported to the sender, and until the next data has been asked
 * for. Two things fill this gap, once batches are seen to be alike:
 * - the tail, the bytes that are read last, is copied, so that the program goes on before it has left;
 * - the last message has a prefix (prefix.c), which needs no request. It is the last one since what is offered behind a
 *   head waits for it.
 * Each is as long as what the rails carry in a round trip. Copies are made while what was offered before is on its way;
 * what would take longer to copy is not. Nor is there any while large messages arrive: a processor that copies does not
 * ask for those. Pure: which bytes of a message are head and tail, by what came before.
 */
#ifndef MRMPI_BATCH_H
#define MRMPI_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#define MR_BATCH_GAP_NS    3000u   /* from a FIN to the next offer, or from an offer to its data */
#define MR_BATCH_LEAST     16384u  /* of a prefix, and of a tail; slow rails carry less in the gap; */
#define MR_BATCH_MOST      131072u /* this takes copying 13 us */
#define MR_BATCH_COPY_MBPS 10000u  /* that a processor copies */
#define MR_BATCH_GRAIN     4096u   /* a shorter head or tail is not worth its request */
#define MR_BATCH_WHOLE     8u      /* on several rails messages are so many times as long as what one carries alone */
#define MR_BATCH_ALIKE     2u      /* batches in a row that are as the one before them */

struct mr_batch_size {
    uint64_t bytes, last; /* of all messages, and of the latest */
};

struct mr_batch {
    unsigned open; /* sends that are under way, as far as the program knows; 0: the batch is over */
    unsigned alike;
    uint64_t received; /* large messages that had arrived when it began, */
    bool both_ways;    /* which were more than at the beginning of the one before */
    struct mr_batch_size now, before;
};

struct mr_batch_plan {
    uint32_t prefix, tail;
};

/*
 * A message of len bytes is offered; the rails to its peer carry so many MB/s. Head and tail are not shorter than
 * whole, and messages are far longer: several rails would not share them evenly. So many large messages have been
 * received, from anybody.
 */
struct mr_batch_plan mr_batch_begin(struct mr_batch *b, uint64_t len, unsigned rate_mbps, uint64_t whole,
                                    uint64_t received);

/* Its send is complete. */
static inline void mr_batch_end(struct mr_batch *b)
{
    b->open--;
}

#endif
