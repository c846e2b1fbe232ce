/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive buffers of a rail: one slab, registered once, posted to the shared receive queue from which all RC queue
 * pairs of the rail take. A buffer goes back when its packet has been handled; returned ones are posted in batches,
 * because a post costs a doorbell. A write with immediate takes a buffer too and leaves it untouched.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"

#define REPOST_BATCH 16

struct rx_buf {
    struct mr_wr wr;
    struct mr_rail *rail;
    struct ibv_sge sge;
    struct ibv_recv_wr recv;
};

struct mr_rx {
    unsigned depth, batch;
    unsigned char *slab;
    struct ibv_mr *mr;
    struct rx_buf *bufs;
    struct ibv_recv_wr *returned; /* chain of buffers that are to be posted again */
    unsigned num_returned;
};

static int repost(struct mr_rail *rail)
{
    struct mr_rx *rx = rail->rx;
    struct ibv_recv_wr *bad = NULL;
    int err;

    if (!rx->returned || rail->dev->fatal)
        return 0;
    err = ibv_post_srq_recv(rail->srq, rx->returned, &bad);
    if (err) {
        mr_log(MR_LOG_ERROR, "rail %u: receive buffers cannot be posted: %s", rail->index, strerror(err));
        rx->returned = bad; /* those before it were taken */
        return -err;
    }
    rx->returned = NULL;
    rx->num_returned = 0;
    return 0;
}

static void give_back(struct rx_buf *b)
{
    struct mr_rx *rx = b->rail->rx;

    b->recv.next = rx->returned;
    rx->returned = &b->recv;
    if (++rx->num_returned >= rx->batch)
        repost(b->rail);
}

static void received(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct rx_buf *b = (struct rx_buf *)wr;
    struct mr_rail *rail = b->rail;

    if (__builtin_expect(wc->error, 0)) {
        if (!wc->flushed)
            mr_log(MR_LOG_ERROR, "rail %u: receiving failed: %s", rail->index, wc->status);
        give_back(b);
        return;
    }
    if (wc->kind == MR_WC_LANDED) {
        give_back(b);
        mr_verbs_up.landed(rail, wc->imm);
        return;
    }
    mr_verbs_up.packet(rail, (const void *)(uintptr_t)b->sge.addr, wc->len);
    give_back(b);
}

static void fill(struct mr_rail *rail, struct mr_rx *rx, size_t stride)
{
    for (unsigned i = 0; i < rx->depth; i++) {
        struct rx_buf *b = &rx->bufs[i];

        b->wr.done = received;
        b->rail = rail;
        b->sge = (struct ibv_sge){
            .addr = (uintptr_t)(rx->slab + i * stride), .length = (uint32_t)stride, .lkey = rx->mr->lkey};
        b->recv =
            (struct ibv_recv_wr){.wr_id = mr_wr_id(&b->wr), .sg_list = &b->sge, .num_sge = 1, .next = rx->returned};
        rx->returned = &b->recv;
    }
}

int mr_rx_open(struct mr_rail *rail, size_t packet_max)
{
    size_t stride = (packet_max + 63) & ~(size_t)63;
    struct ibv_srq_init_attr attr = {.attr = {.max_sge = 1}};
    struct mr_rx *rx = calloc(1, sizeof *rx);

    if (!rx)
        return -ENOMEM;
    rail->rx = rx;
    rx->depth = (unsigned)mr_config.srq_depth;
    if (rail->dev->max_srq_wr && rx->depth > rail->dev->max_srq_wr)
        rx->depth = rail->dev->max_srq_wr;
    rx->batch = rx->depth / 4 < REPOST_BATCH ? rx->depth / 4 + 1 : REPOST_BATCH;

    attr.attr.max_wr = rx->depth;
    rail->srq = ibv_create_srq(rail->dev->pd, &attr);
    if (!rail->srq)
        return errno ? -errno : -ENOMEM;
    rx->bufs = calloc(rx->depth, sizeof *rx->bufs);
    rx->slab = aligned_alloc(4096, (rx->depth * stride + 4095) & ~(size_t)4095);
    if (!rx->bufs || !rx->slab)
        return -ENOMEM;
    rx->mr = ibv_reg_mr(rail->dev->pd, rx->slab, rx->depth * stride, IBV_ACCESS_LOCAL_WRITE);
    if (!rx->mr)
        return errno ? -errno : -ENOMEM;
    fill(rail, rx, stride);
    return repost(rail);
}

void mr_rx_close(struct mr_rail *rail)
{
    struct mr_rx *rx = rail->rx;

    if (rail->srq)
        ibv_destroy_srq(rail->srq);
    rail->srq = NULL;
    if (!rx)
        return;
    if (rx->mr)
        ibv_dereg_mr(rx->mr);
    free(rx->slab);
    free(rx->bufs);
    free(rx);
    rail->rx = NULL;
}
