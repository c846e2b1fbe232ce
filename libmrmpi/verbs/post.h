/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting to queue pairs, for links. The caller asks first for room. A request that is not signaled comes back only if
 * it fails; a later signaled request stands for it.
 */
#ifndef MRMPI_VERBS_POST_H
#define MRMPI_VERBS_POST_H

#include "libmrmpi/verbs/verbs.h"

static inline bool mr_qp_has_room(const struct mr_qp *qp, unsigned requests)
{
    return qp->room >= requests && qp->rail->cq_room >= requests;
}

/* True when the next request on the queue pair must be signaled. */
static inline bool mr_qp_must_signal(const struct mr_qp *qp)
{
    return !qp->unsignaled_left;
}

/* Send unsignaled, without touching data later; len <= max_inline, and mr_qp_has_unsignaled(). */
int mr_qp_send_inline(struct mr_qp *qp, const void *data, size_t len);
/* Inline if it is short enough. tx NULL: unsignaled, here and below. */
int mr_qp_send(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, struct mr_tx *tx);

/* The same of two pieces, never inline. */
int mr_qp_send_pieces(struct mr_qp *qp, const struct mr_piece piece[2], struct mr_tx *tx);
/* One datagram of one or two pieces; inline if short. imm: may be NULL. */
int mr_qp_send_to(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *piece, unsigned pieces,
                  const uint32_t *imm, struct mr_tx *tx);
/*
 * Datagrams of size bytes, the last perhaps shorter, MR_QP_RUN at most; imm is that of the first and counts up. There
 * is room for them. The last is signaled.
 */
int mr_qp_send_run(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *all, uint32_t size, uint32_t imm,
                   struct mr_tx *tx);
/*
 * Short writes to one region of the peer's, as one list; the list comes back by tx as a whole. Data of up to max_inline
 * bytes goes with its request, other data is registered with lkey. There is room for them. *posted: the number handed
 * to the adapter, which after an error may be a part. MR_QP_LIST at most.
 */
int mr_qp_write_list(struct mr_qp *qp, const struct mr_short_write *one, unsigned num, uint32_t rkey, uint32_t lkey,
                     struct mr_tx *tx, unsigned *posted);
/*
 * RDMA write into memory that the peer polls (verbs/link/ring.c); inline if it fits. packet: counts as a send, for
 * mr_qp_events.confirmed.
 */
int mr_qp_put(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey, bool packet,
              struct mr_tx *tx);
/* RDMA read; the read peer gets no notice. */
/* A write of no bytes, signaled, whose completion says nothing about earlier requests. */
int mr_qp_ask(struct mr_qp *qp, struct mr_tx *tx);
int mr_qp_read(struct mr_qp *qp, void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
               struct mr_tx *tx);
/*
 * An atomic change and a read behind it, in the form of struct mr_atomic; the memory there begins at raddr, result is
 * registered with lkey. The peer's adapter executes in this order: earlier requests, the change, the read. tx comes
 * back when all are done. There is room for two requests.
 */
int mr_qp_atomic(struct mr_qp *qp, const struct mr_atomic *w, uint64_t raddr, uint32_t rkey, uint32_t lkey,
                 struct mr_tx *tx);

#endif
