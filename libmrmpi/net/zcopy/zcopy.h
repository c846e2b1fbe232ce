/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages as datagrams without a copy.
 *
 * The message is a row of blocks, one datagram each. The receiver takes queue pairs from the pools of its rails
 * (verbs/pool.c). To each queue pair the receiver posts receives for a batch of blocks, in order, and sends CLEAR
 * (clear to send): the blocks, the subchannel and the queue pair. The sender posts the blocks as datagrams from the
 * program's memory, each with its number in its batch, and sends WRITTEN when they have left. Datagrams fill receives
 * in the order of arrival. When all are filled, or nothing more arrives, misplaced blocks are moved
 * (net/zcopy/repair.h), and missing blocks are cleared again. LANDED ends the message.
 *
 * In memory of windows nothing is moved: others may write there meanwhile, and their writes to the wrong place of a
 * block would move with the block. A misplaced block there counts as missing.
 *
 * Nothing is moved while a receive is posted, because a late datagram would overwrite the block. And nothing lands in
 * memory that was given back: the message ends when all receives are filled, or have come back from stopped queue
 * pairs. A queue pair that was stopped, or got a datagram of another batch, has another Q_Key at its next use, so the
 * adapter drops late datagrams. A key for each batch would cost a change of the queue pair's state (microseconds and a
 * system call) where nothing can be under way, because the whole batch has arrived. The turn number in each datagram
 * distinguishes batches after the keys have wrapped.
 */
#ifndef MRMPI_ZCOPY_H
#define MRMPI_ZCOPY_H

#include "libmrmpi/net/stripe/transfers.h"
#include "libmrmpi/net/stripe/track.h"
#include "libmrmpi/verbs/verbs.h"

/* Control messages, after those of track.h. ctx: the receiver's number of the message (mr_remote.serial). */
enum mr_zcopy_control {
    MR_ZCOPY_CLEAR = MR_TRACK_END, /* tag: the subchannel; payload: struct mr_zcopy_clear */
    MR_ZCOPY_WRITTEN,              /* tag: the turn; rreq: the queue pair. All has left, or will not */
    MR_ZCOPY_LANDED,
    MR_ZCOPY_RECALL, /* as WRITTEN, from the receiver: datagrams that have not left must not leave */
};
_Static_assert(MR_ZCOPY_RECALL < MR_RENEW_KEYS && MR_RENEW_KEYS < MR_VC_KIND_ACK,
               "each control message has a number of its own");

/* The blocks of these runs, in this order. */
struct mr_zcopy_clear {
    uint32_t qpn, qkey;
    uint16_t turn, num_runs;
    struct mr_block_run run[];
};
_Static_assert(sizeof(struct mr_zcopy_clear) == 12, "on the wire");

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

/* Receiver: a message arriving as datagrams. */
struct mr_dgram_recv {
    struct mr_bulk_region *region;
    struct mr_peer *peer;
    struct mr_dgram_recv *next, **at; /* among the peer's */
    struct mr_blocks have, todo;      /* arrived blocks, and uncleared blocks */
    struct mr_dgram_batch *batches;
    uint64_t len;
    uint32_t serial, size; /* size: bytes of a block */
    bool asleep;           /* its batches were recalled; the sender has not answered since */
    bool starves;          /* has blocks to be cleared and no queue pair: is in mr_bulk.starved */
    struct mr_dgram_recv *next_starved, **at_starved;
    unsigned parts;
    struct mr_stripe part[MR_SUBS_MAX]; /* in blocks: the subchannel of each, to begin with */
};

/* Receiver: the receives posted to a queue pair for a CLEAR. */
struct mr_dgram_batch {
    struct mr_ud_pool_qp *q;
    struct mr_peer *peer;
    struct mr_dgram_recv *recv; /* NULL: its message is over */
    struct mr_dgram_batch *next;
    struct mr_sub *sub;
    unsigned num, came; /* cleared datagrams, and arrived datagrams */
    bool written, stopped, recalled;
    uint64_t begun_ns;
    uint64_t first_ns; /* when the first datagram arrived */
    uint64_t due_ns;   /* written: when missing datagrams are taken for lost */
    uint16_t *lies;    /* [num]: in the form of mr_repair_plan() */
    uint32_t block[];
};

#define MR_ZCOPY_SIZE_MAX 4096u /* bytes of a datagram */

static inline unsigned char *mr_dgram_recv_address(const struct mr_dgram_recv *recv, uint32_t block)
{
    return (unsigned char *)(uintptr_t)recv->region->addr + (uint64_t)block * recv->size;
}

/* ---- zcopy_plan.c ---- */
/* Bytes that a datagram over any subchannel for datagrams can have; 0: there is no such subchannel. */
uint32_t mr_zcopy_datagram_size(const struct mr_peer *p);
/* Chooses blocks for a batch over sub: *most of [*from, *to). False: none. */
bool mr_dgram_recv_choose(const struct mr_dgram_recv *recv, const struct mr_sub *sub, uint32_t *from, uint32_t *to,
                          uint32_t *most);
/* Plans the blocks of each subchannel. */
void mr_dgram_recv_plan(struct mr_dgram_recv *recv);

/* ---- zcopy_wait.c ---- */
/* Is receiving len bytes as datagrams better than as packets, and possible now? */
bool mr_zcopy_can(const struct mr_peer *p, uint64_t len);
/* Datagrams of size bytes can arrive over sub now. */
bool mr_zcopy_sub_usable(const struct mr_sub *sub, uint32_t size);
unsigned mr_dgram_batches_on(const struct mr_dgram_recv *recv, const struct mr_sub *sub);
/* True if the message may take a queue pair, or one more, for sub. */
bool mr_dgram_recv_may_take(const struct mr_dgram_recv *recv, const struct mr_sub *sub);
/*
 * Puts the message into the list of those waiting for a queue pair, or takes it out, after a change of its batches or
 * blocks.
 */
void mr_dgram_recv_queue(struct mr_dgram_recv *recv);

/* ---- zcopy_settle.c ---- */
/*
 * No receive of the batch is posted any more: moves misplaced blocks. True: all blocks have arrived; otherwise the
 * missing blocks are in todo.
 */
bool mr_dgram_batch_settle(struct mr_dgram_batch *batch);
/* Gives up a subchannel after many batches without an arrival. */
void mr_dgram_batch_judge(struct mr_dgram_batch *batch);

/* ---- zcopy_in.c: receiver ---- */
/* Opens a receive for a region. 0; -ENOMEM; -EAGAIN: there is no subchannel for datagrams. */
int mr_zcopy_open(struct mr_bulk_region *r, struct mr_peer *p, struct mr_remote *out);
void mr_zcopy_close(struct mr_bulk_region *r);
/* Clears the sender for the remaining blocks, as far as there are queue pairs. */
void mr_dgram_recv_clear(struct mr_dgram_recv *recv);
/* Stops its queue pair; afterwards the batch is settled. */
void mr_dgram_batch_stop(struct mr_dgram_batch *batch);
/* Handles WRITTEN: true for WRITTEN. */
bool mr_zcopy_in_control(struct mr_peer *p, const struct mr_hdr *hdr);
/* Stops batches whose missing datagrams are overdue at now_ns. */
void mr_zcopy_poll(struct mr_peer *p, uint64_t now_ns);
/*
 * As struct mr_peer_events: stop batches that arrive over sub; stop all, where mr_peer.num_pending counts the batches
 * not back yet; free the rest at the end.
 */
void mr_zcopy_sub_broken(struct mr_sub *sub);
void mr_zcopy_peer_lost(struct mr_peer *p);
void mr_zcopy_free_peer(struct mr_peer *p);

/* ---- zcopy_serve.c ---- */
/* As mr_bulk_serve(). */
uint64_t mr_zcopy_serve(void);

/* ---- zcopy_out.c: sender ---- */
/* Checks the peer's advertisement for a transfer as datagrams. 0 or -EPROTO. */
int mr_zcopy_begin(struct mr_transfer *transfer);
/* Handles CLEAR, LANDED and RECALL: true for these. */
bool mr_zcopy_out_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/* Posts cleared blocks, as far as there is room. True: some wait. */
bool mr_zcopy_resume(struct mr_peer *p);
/* As struct mr_peer_events: after the peer was lost, and all links have drained. */
void mr_zcopy_peer_ended(struct mr_peer *p);
/* At the end. */
void mr_zcopy_free_posts(void);

#endif
