/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting to queue pairs. The caller asks first for room. A request that is not signaled comes back only if it fails; a
 * later signaled request stands for it.
 */
#ifndef MRMPI_VERBS_POST_H
#define MRMPI_VERBS_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/packet.h"
#include "libmrmpi/verbs/completion.h"
#include "libmrmpi/verbs/datagram.h"
#include "libmrmpi/verbs/qp.h"

/*
 * A signaled request. It stands for the unsignaled requests before: mr_tx_done() gives their room back, and every
 * done() of a struct mr_tx calls it first.
 */
struct mr_tx {
    struct mr_wr wr;
    struct mr_qp *qp;
    unsigned requests, sends;
};

static inline bool mr_qp_has_room(const struct mr_qp *qp, unsigned requests)
{
    return qp->room >= requests && qp->rail->cq_room >= requests;
}

/* True when the next request on the queue pair must be signaled. */
static inline bool mr_qp_must_signal(const struct mr_qp *qp)
{
    return !qp->unsignaled_left;
}

/* There is room for a request, and it need not be signaled. */
static inline bool mr_qp_has_unsignaled(const struct mr_qp *qp)
{
    return qp->unsignaled_left && qp->rail->cq_room;
}

/* Send unsignaled, without touching data later; len <= max_inline, and mr_qp_has_unsignaled(). */
int mr_qp_send_inline(struct mr_qp *qp, const void *data, size_t len);
/* Inline if it is short enough. tx NULL: unsignaled, here and below. */
int mr_qp_send(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, struct mr_tx *tx);

struct mr_piece {
    const void *data;
    uint32_t len, lkey;
};
/* The same of two pieces, never inline. */
int mr_qp_send_pieces(struct mr_qp *qp, const struct mr_piece piece[2], struct mr_tx *tx);
/* One datagram of one or two pieces; inline if short. imm: may be NULL. */
int mr_qp_send_to(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *piece, unsigned pieces,
                  const uint32_t *imm, struct mr_tx *tx);
/*
 * Datagrams of size bytes, the last perhaps shorter, MR_QP_RUN at most; imm is that of the first and counts up. There
 * is room for them. The last is signaled.
 */
#define MR_QP_RUN 16
int mr_qp_send_run(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *all, uint32_t size, uint32_t imm,
                   struct mr_tx *tx);
/* RDMA write; with imm the receiver is told. lkey 0: of memory that is not registered, len <= max_inline. */
int mr_qp_write(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
                const uint32_t *imm, struct mr_tx *tx);
/*
 * Short writes to one region of the peer's, as one list; the list comes back by tx as a whole. Data of up to max_inline
 * bytes goes with its request, other data is registered with lkey. There is room for them. *posted: the number handed
 * to the adapter, which after an error may be a part. MR_QP_LIST at most.
 */
#define MR_QP_LIST 16
int mr_qp_write_list(struct mr_qp *qp, const struct mr_short_write *one, unsigned num, uint32_t rkey, uint32_t lkey,
                     struct mr_tx *tx, unsigned *posted);
/*
 * RDMA write into memory that the peer polls (verbs/link/ring.c); inline if it fits. packet: counts as a send, for
 * mr_qp_events.confirmed.
 */
int mr_qp_put(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey, bool packet,
              struct mr_tx *tx);
/* RDMA read; the read peer gets no notice. */
int mr_qp_read(struct mr_qp *qp, void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
               struct mr_tx *tx);
/*
 * An atomic change and a read behind it, in the form of struct mr_atomic; the memory there begins at raddr, result is
 * registered with lkey. The peer's adapter executes in this order: earlier requests, the change, the read. tx comes
 * back when all are done. There is room for two requests.
 */
int mr_qp_atomic(struct mr_qp *qp, const struct mr_atomic *w, uint64_t raddr, uint32_t rkey, uint32_t lkey,
                 struct mr_tx *tx);
void mr_tx_done(struct mr_tx *tx, const struct mr_wc *wc);

#endif
