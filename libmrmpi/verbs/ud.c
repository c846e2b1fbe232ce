/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams for setting up connections. The partitions that two ranks share are unknown before their first message, so
 * each rail listens in all of its partitions: with a UD queue pair for each, which share a receive queue. An address
 * handle is made for each datagram and destroyed with its completion; this is not the path of a message. There are
 * MR_UD_RECVS buffers, for any number of ranks. A datagram without a buffer is lost, and repeated by its sender.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/gid.h"

#define STRIDE (MR_GRH_BYTES + MR_UD_MAX + 24)

_Static_assert(STRIDE % 64 == 0, "buffers keep to their cache lines");

/* In one partition. */
struct ud_end {
    struct mr_rail *rail;
    const struct mr_rail_partition *of;
    struct ibv_qp *qp;
    unsigned in_flight;
    bool moving; /* it goes to another index of the table of P_Keys when nothing is in flight */
    struct mr_later later;
};

struct ud_buf {
    struct mr_wr wr;
    struct mr_rail *rail;
    unsigned char *data;
    struct ibv_ah *ah;   /* sends: in flight while not NULL, */
    struct ud_end *end;  /* from here */
    struct ud_buf *next; /* sends: free list */
};

struct mr_ud {
    struct ud_end end[MR_PARTITIONS_MAX];
    struct ibv_srq *srq;
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

    return -ibv_post_srq_recv(b->rail->ud->srq, &wr, &bad);
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
    b->end->in_flight--;
    b->next = b->rail->ud->free;
    b->rail->ud->free = b;
}

int mr_ud_send(struct mr_rail *rail, const struct mr_ud_route *route, const void *data, size_t len)
{
    const struct mr_rail_partition *in = mr_rail_partition(rail, route->pkey);
    struct mr_ud *ud = rail->ud;
    struct ibv_ah_attr attr;
    struct ud_end *end;
    struct ud_buf *b;
    int err;

    if (len > MR_UD_MAX)
        return -EMSGSIZE;
    if (rail->dev->fatal)
        return -EIO;
    if (!in || !in->now.key)
        return -ENOKEY;
    end = &ud->end[in - rail->partition];
    b = ud->free;
    if (!b || end->moving)
        return -EAGAIN;
    mr_rail_ah_attr(rail, route->to, route->sl, route->path, &attr);
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
    wr.wr.ud.remote_qpn = route->qpn;
    wr.wr.ud.remote_qkey = route->to->ud_qkey;
    err = ibv_post_send(end->qp, &wr, &bad);
    if (err) {
        ibv_destroy_ah(b->ah);
        b->ah = NULL;
        return -err;
    }
    ud->free = b->next;
    b->end = end;
    end->in_flight++;
    return 0;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static int bring_up_ud(struct ud_end *end)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = end->rail->port,
                               .pkey_index = end->of->now.index,
                               .qkey = end->rail->addr.ud_qkey};
    int err = ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    attr.qp_state = IBV_QPS_RTR;
    err = err ? err : ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    err = err ? err : ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return -err;
}

/* Under the same number. Receive buffers are the shared queue's, and stay there. */
static bool later_moved(struct mr_later *later)
{
    struct ud_end *end = container_of(later, struct ud_end, later);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    int err;

    if (end->rail->dev->fatal) {
        mr_verbs_forget(later);
        return true;
    }
    if (end->in_flight)
        return false;
    mr_verbs_forget(later);
    end->moving = false;
    err = -ibv_modify_qp(end->qp, &attr, IBV_QP_STATE);
    if (!err)
        err = bring_up_ud(end);
    if (err)
        mr_log(MR_LOG_ERROR, "%s port %u: no connection can be made in partition 0x%04x any more: %s",
               end->rail->dev->name, end->rail->port, end->of->number, strerror(-err));
    return true;
}

void mr_ud_moved(struct mr_rail *rail, unsigned i)
{
    struct ud_end *end = &rail->ud->end[i];
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (end->moving || rail->dev->fatal)
        return;
    ibv_modify_qp(end->qp, &attr, IBV_QP_STATE); /* datagrams in flight come back */
    end->moving = true;
    end->later.done = later_moved;
    mr_verbs_later(&end->later);
}

static uint32_t random_qkey(const struct ibv_qp *qp)
{
    uint32_t key;

    if (getrandom(&key, sizeof key, GRND_NONBLOCK) != sizeof key)
        key = qp->qp_num * 2654435761u;
    return (key & 0x7fffffff) | 1; /* the top bit would mean: use the queue pair's own */
}

static int open_ends(struct mr_rail *rail)
{
    struct mr_ud *ud = rail->ud;
    struct ibv_qp_init_attr init = {
        .send_cq = rail->cq,
        .recv_cq = rail->cq,
        .srq = ud->srq,
        .qp_type = IBV_QPT_UD,
        .cap = {.max_send_wr = MR_UD_SENDS, .max_send_sge = 1},
    };
    int err = 0;

    for (unsigned i = 0; i < rail->num_partitions && !err; i++) {
        struct ud_end *end = &ud->end[i];

        *end = (struct ud_end){.rail = rail, .of = &rail->partition[i], .qp = ibv_create_qp(rail->dev->pd, &init)};
        if (!end->qp && i && !rail->partition[i].number) { /* possible without a reserve */
            rail->num_partitions--;
            break;
        }
        if (!end->qp)
            return errno ? -errno : -ENOMEM;
        rail->partition[i].ud_qpn = end->qp->qp_num;
        if (!rail->addr.ud_qkey) /* peers know the first one */
            rail->addr.ud_qkey = random_qkey(end->qp);
        err = bring_up_ud(end);
    }
    return err;
}

int mr_ud_open(struct mr_rail *rail)
{
    struct ibv_srq_init_attr queue = {.attr = {.max_wr = MR_UD_RECVS, .max_sge = 1}};
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
    ud->srq = ibv_create_srq(rail->dev->pd, &queue);
    if (!ud->srq)
        return errno ? -errno : -ENOMEM;
    err = open_ends(rail);
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
    for (unsigned i = 0; i < rail->num_partitions; i++) {
        mr_verbs_forget(&ud->end[i].later);
        if (ud->end[i].qp)
            ibv_destroy_qp(ud->end[i].qp);
    }
    for (unsigned i = 0; i < MR_UD_SENDS; i++)
        if (ud->send[i].ah)
            ibv_destroy_ah(ud->send[i].ah);
    if (ud->srq)
        ibv_destroy_srq(ud->srq);
    if (ud->mr)
        ibv_dereg_mr(ud->mr);
    free(ud->slab);
    free(ud);
    rail->ud = NULL;
}
