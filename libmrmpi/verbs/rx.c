/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive buffers: a slab, registered once, posted to a receive queue. Each rail has two such queues, shared by queue
 * pairs: one for its connections, one for packets sent as datagrams. A queue pair that cannot share one has its own. A
 * buffer goes back when its packet has been handled. Returned buffers are posted in batches, because a post costs a
 * doorbell, and when there is time: after the answers to the packets have been sent, or when nothing else has come.
 * This saves 5 percent of a round trip of 8 bytes (simulated, HDR). A receiver with constant arrivals, and without
 * answers, posts them nevertheless, before the adapter runs out: a sender without a receive buffer waits for 0.32 ms. A
 * write with immediate takes a buffer too and leaves it untouched.
 *
 * Higher folders may retain buffers of a shared queue (base/retained.h): a part of them, since others must be with the
 * adapter. A queue closed meanwhile leaves its slab to the last retained buffer.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/retained.h"

#define REPOST_BATCH 16 /* of all rails together, and a part of that while data moves by RDMA, */
#define REPOST_LEAST 4  /* at least */
#define STREAM       2  /* waiting batches that prove a stream */

/* Of a queue's buffers at most this number in 16 are retained. */
static const unsigned retained_most[] = {[MR_RETAINED_UNTIL_TURN] = 8, [MR_RETAINED_UNTIL_RECEIVED] = 4};

struct rx_buf {
    struct mr_wr wr;
    struct mr_retained retained; /* while its packet is handed up, once more */
    struct mr_rx *rx;
    struct ibv_sge sge;
    struct ibv_recv_wr recv;
};

struct mr_rx {
    struct mr_rail *rail;
    struct ibv_srq *srq; /* where buffers are posted: here, or to the queue pair */
    struct ibv_qp *qp;
    unsigned depth, batch, least;
    unsigned asks;           /* buffers to be posted before a check for a batch */
    struct mr_rx_back *back; /* of all rails together, or of this one alone: */
    struct mr_rx_back own;
    unsigned char *slab;
    size_t stride; /* from one buffer to the next */
    struct ibv_mr *mr;
    struct rx_buf *bufs;
    struct ibv_recv_wr *returned; /* chain of buffers to be posted again */
    unsigned num_returned;
    unsigned num_retained; /* kept above, when their packets had been handed up */
    bool closed;           /* the slab and its buffers are left, until no more are retained */
    bool over;             /* its queue pair is given up: nothing is posted any more */
    struct mr_rx *next_due;
};

static int rx_post(struct mr_rx *rx, struct ibv_recv_wr *chain, struct ibv_recv_wr **bad)
{
    return rx->srq ? ibv_post_srq_recv(rx->srq, chain, bad) : ibv_post_recv(rx->qp, chain, bad);
}

/* The first n of a chain become a chain of their own. Returns the rest. */
static struct ibv_recv_wr *chain_cut(struct ibv_recv_wr *chain, unsigned n)
{
    struct ibv_recv_wr *rest;

    while (--n)
        chain = chain->next;
    rest = chain->next;
    chain->next = NULL;
    return rest;
}

static void rx_forget(struct mr_rx *rx)
{
    for (struct mr_rx **at = &mr_verbs.rx_due; *at; at = &(*at)->next_due)
        if (*at == rx) {
            *at = rx->next_due;
            rx->back->due = false;
            return;
        }
}

static bool is_together(const struct mr_rx *rx)
{
    return rx->back != &rx->own;
}

static unsigned num_back(const struct mr_rx *rx)
{
    return is_together(rx) ? rx->back->num : rx->num_returned;
}

/* Its buffers no longer count among those of all rails. */
static __attribute__((noinline)) void count_apart(struct mr_rx *rx)
{
    rx_forget(rx);
    if (is_together(rx))
        rx->back->num -= rx->num_returned;
    rx->back = &rx->own;
    rx->asks = rx->batch;
}

/* Posts n of the returned ones. */
static int rx_post_returned(struct mr_rx *rx, unsigned n)
{
    struct ibv_recv_wr *chain = rx->returned, *rest, *bad = NULL;
    int err;

    if (unlikely(rx->rail->dev->fatal)) {
        count_apart(rx);
        return 0;
    }
    if (!n)
        return 0;
    rest = n < rx->num_returned ? chain_cut(chain, n) : NULL;
    err = rx_post(rx, chain, &bad);
    rx->returned = rest;
    rx->num_returned -= n;
    if (is_together(rx))
        rx->back->num -= n;
    if (!err)
        return 0;
    mr_log(MR_LOG_ERROR, "rail %u: receive buffers cannot be posted: %s", rx->rail->index, strerror(err));
    while (bad) { /* those before it were taken */
        struct ibv_recv_wr *next = bad->next;

        bad->next = rx->returned;
        rx->returned = bad;
        rx->num_returned++;
        rx->back->num += is_together(rx);
        bad = next;
    }
    return -err;
}

static inline void buf_hold(struct mr_rx *rx, struct rx_buf *b)
{
    b->recv.next = rx->returned;
    rx->returned = &b->recv;
    rx->num_returned++;
}

/* When there is time (mr_rx_repost). */
static void repost_later(struct mr_rx *rx)
{
    if (rx->back->due || rx->over)
        return;
    rx->back->due = true;
    rx->next_due = mr_verbs.rx_due;
    mr_verbs.rx_due = rx;
    mr_verbs.answered = false;
}

/* Packets that request data over several rails, or have brought it, wait for a batch, which is then shorter. */
static unsigned batch_now(const struct mr_rx *rx)
{
    return mr_verbs.moved ? rx->least : rx->batch;
}

static bool has(const struct mr_rx *rx, unsigned n)
{
    return num_back(rx) >= n && !rx->over && !rx->rail->dev->fatal;
}

/* Of the queues counted together. */
static __attribute__((noinline)) struct mr_rx *fullest(struct mr_rx *rx)
{
    struct mr_rx *best = rx;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        struct mr_rx *other = mr_verbs.rail[i].rx;

        if (other && is_together(other) && other->num_returned > best->num_returned)
            best = other;
    }
    return best;
}

/*
 * The fullest posts a batch, or all it has. So packets over a single rail are posted as if there were no other, and a
 * stream over all rails does not have all rails' buffers posted at once, which would delay the next messages and
 * answers.
 */
static int post_batch(struct mr_rx *rx)
{
    unsigned most = batch_now(rx);

    if (is_together(rx))
        rx = fullest(rx);
    mr_verbs.moved = false;
    return rx_post_returned(rx, rx->num_returned < most ? rx->num_returned : most);
}

/*
 * A batch waits until there is time (mr_rx_repost). STREAM batches prove a stream of packets, as far as can be known:
 * then there are no waits for an answer to each, and the first batch is posted.
 */
static __attribute__((noinline)) void repost_soon(struct mr_rx *rx)
{
    unsigned num;

    rx->back->num += is_together(rx);
    num = num_back(rx);
    if (num < rx->least)
        return;
    if (num >= STREAM * rx->batch && has(rx, num))
        post_batch(rx);
    else if (num >= batch_now(rx))
        repost_later(rx);
}

static void return_buffer(struct rx_buf *b)
{
    struct mr_rx *rx = b->rx;

    buf_hold(rx, b);
    if (rx->num_returned >= rx->asks)
        repost_soon(rx);
}

void mr_rx_repost(void)
{
    struct mr_rx *rx = mr_verbs.rx_due;

    if (has(rx, batch_now(rx)) && !post_batch(rx) && num_back(rx) >= batch_now(rx))
        return;
    mr_verbs.rx_due = rx->next_due;
    rx->back->due = false;
}

void mr_rx_repost_streams(void)
{
    for (struct mr_rx *rx = mr_verbs.rx_due; rx; rx = rx->next_due)
        if (has(rx, STREAM * rx->batch))
            post_batch(rx);
}

/* A flushed buffer belonged to a queue pair that is given up: only a shared queue goes on. */
static void receive_failed(struct rx_buf *b, const struct mr_wc *wc)
{
    if (!wc->flushed)
        mr_log(MR_LOG_ERROR, "rail %u: receiving failed: %s", b->rx->rail->index, wc->status);
    b->rx->over = !b->rx->srq;
    return_buffer(b);
}

static void rx_free(struct mr_rx *rx)
{
    free(rx->slab);
    free(rx->bufs);
    free(rx);
}

/* Its keeper no longer needs it. */
static void retained_back(struct mr_retained *retained)
{
    struct rx_buf *b = container_of(retained, struct rx_buf, retained);
    struct mr_rx *rx = b->rx;

    rx->num_retained--;
    if (!rx->closed) {
        buf_hold(rx, b);
        rx->back->num += is_together(rx);
        if (has(rx, batch_now(rx)))
            repost_later(rx); /* many come back at a time, and a program waits for their contents */
    } else if (!rx->num_retained) {
        rx_free(rx);
    }
}

static struct mr_retained *find_retained(const void *payload, enum mr_retained_term term)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rx *rx = mr_verbs.rail[i].rx;
        size_t at = (uintptr_t)payload - (uintptr_t)rx->slab;

        if (at < rx->depth * rx->stride)
            return rx->num_retained < rx->depth * retained_most[term] / 16 ? &rx->bufs[at / rx->stride].retained : NULL;
    }
    return NULL;
}

/* Its packet has been handed up. */
static inline void handed_up(struct rx_buf *b)
{
    if (likely(!--b->retained.refs))
        return_buffer(b);
    else
        b->rx->num_retained++;
}

static void buf_received(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct rx_buf *b = (struct rx_buf *)wr;
    struct mr_rail *rail = b->rx->rail;

    if (unlikely(wc->error)) {
        receive_failed(b, wc);
        return;
    }
    if (wc->raw->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        uint32_t imm = be32toh(wc->raw->imm_data);

        mr_verbs.moved = true;
        return_buffer(b);
        mr_verbs_up.landed(rail, imm);
        return;
    }
    mr_rail_add(rail, MR_RAIL_PACKETS_RECEIVED, 1);
    mr_rail_add(rail, MR_RAIL_BYTES_RECEIVED, wc->raw->byte_len);
    b->retained.refs = 1;
    mr_verbs_up.packet(rail, (const void *)(uintptr_t)b->sge.addr, wc->raw->byte_len);
    handed_up(b);
}

/* The first bytes of the buffer are kept for a global header. */
static void received_datagram(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct rx_buf *b = (struct rx_buf *)wr;
    uint32_t imm = be32toh(wc->raw->imm_data);

    if (wc->error) {
        receive_failed(b, wc);
        return;
    }
    if (wc->raw->byte_len >= MR_GRH_BYTES)
        mr_verbs_up.segment(b->rx->rail, (const unsigned char *)(uintptr_t)b->sge.addr + MR_GRH_BYTES,
                            wc->raw->byte_len - MR_GRH_BYTES, wc->raw->wc_flags & IBV_WC_WITH_IMM ? &imm : NULL);
    return_buffer(b);
}

static void rx_fill(struct mr_rx *rx, size_t stride, bool datagrams)
{
    for (unsigned i = 0; i < rx->depth; i++) {
        struct rx_buf *b = &rx->bufs[i];

        b->wr.done = datagrams ? received_datagram : buf_received;
        b->rx = rx;
        b->retained.give_back = retained_back;
        b->sge = (struct ibv_sge){
            .addr = (uintptr_t)(rx->slab + i * stride), .length = (uint32_t)stride, .lkey = rx->mr->lkey};
        b->recv = (struct ibv_recv_wr){.wr_id = mr_wr_id(&b->wr), .sg_list = &b->sge, .num_sge = 1};
        buf_hold(rx, b);
    }
}

void mr_rx_rails_changed(struct mr_rx *rx)
{
    unsigned part = rx->batch / (mr_verbs.num_rails ? mr_verbs.num_rails : 1);

    if (mr_verbs.num_rails < 2 || !rx->srq)
        return;
    rx->least = part >= REPOST_LEAST ? part : rx->batch < REPOST_LEAST ? rx->batch : REPOST_LEAST;
    rx->asks = 1;
    rx->back = &mr_verbs.rx_back;
    rx->back->num += rx->num_returned;
}

static int rx_make(struct mr_rx *rx, size_t stride, bool datagrams)
{
    rx->batch = rx->depth / 4 < REPOST_BATCH ? rx->depth / 4 + 1 : REPOST_BATCH;
    rx->asks = rx->least = rx->batch;
    rx->back = &rx->own;
    rx->stride = stride;
    rx->bufs = calloc(rx->depth, sizeof *rx->bufs);
    rx->slab = aligned_alloc(4096, (rx->depth * stride + 4095) & ~(size_t)4095);
    if (!rx->bufs || !rx->slab)
        return -ENOMEM;
    rx->mr = ibv_reg_mr(rx->rail->dev->pd, rx->slab, rx->depth * stride, IBV_ACCESS_LOCAL_WRITE);
    if (!rx->mr)
        return errno ? -errno : -ENOMEM;
    mr_costs_measure_memory(rx->rail->dev->pd, rx->slab, rx->depth * stride);
    rx_fill(rx, stride, datagrams);
    return rx_post_returned(rx, rx->depth);
}

static size_t rx_stride(size_t longest)
{
    return (longest + 63) & ~(size_t)63;
}

int mr_rx_open(struct mr_rail *rail, struct mr_rx **out, unsigned depth, size_t longest, bool datagrams)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_sge = 1}};
    struct mr_rx *rx = calloc(1, sizeof *rx);

    if (!rx)
        return -ENOMEM;
    *out = rx;
    rx->rail = rail;
    rx->depth = rail->dev->max_srq_wr && depth > rail->dev->max_srq_wr ? rail->dev->max_srq_wr : depth;
    attr.attr.max_wr = rx->depth;
    mr_retained_find = find_retained;
    rx->srq = ibv_create_srq(rail->dev->pd, &attr);
    if (!rx->srq)
        return errno ? -errno : -ENOMEM;
    return rx_make(rx, rx_stride(longest + (datagrams ? MR_GRH_BYTES : 0)), datagrams);
}

int mr_rx_open_own(struct mr_rail *rail, struct mr_rx **out, struct ibv_qp *qp, unsigned depth)
{
    struct mr_rx *rx = calloc(1, sizeof *rx);

    if (!rx)
        return -ENOMEM;
    *out = rx;
    rx->rail = rail;
    rx->qp = qp;
    rx->depth = depth;
    return rx_make(rx, rx_stride(mr_verbs.packet_max), false);
}

struct ibv_srq *mr_rx_queue(const struct mr_rx *rx)
{
    return rx->srq;
}

bool mr_rx_is_back(const struct mr_rx *rx)
{
    return rx->num_returned == rx->depth;
}

void mr_rx_close(struct mr_rx **at)
{
    struct mr_rx *rx = *at;

    if (!rx)
        return;
    if (rx->back)
        count_apart(rx);
    if (rx->srq)
        ibv_destroy_srq(rx->srq);
    if (rx->mr)
        ibv_dereg_mr(rx->mr);
    rx->closed = true;
    if (!rx->num_retained)
        rx_free(rx);
    *at = NULL;
}
