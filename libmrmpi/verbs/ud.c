/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams for setting up connections: one UD queue pair per rail. An address handle is made for each datagram and
 * taken back with its completion; this is not the path of a message. There are MR_UD_RECVS buffers, however many ranks
 * there are. A datagram that finds none is lost, and repeated by its sender.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/completion.h"
#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/gid.h"

#define STRIDE (MR_GRH_BYTES + MR_UD_MAX + 24)

_Static_assert(STRIDE % 64 == 0, "buffers keep to their cache lines");

struct ud_buf {
    struct mr_wr wr;
    struct mr_rail *rail;
    unsigned char *data;
    struct ibv_ah *ah;   /* sends: in flight while not NULL */
    struct ud_buf *next; /* sends: free list */
};

struct mr_ud {
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    unsigned char *slab;
    struct ud_buf send[MR_UD_SENDS];
    struct ud_buf *free;
    struct ud_buf recv[MR_UD_RECVS];
};

void mr_rail_ah_attr(const struct mr_rail *rail, const struct mr_rail_addr *to, uint8_t sl, uint8_t path,
                     struct ibv_ah_attr *attr)
{
    *attr = (struct ibv_ah_attr){
        .dlid = (uint16_t)(to->lid + (path & ((1u << to->lmc) - 1))),
        .sl = sl,
        .src_path_bits = (uint8_t)(path & ((1u << rail->addr.lmc) - 1)),
        .port_num = rail->port,
        /* InfiniBand packets need a global header only to leave the subnet, Ethernet ones always have one */
        .is_global = to->global || memcmp(to->gid, rail->addr.gid, 8) != 0,
    };
    if (attr->is_global) {
        memcpy(attr->grh.dgid.raw, to->gid, sizeof to->gid);
        attr->grh.sgid_index = rail->gid_index;
        attr->grh.hop_limit = 64;
        if (to->global)
            attr->grh.traffic_class = mr_roce_traffic_class(sl);
    }
}

/* ---- receiving ------------------------------------------------------------------------------------------------- */

static int post_recv(struct ud_buf *b)
{
    struct ibv_sge sge = {.addr = (uintptr_t)b->data, .length = STRIDE, .lkey = b->rail->ud->mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = mr_wr_id(&b->wr), .sg_list = &sge, .num_sge = 1}, *bad;

    return -ibv_post_recv(b->rail->ud->qp, &wr, &bad);
}

static void ud_received(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct ud_buf *b = (struct ud_buf *)wr;
    uint32_t len = wc->raw->byte_len;

    if (!wc->error && len >= MR_GRH_BYTES && len <= STRIDE)
        mr_verbs_up.datagram(b->rail, b->data + MR_GRH_BYTES, len - MR_GRH_BYTES);
    else if (wc->error && !wc->flushed)
        mr_log(MR_LOG_WARN, "%s port %u: receiving a datagram failed: %s", b->rail->dev->name, b->rail->port,
               wc->status);
    if (!wc->flushed && !b->rail->dev->fatal && post_recv(b))
        mr_log(MR_LOG_WARN, "%s port %u: a datagram buffer cannot be posted", b->rail->dev->name, b->rail->port);
}

/* ---- sending --------------------------------------------------------------------------------------------------- */

static void ud_sent(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct ud_buf *b = (struct ud_buf *)wr;

    if (wc->error && !wc->flushed)
        mr_log(MR_LOG_WARN, "%s port %u: sending a datagram failed: %s", b->rail->dev->name, b->rail->port, wc->status);
    ibv_destroy_ah(b->ah);
    b->ah = NULL;
    b->next = b->rail->ud->free;
    b->rail->ud->free = b;
}

int mr_ud_send(struct mr_rail *rail, const struct mr_rail_addr *to, uint8_t sl, const void *data, size_t len)
{
    struct mr_ud *ud = rail->ud;
    struct ud_buf *b = ud->free;
    struct ibv_ah_attr attr;
    int err;

    if (len > MR_UD_MAX)
        return -EMSGSIZE;
    if (rail->dev->fatal)
        return -EIO;
    if (!b)
        return -EAGAIN;
    mr_rail_ah_attr(rail, to, sl, 0, &attr);
    b->ah = ibv_create_ah(rail->dev->pd, &attr);
    if (!b->ah)
        return errno ? -errno : -ENOMEM;
    memcpy(b->data, data, len);

    struct ibv_sge sge = {.addr = (uintptr_t)b->data, .length = (uint32_t)len, .lkey = ud->mr->lkey};
    struct ibv_send_wr wr = {.wr_id = mr_wr_id(&b->wr),
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    wr.wr.ud.ah = b->ah;
    wr.wr.ud.remote_qpn = to->ud_qpn;
    wr.wr.ud.remote_qkey = to->ud_qkey;
    err = ibv_post_send(ud->qp, &wr, &bad);
    if (err) {
        ibv_destroy_ah(b->ah);
        b->ah = NULL;
        return -err;
    }
    ud->free = b->next;
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static int bring_up(struct mr_rail *rail, struct ibv_qp *qp, uint32_t qkey)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = rail->port, .qkey = qkey};
    int err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    attr.qp_state = IBV_QPS_RTR;
    err = err ? err : ibv_modify_qp(qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    err = err ? err : ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return -err;
}

static uint32_t random_qkey(const struct ibv_qp *qp)
{
    uint32_t key;

    if (getrandom(&key, sizeof key, GRND_NONBLOCK) != sizeof key)
        key = qp->qp_num * 2654435761u;
    return (key & 0x7fffffff) | 1; /* the top bit would mean: use the queue pair's own */
}

int mr_ud_open(struct mr_rail *rail)
{
    struct ibv_qp_init_attr init = {
        .send_cq = rail->cq,
        .recv_cq = rail->cq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = MR_UD_SENDS, .max_recv_wr = MR_UD_RECVS, .max_send_sge = 1, .max_recv_sge = 1},
    };
    struct mr_ud *ud = calloc(1, sizeof *ud);
    size_t bytes = (size_t)(MR_UD_RECVS + MR_UD_SENDS) * STRIDE;
    int err;

    if (!ud)
        return -ENOMEM;
    rail->ud = ud;
    ud->slab = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    if (!ud->slab)
        return -ENOMEM;
    ud->mr = ibv_reg_mr(rail->dev->pd, ud->slab, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!ud->mr)
        return errno ? -errno : -ENOMEM;
    ud->qp = ibv_create_qp(rail->dev->pd, &init);
    if (!ud->qp)
        return errno ? -errno : -ENOMEM;
    rail->addr.ud_qpn = ud->qp->qp_num;
    rail->addr.ud_qkey = random_qkey(ud->qp);
    err = bring_up(rail, ud->qp, rail->addr.ud_qkey);
    for (unsigned i = 0; !err && i < MR_UD_RECVS; i++) {
        ud->recv[i] = (struct ud_buf){.wr.done = ud_received, .rail = rail, .data = ud->slab + i * STRIDE};
        err = post_recv(&ud->recv[i]);
    }
    for (unsigned i = 0; i < MR_UD_SENDS; i++) {
        ud->send[i] = (struct ud_buf){
            .wr.done = ud_sent, .rail = rail, .data = ud->slab + (MR_UD_RECVS + i) * STRIDE, .next = ud->free};
        ud->free = &ud->send[i];
    }
    return err;
}

void mr_ud_close(struct mr_rail *rail)
{
    struct mr_ud *ud = rail->ud;

    if (!ud)
        return;
    if (ud->qp)
        ibv_destroy_qp(ud->qp);
    for (unsigned i = 0; i < MR_UD_SENDS; i++)
        if (ud->send[i].ah)
            ibv_destroy_ah(ud->send[i].ah);
    if (ud->mr)
        ibv_dereg_mr(ud->mr);
    free(ud->slab);
    free(ud);
    rail->ud = NULL;
}
