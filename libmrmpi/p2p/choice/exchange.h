/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes that send each other large messages at the same time. The data read by each leaves the other's adapter,
 * and there a request to read, or the report that a message has been read, waits behind the data: both sides wait in
 * turn, and stay in this step (simulated, HDR, 64 KiB both ways one at a time over rails of 4 and 1 lanes: 13.6 GB/s
 * read, 18.4 written). So a message that comes while an offer to the same peer is open is written by that peer, which
 * has to answer our offer anyway. With many messages under way no process waits for one of them, and reading costs the
 * processors less; likewise if other processes of the host keep the wire busy meanwhile.
 *
 * A computing peer does not write, but could be read from. So if the peer is late writing, RDMA reads are used for some
 * messages, more and more each time.
 *
 * Pure: one struct for each peer; the clock is given.
 */
#ifndef MRMPI_EXCHANGE_H
#define MRMPI_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/backoff.h"
#include "libmrmpi/base/model.h"

#define MR_EXCHANGE_MOST   8u           /* transfers of a process, in both directions: with more they are read; */
#define MR_EXCHANGE_SHARED (128u << 10) /* and bytes of them, if the process is not alone on its host */
#define MR_EXCHANGE_FIRST  16u          /* messages read after the first late write */

struct mr_exchange {
    unsigned open;           /* large messages that were offered to the peer and are not over */
    struct mr_backoff reads; /* of writes by the peer */
};

/*
 * A large message of len bytes is offered; under_way transfers are under way, including this one. shared: other
 * processes are on this host. True: the peer shall write it.
 */
static inline bool mr_exchange_writes(struct mr_exchange *e, size_t len, unsigned under_way, bool shared)
{
    if (!e->open || under_way > MR_EXCHANGE_MOST || (shared && len * under_way > MR_EXCHANGE_SHARED))
        return false;
    return !mr_backoff_skips(&e->reads);
}

/* A message of len bytes written by the peer is there, took_ns after the peer was told to write. */
static inline void mr_exchange_landed(struct mr_exchange *e, uint64_t took_ns, size_t len)
{
    if (took_ns <= MR_MODEL_LATE_NS + len) /* a nanosecond for each byte */
        mr_backoff_succeeded(&e->reads);
    else
        mr_backoff_failed(&e->reads, MR_EXCHANGE_FIRST);
}

#endif
