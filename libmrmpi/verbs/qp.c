/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: making them, bringing them up against a peer, posting. Room is counted in requests; a signaled request
 * gives back its own and those of the unsignaled ones before it.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"

#define INLINE_WANTED 256
#define READS_WANTED  8  /* outstanding RDMA reads of a queue pair */
#define RNR_TIMER     10 /* 0.32 ms: how long a sender waits before it tries again when we had no buffer */
#define MARKERS       1  /* entries that each send queue keeps for its last request */
#define UD_SENDS      4  /* times MRMPI_SQ_DEPTH: the send queue that datagrams to all peers share */

/* ---- failure ----------------------------------------------------------------------------------------------------- */

static void note_failure(struct mr_qp *qp, const struct mr_wc *wc)
{
    if (qp->error)
        return;
    qp->error = wc->error;
    qp->events->failed(qp, wc);
}

static void unsignaled_failed(struct mr_wr *wr, const struct mr_wc *wc)
{
    if (wc->error)
        note_failure(container_of(wr, struct mr_qp, unsignaled_failed), wc);
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static struct ibv_qp *create(struct mr_rail *rail, struct ibv_qp_init_attr *init)
{
    /* How much can be sent inline is found by asking: a device refuses what it cannot do. */
    for (uint32_t want = INLINE_WANTED;; want /= 2) {
        struct ibv_qp_init_attr attr = *init;
        struct ibv_qp *qp;

        attr.cap.max_inline_data = want;
        qp = ibv_create_qp(rail->dev->pd, &attr);
        if (qp || want < 32) {
            *init = attr;
            return qp;
        }
    }
}

/* Unsignaled requests hold room of the completion queue, so the more queue pairs there are the fewer each may have. */
static void count_qp(struct mr_rail *rail, int add)
{
    unsigned every, all = 0;

    rail->num_qps = (unsigned)((int)rail->num_qps + add);
    every = rail->num_qps ? 1024 / rail->num_qps : 16;
    rail->signal_every = every > 16 ? 16 : every ? every : 1;
    for (unsigned i = 0; add > 0 && i < MR_RAILS_MAX; i++)
        all += mr_verbs.rail[i].num_qps;
    mr_stat_most(MR_STAT_QPS_MOST, all);
}

static const enum ibv_qp_type verbs_type[] = {
    [MR_QP_RC] = IBV_QPT_RC, [MR_QP_UC] = IBV_QPT_UC, [MR_QP_UD] = IBV_QPT_UD};

static unsigned send_depth(const struct mr_rail *rail, enum mr_qp_type type, unsigned times)
{
    unsigned depth = (unsigned)mr_config.sq_depth * times;

    if (type == MR_QP_UD)
        depth = depth * UD_SENDS > 2 * MR_SEGMENTS_MAX ? depth * UD_SENDS : 2 * MR_SEGMENTS_MAX;
    depth += MARKERS;
    return rail->dev->max_qp_wr && depth > rail->dev->max_qp_wr ? rail->dev->max_qp_wr : depth;
}

static int initialise(struct mr_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = qp->rail->port};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    if (qp->type == MR_QP_UD) {
        attr.qkey = qp->qkey;
        mask |= IBV_QP_QKEY;
    } else {
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | (qp->type == MR_QP_RC ? IBV_ACCESS_REMOTE_READ : 0);
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    return -ibv_modify_qp(qp->qp, &attr, mask);
}

/* Some adapters cannot share a receive queue among unreliable connections: those have their own. */
static struct ibv_qp *create_unshared(struct mr_qp *qp, struct ibv_qp_init_attr *init)
{
    int refused = errno;

    if (qp->type != MR_QP_UC || qp->rail->cq_room < MR_OWN_RECVS) {
        errno = refused;
        return NULL;
    }
    init->srq = NULL;
    init->cap.max_recv_wr = MR_OWN_RECVS;
    init->cap.max_recv_sge = 1;
    return create(qp->rail, init);
}

static void release(struct mr_qp *qp)
{
    ibv_destroy_qp(qp->qp);
    qp->qp = NULL;
    if (qp->rx)
        qp->rail->cq_room += MR_OWN_RECVS;
    mr_rx_close(&qp->rx);
}

int mr_qp_create(struct mr_rail *rail, enum mr_qp_type type, unsigned times, struct mr_qp *qp,
                 const struct mr_qp_events *events, void *owner)
{
    struct ibv_qp_init_attr init = {
        .send_cq = rail->cq,
        .recv_cq = rail->cq,
        .srq = mr_rx_queue(type == MR_QP_UD ? rail->datagram_rx : rail->rx),
        .qp_type = verbs_type[type],
        .cap = {.max_send_wr = send_depth(rail, type, times), .max_send_sge = type == MR_QP_UD ? 2 : 1},
    };
    int err = 0;

    if (rail->dev->fatal)
        return -EIO;
    memset(qp, 0, sizeof *qp);
    qp->rail = rail;
    qp->type = type;
    qp->events = events;
    qp->owner = owner;
    qp->unsignaled_failed.done = unsignaled_failed;
    qp->depth = qp->room = init.cap.max_send_wr - MARKERS;
    qp->qp = create(rail, &init);
    if (!qp->qp)
        qp->qp = create_unshared(qp, &init);
    if (!qp->qp)
        return errno ? -errno : -ENOMEM;
    qp->qpn = qp->qp->qp_num;
    qp->max_inline = init.cap.max_inline_data;
    if (type == MR_QP_UD)
        qp->qkey = rail->addr.ud_qkey;
    err = initialise(qp);
    if (!err && !init.srq) {
        rail->cq_room -= MR_OWN_RECVS;
        err = mr_rx_open_own(rail, &qp->rx, qp->qp, MR_OWN_RECVS);
    }
    if (err) {
        release(qp);
        return err;
    }
    qp->state = MR_QP_ALIVE;
    count_qp(rail, 1);
    return 0;
}

uint8_t mr_qp_reads(const struct mr_device *dev)
{
    return dev->max_reads < READS_WANTED ? dev->max_reads : READS_WANTED;
}

/* What only reliable connections want to know. */
#define RTR_RELIABLE (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RELIABLE (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

int mr_qp_connect(struct mr_qp *qp, const struct mr_rail_addr *to, uint32_t remote_qpn, uint32_t local_psn,
                  uint32_t remote_psn, uint8_t sl, uint8_t path)
{
    struct mr_rail *rail = qp->rail;
    bool reliable = qp->type == MR_QP_RC;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = to->mtu < rail->addr.mtu ? to->mtu : rail->addr.mtu,
        .dest_qp_num = remote_qpn,
        .rq_psn = remote_psn,
        .max_dest_rd_atomic = mr_qp_reads(rail->dev),
        .min_rnr_timer = RNR_TIMER,
    };
    int err;

    mr_rail_ah_attr(rail, to, sl, path, &attr.ah_attr);
    err = ibv_modify_qp(qp->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            (reliable ? RTR_RELIABLE : 0));
    if (err)
        return -err;
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .sq_psn = local_psn,
        .timeout = (uint8_t)mr_config.rc_timeout,
        .retry_cnt = (uint8_t)mr_config.rc_retry,
        .rnr_retry = (uint8_t)mr_config.rnr_retry,
        .max_rd_atomic = to->reads < mr_qp_reads(rail->dev) ? to->reads : mr_qp_reads(rail->dev),
    };
    return -ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? RTS_RELIABLE : 0));
}

int mr_qp_bring_up(struct mr_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int err = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);

    attr.qp_state = IBV_QPS_RTS;
    return err ? -err : -ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

int mr_qp_revive(struct mr_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    int err = -ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);

    if (!err)
        err = initialise(qp);
    if (!err)
        err = mr_qp_bring_up(qp);
    if (err)
        return err;
    qp->unsignaled = qp->unsignaled_sends = 0;
    qp->error = 0;
    qp->state = MR_QP_ALIVE;
    return 0;
}

/* ---- the end of a queue pair --------------------------------------------------------------------------------------
 */

static void drained(struct mr_qp *qp)
{
    mr_verbs_forget(&qp->later);
    qp->state = MR_QP_DRAINED;
    qp->events->drained(qp);
}

static void marker_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    struct mr_qp *qp = container_of(wr, struct mr_qp, marker);

    qp->rail->cq_room++;
    if (qp->rx)
        qp->state = MR_QP_MARKED_BACK; /* and its receive buffers, in any order */
    else
        drained(qp);
}

/*
 * The requests of a queue pair in error come back in the order of posting, and one that is posted then comes back too
 * (volume 1, 10.3.1): when the last one has, all have.
 */
static int post_marker(struct mr_qp *qp)
{
    struct ibv_send_wr wr = {.wr_id = mr_wr_id(&qp->marker), .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    int err;

    if (!qp->rail->cq_room)
        return -EAGAIN;
    qp->marker.done = marker_done;
    err = ibv_post_send(qp->qp, &wr, &bad);
    if (err)
        return err == ENOMEM ? -EAGAIN : -err;
    qp->rail->cq_room--;
    qp->state = MR_QP_MARKED;
    return 0;
}

/* Nothing comes back any more from a device that is gone, or from a queue pair that was never connected. */
static bool has_drained(struct mr_qp *qp)
{
    int err = 0;

    if (qp->rail->dev->fatal || (qp->state == MR_QP_MARKED_BACK && mr_rx_is_back(qp->rx)))
        return true;
    if (qp->type == MR_QP_UD)
        return qp->room == qp->depth;
    if (qp->state == MR_QP_UNMARKED)
        err = post_marker(qp);
    return err && err != -EAGAIN;
}

static bool later_drained(struct mr_later *later)
{
    struct mr_qp *qp = container_of(later, struct mr_qp, later);

    if (!has_drained(qp))
        return false;
    drained(qp);
    return true;
}

void mr_qp_abort(struct mr_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (qp->state != MR_QP_ALIVE)
        return;
    if (!qp->error)
        qp->error = -ECANCELED;
    if (!qp->rail->dev->fatal)
        ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
    qp->state = MR_QP_UNMARKED;
    qp->later.done = later_drained;
    mr_verbs_later(&qp->later);
}

/* ---- leaving without losing what has come ------------------------------------------------------------------------ */

/* Destroying a queue pair takes its completions away, also those of packets that the peer knows to have arrived. */
struct retired {
    struct mr_qp qp;
    struct retired *next;
};
static struct retired *first_retired;

static void leave(struct retired *r)
{
    struct retired **at = &first_retired;

    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    mr_qp_destroy(&r->qp);
    free(r);
}

static void retired_drained(struct mr_qp *qp)
{
    leave(qp->owner);
}

static void retired_confirmed(struct mr_qp *qp, unsigned sends)
{
}

static void retired_failed(struct mr_qp *qp, const struct mr_wc *wc)
{
}

static const struct mr_qp_events retired_events = {
    .confirmed = retired_confirmed, .failed = retired_failed, .drained = retired_drained};

void mr_qp_retire(struct mr_qp *qp)
{
    struct retired *r = qp->qp && qp->state == MR_QP_ALIVE ? calloc(1, sizeof *r) : NULL;

    if (!r) {
        mr_qp_destroy(qp);
        return;
    }
    mr_qp_keep(qp, &r->qp, &retired_events, r);
    r->next = first_retired;
    first_retired = r;
    mr_qp_abort(&r->qp);
}

void mr_qps_all_gone(void)
{
    while (first_retired)
        leave(first_retired);
}

/* ---- asking the other end whether it is still there ------------------------------------------------------------ */

#define PSN_MASK 0xffffffu
#define PSN_AWAY 0x400000u

static void give_room_back(struct mr_qp *qp)
{
    qp->rail->cq_room += qp->depth - qp->room;
    qp->room = qp->depth;
    qp->unsignaled = qp->unsignaled_sends = 0;
}

void mr_qp_keep(struct mr_qp *from, struct mr_qp *to, const struct mr_qp_events *events, void *owner)
{
    *to = *from;
    to->events = events;
    to->owner = owner;
    give_room_back(to);
    memset(from, 0, sizeof *from);
}

int mr_qp_psns(struct mr_qp *qp, uint32_t *send, uint32_t *receive)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    int err = ibv_query_qp(qp->qp, &attr, IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init);

    *send = attr.sq_psn & PSN_MASK;
    *receive = attr.rq_psn & PSN_MASK;
    return -err;
}

/*
 * Nothing that the peer may still send is taken in: there is no right to write, and what it sends is far ahead of what
 * is expected, so it is refused. (Far behind it would be a duplicate, and acknowledged.)
 */
static int bring_up_again(struct mr_qp *qp, const struct ibv_qp_attr *was, uint32_t send, uint32_t receive)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    int err = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);

    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = qp->rail->port};
    if (!err)
        err = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .ah_attr = was->ah_attr,
                                .path_mtu = was->path_mtu,
                                .dest_qp_num = was->dest_qp_num,
                                .rq_psn = (receive - PSN_AWAY) & PSN_MASK,
                                .min_rnr_timer = RNR_TIMER};
    if (!err)
        err = ibv_modify_qp(qp->qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = send & PSN_MASK,
                                .timeout = (uint8_t)mr_config.rc_timeout,
                                .retry_cnt = (uint8_t)mr_config.rc_retry,
                                .rnr_retry = (uint8_t)mr_config.rnr_retry};
    if (!err)
        err = ibv_modify_qp(qp->qp, &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_MAX_QP_RD_ATOMIC);
    return -err;
}

int mr_qp_again(struct mr_qp *qp, uint32_t send, uint32_t receive)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr was;
    int err;

    if (qp->state != MR_QP_DRAINED || qp->rail->dev->fatal)
        return -EINVAL;
    err = -ibv_query_qp(qp->qp, &was, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN, &init);
    if (!err)
        err = bring_up_again(qp, &was, send, receive);
    if (err)
        return err;
    give_room_back(qp);
    qp->error = 0;
    qp->state = MR_QP_ALIVE;
    return 0;
}

void mr_qp_destroy(struct mr_qp *qp)
{
    struct mr_rail *rail = qp->rail;

    if (!qp->qp)
        return;
    mr_verbs_forget(&qp->later);
    if (qp->state == MR_QP_MARKED)
        rail->cq_room++;
    qp->state = MR_QP_NONE;
    release(qp);
    rail->cq_room += qp->depth - qp->room;
    count_qp(rail, -1);
}

/* ---- posting --------------------------------------------------------------------------------------------------- */

/*
 * Inlined, so that each caller has what its opcode needs only: a short message comes this way. counts: it is a send, or
 * stands for one.
 */
static inline __attribute__((always_inline)) int post_counted(struct mr_qp *qp, struct ibv_send_wr *wr, bool counts,
                                                              struct mr_tx *tx)
{
    unsigned sends = qp->unsignaled_sends + counts;
    struct ibv_send_wr *bad;
    int err;

    if (__builtin_expect(qp->error, 0))
        return qp->error;
    if (tx) {
        tx->qp = qp;
        tx->requests = qp->unsignaled + 1;
        tx->sends = sends;
        wr->wr_id = mr_wr_id(&tx->wr);
        wr->send_flags |= IBV_SEND_SIGNALED;
    } else {
        wr->wr_id = mr_wr_id(&qp->unsignaled_failed);
    }
    err = ibv_post_send(qp->qp, wr, &bad);
    if (__builtin_expect(err, 0))
        return err == ENOMEM ? -EAGAIN : -err;
    qp->unsignaled = tx ? 0 : qp->unsignaled + 1;
    qp->unsignaled_sends = tx ? 0 : sends;
    qp->room--;
    qp->rail->cq_room--;
    mr_verbs.answered = true;
    return 0;
}

/* Over a connection, where a packet is one request. */
static inline __attribute__((always_inline)) int post_packet(struct mr_qp *qp, struct ibv_send_wr *wr, struct mr_tx *tx,
                                                             size_t len)
{
    int err = post_counted(qp, wr, true, tx);

    if (__builtin_expect(err, 0))
        return err;
    mr_rail_add(qp->rail, MR_RAIL_PACKETS_SENT, 1);
    mr_rail_add(qp->rail, MR_RAIL_BYTES_SENT, len);
    return 0;
}

static inline __attribute__((always_inline)) int post(struct mr_qp *qp, struct ibv_send_wr *wr, struct mr_tx *tx)
{
    return post_counted(qp, wr, wr->opcode == IBV_WR_SEND, tx);
}

int mr_qp_send_inline(struct mr_qp *qp, const void *data, size_t len, struct mr_tx *tx)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)len};
    struct ibv_send_wr wr; /* its other members say nothing of a send */

    wr.next = NULL;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_INLINE;
    return post_packet(qp, &wr, tx, len);
}

int mr_qp_send(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, struct mr_tx *tx)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

    return post_packet(qp, &wr, tx, len);
}

int mr_qp_write(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
                const uint32_t *imm, struct mr_tx *tx)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = len > 0, .opcode = IBV_WR_RDMA_WRITE};

    wr.wr.rdma.remote_addr = raddr;
    wr.wr.rdma.rkey = rkey;
    if (imm) {
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.imm_data = htobe32(*imm);
    }
    return post(qp, &wr, tx);
}

int mr_qp_put(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey, bool packet,
              struct mr_tx *tx)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_send_wr wr; /* its other members say nothing of a write */

    wr.next = NULL;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = len <= qp->max_inline ? IBV_SEND_INLINE : 0;
    wr.wr.rdma.remote_addr = raddr;
    wr.wr.rdma.rkey = rkey;
    return packet ? post_packet(qp, &wr, tx, len) : post_counted(qp, &wr, false, tx);
}

int mr_qp_read(struct mr_qp *qp, void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey, struct mr_tx *tx)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};

    wr.wr.rdma.remote_addr = raddr;
    wr.wr.rdma.rkey = rkey;
    return post(qp, &wr, tx);
}

int mr_qp_send_to(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *piece, unsigned pieces,
                  const uint32_t *imm, struct mr_tx *tx)
{
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = (int)pieces, .opcode = IBV_WR_SEND};
    uint32_t len = 0;

    for (unsigned i = 0; i < pieces && i < 2; i++) {
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)piece[i].data, .length = piece[i].len, .lkey = piece[i].lkey};
        len += piece[i].len;
    }
    if (len <= qp->max_inline)
        wr.send_flags = IBV_SEND_INLINE;
    if (imm) {
        wr.opcode = IBV_WR_SEND_WITH_IMM;
        wr.imm_data = htobe32(*imm);
    }
    wr.wr.ud.ah = to->ah;
    wr.wr.ud.remote_qpn = to->qpn;
    wr.wr.ud.remote_qkey = to->qkey;
    return post(qp, &wr, tx);
}

int mr_qp_send_run(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *all, uint32_t size, uint32_t imm,
                   struct mr_tx *tx)
{
    unsigned n = (all->len + size - 1) / size, posted = 0;
    struct ibv_send_wr wr[MR_QP_RUN], *bad = NULL;
    struct ibv_sge sge[MR_QP_RUN];
    int err;

    if (__builtin_expect(qp->error, 0))
        return qp->error;
    for (unsigned i = 0; i < n; i++) {
        uint32_t at = i * size;

        sge[i] = (struct ibv_sge){
            .addr = (uintptr_t)all->data + at, .length = i + 1 < n ? size : all->len - at, .lkey = all->lkey};
        wr[i] = (struct ibv_send_wr){.wr_id = mr_wr_id(&qp->unsignaled_failed),
                                     .next = i + 1 < n ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1,
                                     .opcode = IBV_WR_SEND_WITH_IMM,
                                     .imm_data = htobe32(imm + i)};
        wr[i].wr.ud.ah = to->ah;
        wr[i].wr.ud.remote_qpn = to->qpn;
        wr[i].wr.ud.remote_qkey = to->qkey;
    }
    tx->qp = qp;
    tx->requests = qp->unsignaled + n;
    tx->sends = qp->unsignaled_sends;
    wr[n - 1].wr_id = mr_wr_id(&tx->wr);
    wr[n - 1].send_flags = IBV_SEND_SIGNALED;
    err = ibv_post_send(qp->qp, wr, &bad);
    while (posted < n && !(err && bad == &wr[posted]))
        posted++;
    qp->unsignaled = err ? qp->unsignaled + posted : 0; /* a later request gives back the room of what was posted */
    qp->unsignaled_sends = err ? qp->unsignaled_sends : 0;
    qp->room -= posted;
    qp->rail->cq_room -= posted;
    mr_verbs.answered = true;
    return err == ENOMEM && !posted ? -EAGAIN : -err;
}

static inline void make_room(struct mr_qp *qp, unsigned requests)
{
    qp->room += requests;
    qp->rail->cq_room += requests;
}

/*
 * What a connection in error holds is given back when it is destroyed: which of its requests come back is not known. Of
 * datagrams all do, since the last request of each packet is signaled.
 */
void mr_tx_done(struct mr_tx *tx, const struct mr_wc *wc)
{
    struct mr_qp *qp = tx->qp;

    if (__builtin_expect(wc->error, 0)) {
        if (qp->type == MR_QP_UD)
            make_room(qp, tx->requests);
        note_failure(qp, wc);
        return;
    }
    make_room(qp, tx->requests);
    if (tx->sends)
        qp->events->confirmed(qp, tx->sends);
}
