/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a queue pair: made, brought up against a peer, given up, destroyed. post.c posts to it. */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/datagram.h"

#define INLINE_WANTED 256
#define READS_WANTED  16 /* outstanding RDMA reads of a queue pair */
#define RNR_TIMER     10 /* 0.32 ms: how long a sender waits before it tries again when we had no buffer */
#define MARKERS       1  /* entries that each send queue keeps for its last request */
#define UD_SENDS      4  /* times MRMPI_SQ_DEPTH: the send queue that datagrams to all peers share */

/* ---- life ------------------------------------------------------------------------------------------------------ */

static struct ibv_qp *qp_create(struct mr_rail *rail, struct ibv_qp_init_attr *init)
{
    /* The inline limit is found by trials: a device refuses values beyond its limit. */
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

/* Where the port's table has the partition, or had it last: then nothing comes through, as in any wrong partition. */
static uint16_t pkey_index(const struct mr_qp *qp)
{
    const struct mr_rail_partition *p = qp->pkey ? mr_rail_partition(qp->rail, qp->pkey) : NULL;

    return p ? p->now.index : qp->rail->partition[0].now.index;
}

static int qp_initialise(struct mr_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = qp->rail->port, .pkey_index = pkey_index(qp)};
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    if (qp->type == MR_QP_UD) {
        attr.qkey = qp->qkey;
        mask |= IBV_QP_QKEY;
    } else {
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | (qp->type == MR_QP_RC ? IBV_ACCESS_REMOTE_READ : 0) |
                               (qp->type == MR_QP_RC && qp->rail->dev->atomics ? IBV_ACCESS_REMOTE_ATOMIC : 0);
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
    return qp_create(qp->rail, init);
}

static void qp_release(struct mr_qp *qp)
{
    if (qp->qp)
        ibv_destroy_qp(qp->qp);
    qp->qp = NULL;
    mr_post_close(qp);
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
        .cap = {.max_send_wr = send_depth(rail, type, times), .max_send_sge = 2},
    };
    int err = 0;

    if (rail->dev->fatal)
        return -EIO;
    memset(qp, 0, sizeof *qp);
    qp->rail = rail;
    qp->type = type;
    qp->events = events;
    qp->owner = owner;
    qp->depth = qp->room = init.cap.max_send_wr - MARKERS;
    err = mr_post_open(qp);
    if (err)
        return err;
    qp->qp = qp_create(rail, &init);
    if (!qp->qp)
        qp->qp = create_unshared(qp, &init);
    if (!qp->qp) {
        err = errno ? -errno : -ENOMEM;
        goto release;
    }
    qp->qpn = qp->qp->qp_num;
    qp->max_inline = init.cap.max_inline_data;
    if (type == MR_QP_UD)
        qp->qkey = rail->addr.ud_qkey;
    err = qp_initialise(qp);
    if (!err && !init.srq) {
        rail->cq_room -= MR_OWN_RECVS;
        err = mr_rx_open_own(rail, &qp->rx, qp->qp, MR_OWN_RECVS);
    }
    if (err)
        goto release;
    qp->state = MR_QP_ALIVE;
    count_qp(rail, 1);
    mr_post_restart(qp);
    return 0;

release:
    qp_release(qp);
    return err;
}

uint8_t mr_qp_reads(const struct mr_device *dev)
{
    return dev->max_reads < READS_WANTED ? dev->max_reads : READS_WANTED;
}

/* Attributes of reliable connections only. */
#define RTR_RELIABLE (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RELIABLE (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

/*
 * 4.096 us times two to this power (IBTA volume 1, 9.7.6.1.3). A time-out must be longer than any congestion, or late
 * packets are sent again. With lost packets an adapter spends most of its time in time-outs, and an unnecessary
 * repetition now and then costs little.
 */
static uint8_t ack_timeout(const struct mr_qp *qp)
{
    if (qp->untimed)
        return 0;
    if (qp->lossy && mr_config.rc_timeout > MR_QP_LOSSY_TIMEOUT)
        return MR_QP_LOSSY_TIMEOUT;
    return (uint8_t)mr_config.rc_timeout;
}

int mr_qp_connect(struct mr_qp *qp, const struct mr_rail_addr *to, uint32_t remote_qpn, uint32_t local_psn,
                  uint32_t remote_psn, uint8_t sl, uint8_t path)
{
    struct mr_rail *rail = qp->rail;
    bool reliable = qp->type == MR_QP_RC;
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .pkey_index = pkey_index(qp),
        .path_mtu = to->mtu < rail->addr.mtu ? to->mtu : rail->addr.mtu,
        .dest_qp_num = remote_qpn,
        .rq_psn = remote_psn,
        .max_dest_rd_atomic = mr_qp_reads(rail->dev),
        .min_rnr_timer = RNR_TIMER,
    };
    int err;

    mr_rail_ah_attr(rail, to, sl, path, &attr.ah_attr);
    err = ibv_modify_qp(qp->qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | (reliable ? RTR_RELIABLE : 0));
    if (err)
        return -err;
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .sq_psn = local_psn,
        .timeout = ack_timeout(qp),
        .retry_cnt = (uint8_t)mr_config.rc_retry,
        .rnr_retry = (uint8_t)mr_config.rnr_retry,
        .max_rd_atomic = to->reads < mr_qp_reads(rail->dev) ? to->reads : mr_qp_reads(rail->dev),
    };
    return -ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? RTS_RELIABLE : 0));
}

int mr_qp_bring_up(struct mr_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .pkey_index = pkey_index(qp)};
    int err = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX);

    attr.qp_state = IBV_QPS_RTS;
    return err ? -err : -ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

int mr_qp_revive(struct mr_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    int err = -ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);

    if (!err)
        err = qp_initialise(qp);
    if (!err)
        err = mr_qp_bring_up(qp);
    if (err)
        return err;
    qp->error = 0;
    qp->state = MR_QP_ALIVE;
    mr_post_restart(qp);
    return 0;
}

/* ---- the end of a queue pair --------------------------------------------------------------------------------------
 */

static void end_drain(struct mr_qp *qp)
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
        end_drain(qp);
}

/*
 * The requests of a queue pair in error come back in the order of posting, and a later post comes back too (volume 1,
 * 10.3.1): after the last one, all have.
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

/* Nothing comes back from a lost device, or from a queue pair that was never connected. */
static bool qp_has_drained(struct mr_qp *qp)
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

    if (!qp_has_drained(qp))
        return false;
    end_drain(qp);
    return true;
}

void mr_qp_abort(struct mr_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    if (qp->state != MR_QP_ALIVE)
        return;
    if (!qp->error)
        qp->error = -ECANCELED;
    qp->unsignaled_left = 0;
    if (!qp->rail->dev->fatal)
        ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
    qp->state = MR_QP_UNMARKED;
    qp->later.done = later_drained;
    mr_verbs_later(&qp->later);
}

/* ---- closing without losing arrivals ----------------------------------------------------------------------------- */

/* Destroying a queue pair takes its completions away, also those of packets that the peer knows to have arrived. */
struct retired {
    struct mr_qp qp;
    struct retired *next;
};
static struct retired *first_retired;

static void retired_leave(struct retired *r)
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
    retired_leave(qp->owner);
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
        retired_leave(first_retired);
}

/* ---- probing the other end --------------------------------------------------------------------------------------- */

#define PSN_MASK 0xffffffu
#define PSN_AWAY 0x400000u

static void return_all_room(struct mr_qp *qp)
{
    qp->rail->cq_room += qp->depth - qp->room;
    qp->room = qp->depth;
    mr_post_restart(qp);
}

void mr_qp_keep(struct mr_qp *from, struct mr_qp *to, const struct mr_qp_events *events, void *owner)
{
    *to = *from;
    to->events = events;
    to->owner = owner;
    return_all_room(to);
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
 * Without an answer, nothing from the peer is taken in: there is no right to write, and the peer's packets are far
 * ahead of the expected number, so they are refused. (Far behind, they would be duplicates, and acknowledged.)
 */
static int bring_up_again(struct mr_qp *qp, const struct ibv_qp_attr *was, uint32_t send, uint32_t receive,
                          bool answers)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    int err = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);

    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT,
                                .port_num = qp->rail->port,
                                .pkey_index = pkey_index(qp),
                                .qp_access_flags = answers ? IBV_ACCESS_REMOTE_WRITE : 0};
    if (!err)
        err = ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                                .ah_attr = was->ah_attr,
                                .path_mtu = was->path_mtu,
                                .dest_qp_num = was->dest_qp_num,
                                .rq_psn = (answers ? receive : receive - PSN_AWAY) & PSN_MASK,
                                .min_rnr_timer = RNR_TIMER};
    if (!err)
        err = ibv_modify_qp(qp->qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .sq_psn = send & PSN_MASK,
                                .timeout = ack_timeout(qp),
                                .retry_cnt = (uint8_t)mr_config.rc_retry,
                                .rnr_retry = (uint8_t)mr_config.rnr_retry};
    if (!err)
        err = ibv_modify_qp(qp->qp, &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_MAX_QP_RD_ATOMIC);
    return -err;
}

int mr_qp_again(struct mr_qp *qp, const struct mr_rail_addr *to, uint32_t send, uint32_t receive, bool answers)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr was;
    int err;

    if (qp->state != MR_QP_DRAINED || qp->rail->dev->fatal)
        return -EINVAL;
    err = -ibv_query_qp(qp->qp, &was, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN, &init);
    if (!err && to)
        mr_rail_ah_attr(qp->rail, to, was.ah_attr.sl, 0, &was.ah_attr);
    if (!err)
        err = bring_up_again(qp, &was, send, receive, answers);
    if (err)
        return err;
    qp->error = 0;
    qp->state = MR_QP_ALIVE;
    return_all_room(qp);
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
    qp_release(qp);
    rail->cq_room += qp->depth - qp->room;
    count_qp(rail, -1);
}
