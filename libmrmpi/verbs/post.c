/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting to queue pairs, and the room returned by completions. Room is counted in requests; a signaled request returns
 * its own and that of the unsignaled requests before. Each function here describes its request and calls
 * ibv_post_send() itself: request_begin() before, request_end() after.
 */
#include "libmrmpi/verbs/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/post.h"

/* ---- failure ----------------------------------------------------------------------------------------------------- */

static void qp_fail(struct mr_qp *qp, const struct mr_wc *wc)
{
    if (qp->error)
        return;
    qp->error = wc->error;
    qp->unsignaled_left = 0;
    qp->events->failed(qp, wc);
}

static void unsignaled_done(struct mr_wr *wr, const struct mr_wc *wc)
{
    if (wc->error)
        qp_fail(container_of(wr, struct mr_qp, unsignaled_failed), wc);
}

/* ---- preparation ------------------------------------------------------------------------------------------------- */

/* An inline send has its address and length to fill in, all else stands there. */
struct mr_inline_send {
    struct ibv_send_wr wr, *bad;
    struct ibv_sge sge;
};

static void prepare_inline_send(struct mr_qp *qp)
{
    struct mr_inline_send *s = qp->inline_send;

    *s = (struct mr_inline_send){.wr = {.wr_id = mr_wr_id(&qp->unsignaled_failed),
                                        .sg_list = &s->sge,
                                        .num_sge = 1,
                                        .opcode = IBV_WR_SEND,
                                        .send_flags = IBV_SEND_INLINE}};
}

int mr_post_open(struct mr_qp *qp)
{
    qp->inline_send = malloc(sizeof *qp->inline_send);
    if (!qp->inline_send)
        return -ENOMEM;
    qp->unsignaled_failed.done = unsignaled_done;
    return 0;
}

void mr_post_close(struct mr_qp *qp)
{
    free(qp->inline_send);
    qp->inline_send = NULL;
}

static inline unsigned unsignaled(const struct mr_qp *qp)
{
    return qp->unsignaled_sends + qp->unsignaled_others;
}

/* At least one request in signal_every is signaled, and all are while half of the queue or more is taken. */
static void renew_unsignaled_left(struct mr_qp *qp)
{
    unsigned most = qp->rail->signal_every - 1, half = qp->depth / 2, left;

    left = qp->error || qp->room <= half || unsignaled(qp) >= most ? 0 : most - unsignaled(qp);
    qp->unsignaled_left = left && left > qp->room - half ? qp->room - half : left;
}

void mr_post_restart(struct mr_qp *qp)
{
    qp->unsignaled_sends = qp->unsignaled_others = 0;
    prepare_inline_send(qp);
    renew_unsignaled_left(qp);
}

/* ---- posting ----------------------------------------------------------------------------------------------------- */

/* counts: the request is a send, or stands for one. */
static inline int request_begin(struct mr_qp *qp, struct ibv_send_wr *wr, bool counts, struct mr_tx *tx)
{
    if (unlikely(qp->error))
        return qp->error;
    if (tx) {
        tx->qp = qp;
        tx->requests = unsignaled(qp) + 1;
        tx->sends = qp->unsignaled_sends + counts;
        wr->wr_id = mr_wr_id(&tx->wr);
        wr->send_flags |= IBV_SEND_SIGNALED;
    } else {
        wr->wr_id = mr_wr_id(&qp->unsignaled_failed);
    }
    return 0;
}

static inline int post_error(int err)
{
    return err == ENOMEM ? -EAGAIN : -err;
}

static inline void count_unsignaled(struct mr_qp *qp, bool counts)
{
    qp->unsignaled_sends += counts;
    qp->unsignaled_others += !counts;
    qp->unsignaled_left -= qp->unsignaled_left > 0;
}

/* err: of ibv_post_send(). */
static inline int request_end(struct mr_qp *qp, bool counts, const struct mr_tx *tx, int err)
{
    if (unlikely(err))
        return post_error(err);
    qp->room--;
    qp->rail->cq_room--;
    mr_verbs.answered = true;
    if (tx) {
        qp->unsignaled_sends = qp->unsignaled_others = 0;
        renew_unsignaled_left(qp);
    } else {
        count_unsignaled(qp, counts);
    }
    return 0;
}

/* Over a connection, where a packet is one request. */
static inline void count_packet(struct mr_rail *rail, size_t len)
{
    mr_rail_add(rail, MR_RAIL_PACKETS_SENT, 1);
    mr_rail_add(rail, MR_RAIL_BYTES_SENT, len);
}

int mr_qp_send_inline(struct mr_qp *qp, const void *data, size_t len)
{
    struct mr_inline_send *s = qp->inline_send;
    int err;

    s->sge.addr = (uintptr_t)data;
    s->sge.length = (uint32_t)len;
    err = ibv_post_send(qp->qp, &s->wr, &s->bad);
    if (unlikely(err))
        return post_error(err);
    qp->unsignaled_sends++;
    qp->unsignaled_left--;
    qp->room--;
    qp->rail->cq_room--;
    mr_verbs.answered = true;
    count_packet(qp->rail, len);
    return 0;
}

int mr_qp_send(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, struct mr_tx *tx)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    int err;

    wr.send_flags = len <= qp->max_inline ? IBV_SEND_INLINE : 0;
    err = request_begin(qp, &wr, true, tx);
    if (!err)
        err = request_end(qp, true, tx, ibv_post_send(qp->qp, &wr, &bad));
    if (!err)
        count_packet(qp->rail, len);
    return err;
}

int mr_qp_send_pieces(struct mr_qp *qp, const struct mr_piece piece[2], struct mr_tx *tx)
{
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND}, *bad;
    int err = request_begin(qp, &wr, true, tx);

    for (unsigned i = 0; i < 2; i++)
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)piece[i].data, .length = piece[i].len, .lkey = piece[i].lkey};
    if (!err)
        err = request_end(qp, true, tx, ibv_post_send(qp->qp, &wr, &bad));
    if (!err)
        count_packet(qp->rail, (size_t)piece[0].len + piece[1].len);
    return err;
}

int mr_qp_write(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
                const uint32_t *imm, struct mr_tx *tx)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = len > 0, .opcode = IBV_WR_RDMA_WRITE}, *bad;
    int err;

    wr.send_flags = len && !lkey && len <= qp->max_inline ? IBV_SEND_INLINE : 0;
    err = request_begin(qp, &wr, false, tx);
    mr_verbs.moved = true;
    wr.wr.rdma.remote_addr = raddr;
    wr.wr.rdma.rkey = rkey;
    if (imm) {
        wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        wr.imm_data = htobe32(*imm);
    }
    return err ? err : request_end(qp, false, tx, ibv_post_send(qp->qp, &wr, &bad));
}

int mr_qp_ask(struct mr_qp *qp, struct mr_tx *tx)
{
    struct ibv_send_wr wr = {.wr_id = mr_wr_id(&tx->wr), .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    int err = qp->error ? 0 : ibv_post_send(qp->qp, &wr, &bad);

    if (qp->error || err)
        return qp->error ? qp->error : post_error(err);
    tx->qp = qp;
    tx->requests = 1;
    tx->sends = 0;
    qp->room--;
    qp->rail->cq_room--;
    return 0;
}

/* Only the used parts are initialised: a short write may be one of these. */
static void describe_list(const struct mr_qp *qp, const struct mr_short_write *one, unsigned num, uint32_t rkey,
                          uint32_t lkey, struct ibv_send_wr wr[], struct ibv_sge sge[])
{
    for (unsigned i = 0; i < num; i++) {
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)one[i].data, .length = one[i].len, .lkey = lkey};
        wr[i].wr_id = mr_wr_id(&qp->unsignaled_failed);
        wr[i].next = &wr[i + 1];
        wr[i].sg_list = &sge[i];
        wr[i].num_sge = 1;
        wr[i].opcode = IBV_WR_RDMA_WRITE;
        wr[i].send_flags = one[i].len <= qp->max_inline ? IBV_SEND_INLINE : 0;
        wr[i].wr.rdma.remote_addr = one[i].addr;
        wr[i].wr.rdma.rkey = rkey;
    }
    wr[num - 1].next = NULL;
}

/* A list ends with a signaled request. After an error its posted part has none: the queue pair is lost. */
static int list_end(struct mr_qp *qp, unsigned posted, int err)
{
    qp->room -= posted;
    qp->rail->cq_room -= posted;
    mr_verbs.answered = true;
    if (unlikely(err)) {
        qp->unsignaled_others += posted;
        return err == ENOMEM && !posted ? -EAGAIN : -err;
    }
    qp->unsignaled_sends = qp->unsignaled_others = 0;
    renew_unsignaled_left(qp);
    return 0;
}

int mr_qp_write_list(struct mr_qp *qp, const struct mr_short_write *one, unsigned num, uint32_t rkey, uint32_t lkey,
                     struct mr_tx *tx, unsigned *posted)
{
    struct ibv_send_wr wr[MR_QP_LIST], *bad = NULL;
    struct ibv_sge sge[MR_QP_LIST];
    int err;

    *posted = 0;
    if (unlikely(qp->error))
        return qp->error;
    describe_list(qp, one, num, rkey, lkey, wr, sge);
    tx->qp = qp;
    tx->requests = unsignaled(qp) + num;
    tx->sends = qp->unsignaled_sends;
    wr[num - 1].wr_id = mr_wr_id(&tx->wr);
    wr[num - 1].send_flags |= IBV_SEND_SIGNALED;
    err = ibv_post_send(qp->qp, wr, &bad);
    *posted = err ? (unsigned)(bad - wr) : num;
    return list_end(qp, *posted, err);
}

int mr_qp_put(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey, bool packet,
              struct mr_tx *tx)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_send_wr wr, *bad; /* not initialised: a short message may come this way */
    int err;

    wr.next = NULL;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = len <= qp->max_inline ? IBV_SEND_INLINE : 0;
    wr.wr.rdma.remote_addr = raddr;
    wr.wr.rdma.rkey = rkey;
    err = request_begin(qp, &wr, packet, tx);
    if (!err)
        err = request_end(qp, packet, tx, ibv_post_send(qp->qp, &wr, &bad));
    if (!err && packet)
        count_packet(qp->rail, len);
    return err;
}

int mr_qp_read(struct mr_qp *qp, void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey, struct mr_tx *tx)
{
    struct ibv_sge sge = {.addr = (uintptr_t)data, .length = (uint32_t)len, .lkey = lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ}, *bad;
    int err = request_begin(qp, &wr, false, tx);

    mr_verbs.moved = true;
    wr.wr.rdma.remote_addr = raddr;
    wr.wr.rdma.rkey = rkey;
    return err ? err : request_end(qp, false, tx, ibv_post_send(qp->qp, &wr, &bad));
}

/* One or two requests; *num: their number. */
static void describe_atomic(const struct mr_qp *qp, const struct mr_atomic *w, uint64_t raddr, uint32_t rkey,
                            uint32_t lkey, struct ibv_send_wr wr[2], struct ibv_sge sge[2], unsigned *num)
{
    struct ibv_send_wr *next = wr;

    sge[0] = (struct ibv_sge){.addr = (uintptr_t)w->result, .length = sizeof(uint64_t), .lkey = lkey};
    sge[1] = (struct ibv_sge){.addr = (uintptr_t)(w->result + 1), .length = (uint32_t)w->peek, .lkey = lkey};
    if (w->what == MR_ATOMIC_SWAP) {
        *next = (struct ibv_send_wr){.sg_list = &sge[0], .num_sge = 1, .opcode = IBV_WR_ATOMIC_CMP_AND_SWP};
        next->wr.atomic.remote_addr = raddr + w->at;
        next->wr.atomic.compare_add = w->compare;
        next->wr.atomic.swap = w->value;
        next++->wr.atomic.rkey = rkey;
    } else if (w->what == MR_ATOMIC_STORE) {
        sge[0] = (struct ibv_sge){.addr = (uintptr_t)&w->value, .length = w->bytes}; /* the lowest first */
        *next = (struct ibv_send_wr){
            .sg_list = &sge[0], .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_INLINE};
        next->wr.rdma.remote_addr = raddr + w->at;
        next++->wr.rdma.rkey = rkey;
    }
    if (w->peek) {
        *next = (struct ibv_send_wr){.sg_list = &sge[1], .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
        next->wr.rdma.remote_addr = raddr;
        next++->wr.rdma.rkey = rkey;
    }
    *num = (unsigned)(next - wr);
    wr[0].next = *num > 1 ? &wr[1] : NULL;
    wr[0].wr_id = wr[1].wr_id = mr_wr_id(&qp->unsignaled_failed);
}

int mr_qp_atomic(struct mr_qp *qp, const struct mr_atomic *w, uint64_t raddr, uint32_t rkey, uint32_t lkey,
                 struct mr_tx *tx)
{
    struct ibv_send_wr wr[2] = {0}, *bad = NULL;
    struct ibv_sge sge[2];
    unsigned num;
    int err;

    if (qp->error)
        return qp->error;
    describe_atomic(qp, w, raddr, rkey, lkey, wr, sge, &num);
    tx->qp = qp;
    tx->requests = unsignaled(qp) + num;
    tx->sends = qp->unsignaled_sends;
    wr[num - 1].wr_id = mr_wr_id(&tx->wr);
    wr[num - 1].send_flags |= IBV_SEND_SIGNALED;
    err = ibv_post_send(qp->qp, wr, &bad);
    return list_end(qp, err ? (unsigned)(bad - wr) : num, err);
}

/* ---- datagrams --------------------------------------------------------------------------------------------------- */

static inline void address_datagram(struct ibv_send_wr *wr, const struct mr_ud_to *to, uint32_t imm)
{
    wr->imm_data = htobe32(imm);
    wr->wr.ud.ah = to->ah;
    wr->wr.ud.remote_qpn = to->qpn;
    wr->wr.ud.remote_qkey = to->qkey;
}

int mr_qp_send_to(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *piece, unsigned pieces,
                  const uint32_t *imm, struct mr_tx *tx)
{
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = (int)pieces}, *bad;
    uint32_t len = 0;
    int err;

    for (unsigned i = 0; i < pieces && i < 2; i++) {
        sge[i] = (struct ibv_sge){.addr = (uintptr_t)piece[i].data, .length = piece[i].len, .lkey = piece[i].lkey};
        len += piece[i].len;
    }
    wr.opcode = imm ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
    wr.send_flags = len <= qp->max_inline ? IBV_SEND_INLINE : 0;
    address_datagram(&wr, to, imm ? *imm : 0);
    err = request_begin(qp, &wr, !imm, tx);
    return err ? err : request_end(qp, !imm, tx, ibv_post_send(qp->qp, &wr, &bad));
}

int mr_qp_send_run(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *all, uint32_t size, uint32_t imm,
                   struct mr_tx *tx)
{
    unsigned n = (all->len + size - 1) / size, posted = 0;
    struct ibv_send_wr wr[MR_QP_RUN], *bad = NULL;
    struct ibv_sge sge[MR_QP_RUN];
    int err;

    if (unlikely(qp->error))
        return qp->error;
    for (unsigned i = 0; i < n; i++) {
        uint32_t at = i * size;

        sge[i] = (struct ibv_sge){
            .addr = (uintptr_t)all->data + at, .length = i + 1 < n ? size : all->len - at, .lkey = all->lkey};
        wr[i] = (struct ibv_send_wr){.wr_id = mr_wr_id(&qp->unsignaled_failed),
                                     .next = i + 1 < n ? &wr[i + 1] : NULL,
                                     .sg_list = &sge[i],
                                     .num_sge = 1,
                                     .opcode = IBV_WR_SEND_WITH_IMM};
        address_datagram(&wr[i], to, imm + i);
    }
    tx->qp = qp;
    tx->requests = unsignaled(qp) + n;
    tx->sends = qp->unsignaled_sends;
    wr[n - 1].wr_id = mr_wr_id(&tx->wr);
    wr[n - 1].send_flags = IBV_SEND_SIGNALED;
    err = ibv_post_send(qp->qp, wr, &bad);
    while (posted < n && !(err && bad == &wr[posted]))
        posted++;
    qp->unsignaled_others = err ? qp->unsignaled_others + posted : 0; /* a later one returns their room */
    qp->unsignaled_sends = err ? qp->unsignaled_sends : 0;
    qp->room -= posted;
    qp->rail->cq_room -= posted;
    mr_verbs.answered = true;
    return err == ENOMEM && !posted ? -EAGAIN : -err;
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

static inline void return_room(struct mr_qp *qp, unsigned requests)
{
    qp->room += requests;
    qp->rail->cq_room += requests;
    renew_unsignaled_left(qp);
}

/*
 * The room of a connection in error is returned at its destruction: which of its requests come back is unknown. Of
 * datagrams all do, because the last request of each packet is signaled.
 */
void mr_tx_done(struct mr_tx *tx, const struct mr_wc *wc)
{
    struct mr_qp *qp = tx->qp;

    if (unlikely(wc->error)) {
        if (qp->type == MR_QP_UD)
            return_room(qp, tx->requests);
        qp_fail(qp, wc);
        return;
    }
    qp->finished++;
    return_room(qp, tx->requests);
    if (tx->sends)
        qp->events->confirmed(qp, tx->sends);
}
