/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages as datagrams without a copy.
 *
 * The message is a row of blocks, one datagram each. The receiver takes queue pairs from the pools of its rails
 * (verbs/pool.c). To each it posts receives for a batch of blocks, in order, and sends CLEAR (clear to send): which
 * blocks, over which subchannel, to which queue pair. The sender posts them as datagrams from the program's memory,
 * each with its number in its batch, and sends WRITTEN when they have left. Receives are filled in the order in which
 * datagrams arrive. When all are filled, or nothing more arrives, misplaced blocks are moved (verbs/reliable/repair.h),
 * and missing ones are cleared again. LANDED ends the message.
 *
 * In memory of windows nothing is moved at all: others may write there meanwhile, and what they write to the place
 * where a block lies by mistake would go with it. What is misplaced there is missing.
 *
 * Nothing is moved while a receive is posted, since a late datagram would overwrite it. And nothing lands in memory
 * that was given back: the message ends when all receives are filled, or have come back from queue pairs that were
 * stopped. A queue pair that was stopped, or got a datagram of another batch, has another Q_Key when it is used again,
 * so the adapter drops what is late. A key for each batch would cost a change of the queue pair's state (microseconds
 * and a system call) where nothing can be under way, since the whole batch has arrived. The turn number in each
 * datagram tells batches apart after the keys have wrapped.
 */
#ifndef MRMPI_ZCOPY_H
#define MRMPI_ZCOPY_H

#include "libmrmpi/net/stripe/puts.h"
#include "libmrmpi/net/stripe/track.h"
#include "libmrmpi/verbs/pool.h"

/* Control messages, after those of track.h. ctx: the receiver's number for the message (mr_remote.serial). */
enum mr_zcopy_control {
    MR_ZCOPY_CLEAR = MR_TRACK_END, /* tag: the subchannel; payload: struct mr_zcopy_clear */
    MR_ZCOPY_WRITTEN,              /* tag: the turn; rreq: the queue pair. All has left, or will not */
    MR_ZCOPY_LANDED,
    MR_ZCOPY_RECALL, /* as WRITTEN, from the receiver: what has not left shall not */
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

/* Receiver: a message that is being received as datagrams. */
struct mr_dgram_recv {
    struct mr_bulk_region *region;
    struct mr_peer *peer;
    struct mr_dgram_recv *next, **at; /* among the peer's */
    struct mr_blocks have, todo;      /* blocks that are there, and those that are not cleared */
    struct mr_dgram_batch *batches;
    uint64_t len;
    uint32_t serial, size; /* size: bytes of a block */
    bool asleep;           /* its batches were recalled; the sender has not answered since */
    bool starves;          /* it has blocks to be cleared and no queue pair: it is in mr_bulk.starved */
    struct mr_dgram_recv *next_starved, **at_starved;
    unsigned parts;
    struct mr_stripe part[MR_SUBS_MAX]; /* in blocks: which subchannel shall carry which, to begin with */
};

/* Receiver: the receives that are posted to one queue pair for one CLEAR. */
struct mr_dgram_batch {
    struct mr_pool_qp *q;
    struct mr_peer *peer;
    struct mr_dgram_recv *recv; /* NULL: its message is over */
    struct mr_dgram_batch *next;
    struct mr_sub *sub;
    unsigned num, came; /* datagrams that were cleared, and that have arrived */
    bool written, stopped, recalled;
    uint64_t begun_ns;
    uint64_t first_ns; /* when the first datagram arrived */
    uint64_t due_ns;   /* written: when missing datagrams are taken for lost */
    uint16_t *lies;    /* [num]: as mr_repair_plan() wants it */
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
/* Plans which subchannel shall carry which blocks. */
void mr_dgram_recv_plan(struct mr_dgram_recv *recv);

/* ---- zcopy_wait.c ---- */
/* Is receiving len bytes as datagrams better than as packets, and possible now? */
bool mr_zcopy_can(const struct mr_peer *p, uint64_t len);
/* Datagrams of size bytes can arrive over sub now. */
bool mr_zcopy_sub_usable(const struct mr_sub *sub, uint32_t size);
unsigned mr_dgram_batches_on(const struct mr_dgram_recv *recv, const struct mr_sub *sub);
/* It may take a queue pair, or one more, for sub. */
bool mr_dgram_recv_may_take(const struct mr_dgram_recv *recv, const struct mr_sub *sub);
/* Puts it into the list of those that wait for a queue pair, or takes it out, after its batches or blocks have changed.
 */
void mr_dgram_recv_queue(struct mr_dgram_recv *recv);

/* ---- zcopy_settle.c ---- */
/* None of its receives is posted any more: moves misplaced blocks. True: all of them are there; others are in todo. */
bool mr_dgram_batch_settle(struct mr_dgram_batch *batch);
/* Gives up a subchannel after many batches of which nothing arrived. */
void mr_dgram_batch_judge(struct mr_dgram_batch *batch);

/* ---- zcopy_in.c: receiver ---- */
/* Opens a receive for a region. 0; -ENOMEM; -EAGAIN: there is no subchannel for datagrams. */
int mr_zcopy_open(struct mr_bulk_region *r, struct mr_peer *p, struct mr_remote *out);
void mr_zcopy_close(struct mr_bulk_region *r);
/* Clears the sender for what is left, as far as there are queue pairs. */
void mr_dgram_recv_clear(struct mr_dgram_recv *recv);
/* Stops its queue pair; once that has stopped the batch is settled. */
void mr_dgram_batch_stop(struct mr_dgram_batch *batch);
/* Handles WRITTEN: true if it is that. */
bool mr_zcopy_in_control(struct mr_peer *p, const struct mr_hdr *hdr);
/* Stops batches whose missing datagrams are overdue at now_ns. */
void mr_zcopy_poll(struct mr_peer *p, uint64_t now_ns);
/* As struct mr_peer_events: stop batches that arrive over sub; stop all, of which mr_peer.num_pending counts those that
 * are not back; free what is left at the end. */
void mr_zcopy_sub_broken(struct mr_sub *sub);
void mr_zcopy_peer_lost(struct mr_peer *p);
void mr_zcopy_free_peer(struct mr_peer *p);

/* ---- zcopy_serve.c ---- */
/* As mr_bulk_serve(). */
uint64_t mr_zcopy_serve(void);

/* ---- zcopy_out.c: sender ---- */
/* Checks what the peer has advertised for a put as datagrams. 0 or -EPROTO. */
int mr_zcopy_begin(struct mr_put *put);
/* Handles CLEAR, LANDED and RECALL: true if it is one of them. */
bool mr_zcopy_out_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);
/* Posts what has been cleared, as far as there is room. True: some waits. */
bool mr_zcopy_resume(struct mr_peer *p);
/* As struct mr_peer_events: after the peer was lost, and all links have drained. */
void mr_zcopy_peer_ended(struct mr_peer *p);
/* At the end. */
void mr_zcopy_free_posts(void);

#endif
