/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: RC, UC or UD, on one rail. The owner makes a queue pair, connects it, and gives it up: posted requests
 * then come back flushed, and the queue pair has drained. Requests: post.h.
 */
#ifndef MRMPI_VERBS_QP_H
#define MRMPI_VERBS_QP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/verbs/completion.h"
#include "libmrmpi/verbs/rail.h"

/* RDMA reads that a queue pair of the device answers, or has outstanding, at the same time. */
uint8_t mr_qp_reads(const struct mr_device *dev);

struct ibv_qp;
struct mr_qp;

struct mr_qp_events {
    /* The first so many sends have arrived. */
    void (*confirmed)(struct mr_qp *qp, unsigned sends);
    /* Called once, at the first failed request, unless mr_qp_abort() came before. */
    void (*failed)(struct mr_qp *qp, const struct mr_wc *wc);
    /* After mr_qp_abort(): all that was posted has come back. */
    void (*drained)(struct mr_qp *qp);
};

/* The wait for acknowledgements of a queue pair on a lossy way, by default: mr_qp.lossy */
#define MR_QP_LOSSY_TIMEOUT 10
#define MR_QP_LOSSY_NS      (4096ull << MR_QP_LOSSY_TIMEOUT)

enum mr_qp_type { MR_QP_RC, MR_QP_UC, MR_QP_UD };

enum mr_qp_state {
    MR_QP_NONE,
    MR_QP_ALIVE,
    MR_QP_UNMARKED, /* given up; its last request, the marker, is not posted yet */
    MR_QP_MARKED,
    MR_QP_MARKED_BACK, /* the marker has come back, but not all of its receive buffers */
    MR_QP_DRAINED,
};

#define MR_OWN_RECVS 64 /* buffers of a queue pair that cannot share a receive queue */

struct mr_inline_send;

struct mr_qp {
    struct ibv_qp *qp;
    struct mr_rail *rail;
    struct mr_inline_send *inline_send; /* prepared (post.c) */
    unsigned unsignaled_left; /* requests that may follow before one must be signaled; 0 after an error, too */
    uint32_t max_inline;
    unsigned unsignaled_sends, unsignaled_others; /* posted since the last signaled request: sends, all else */
    unsigned depth, room;                         /* of the send queue; requests that may still be posted */
    unsigned finished;                            /* signaled requests that have come back; wraps */
    unsigned full_finished, full_emptied; /* mr_qp_is_full: that and 1, and mr_rail.emptied, when there was no room */
    int error;
    uint16_t pkey; /* of the rail's: its partition. Set before connecting or bringing up; 0: the first */
    /* RC, set before connecting: */
    bool untimed; /* unacknowledged requests are neither sent again nor given up */
    bool lossy;   /* packets are lost on its way: a shorter wait for acknowledgements */
    uint32_t qpn, qkey;
    enum mr_qp_type type;
    enum mr_qp_state state;
    struct mr_rx *rx; /* a receive queue of its own; NULL: the rail's */
    const struct mr_qp_events *events;
    void *owner;
    struct mr_wr marker;            /* the last request of a queue pair that is given up */
    struct mr_wr unsignaled_failed; /* comes back for failed unsignaled requests */
    struct mr_later later;
};

/* times: so many times MRMPI_SQ_DEPTH requests fit into its send queue, if the device can. 0 or negative errno. */
int mr_qp_create(struct mr_rail *rail, enum mr_qp_type type, unsigned times, struct mr_qp *qp,
                 const struct mr_qp_events *events, void *owner);
/* UD: ready to send. */
int mr_qp_bring_up(struct mr_qp *qp);
/* UD: after draining, works again under the same number. */
int mr_qp_revive(struct mr_qp *qp);
/* Bring it up against the peer's queue pair; path: LID path bits on both sides. */
int mr_qp_connect(struct mr_qp *qp, const struct mr_rail_addr *to, uint32_t remote_qpn, uint32_t local_psn,
                  uint32_t remote_psn, uint8_t sl, uint8_t path);
/*
 * Of a queue pair without room for a request. True: nor had it room after a poll that emptied its rail's completion
 * queue. Until then all requests may have left: false, once at least for each time that the queue pair fills up.
 */
static inline bool mr_qp_is_full(struct mr_qp *qp)
{
    if (qp->full_finished == qp->finished + 1)
        return qp->full_emptied != qp->rail->emptied;
    qp->full_finished = qp->finished + 1;
    qp->full_emptied = qp->rail->emptied;
    return false;
}
/* Gives up: posted requests come back flushed, then events->drained is called, out of mr_verbs_poll(). */
void mr_qp_abort(struct mr_qp *qp);
/*
 * Its room of the completion queue is given back. Requests still posted never come back: for drained queue pairs, and
 * the end.
 */
void mr_qp_destroy(struct mr_qp *qp);
/*
 * Instead of mr_qp_destroy() for a queue pair that may have received, and has posted nothing: *qp is as before
 * mr_qp_create() at once, but data acknowledged to the peer is still handed up. all_gone: at the end, nothing is.
 */
void mr_qp_retire(struct mr_qp *qp);
void mr_qps_all_gone(void);
/*
 * After it has drained, to learn whether the peer's end is still there. keep: *to takes it over, with other events and
 * another owner; *from is as before mr_qp_create(). psns: the numbers of the packets that it would have sent and
 * received next. again: bring it up once more against the same queue pair, at another address unless to is NULL; its
 * next request has the number send, and the peer sends receive next, or, unless it answers, one a little behind that:
 * then it takes nothing in. answers: it acknowledges writes of no bytes.
 */
void mr_qp_keep(struct mr_qp *from, struct mr_qp *to, const struct mr_qp_events *events, void *owner);
int mr_qp_psns(struct mr_qp *qp, uint32_t *send, uint32_t *receive);
int mr_qp_again(struct mr_qp *qp, const struct mr_rail_addr *to, uint32_t send, uint32_t receive, bool answers);

#endif
