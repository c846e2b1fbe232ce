/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: their state, posted requests, and transfers under way. Queue pairs are type-stable: their memory is
 * reused only for queue pairs, so their timers may still be queued after destruction.
 */
#ifndef SIMFAB_QP_H
#define SIMFAB_QP_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/hca/landing.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp_cache.h"
#include "simfab/engine/hca/rq.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/proto.h"

struct cq;
struct hca;
struct hca_port;
struct mr;
struct packet;
struct proc;
struct tx_cost;

struct ah {
    struct object obj;
    struct pd *pd;
    struct ibv_ah_attr attr;
};

/* A posted send request. */
struct wqe {
    uint64_t wr_id, ready_ps;
    uint32_t opcode, flags; /* enum ibv_wr_opcode, enum sf_send_flags */
    uint32_t imm, rkey, wqe_index;
    uint64_t remote_addr, compare_add, swap;
    uint32_t remote_qpn, remote_qkey;
    struct ibv_ah_attr av; /* UD: the address at the time of the post */
    uint32_t length, num_sge;
    struct sf_sge *sge;
    struct chunk *inline_data;
    struct sf_bind bind; /* IBV_WR_BIND_MW */
    /* sending has begun */
    bool started;
    uint32_t first_psn, packets; /* packets: number of PSNs */
    uint32_t status;             /* enum ibv_wc_status: status of the completion in its turn */
};

/* The responder's duties in the order of their PSNs: acknowledges, and reads and atomics to answer. */
enum duty_kind { DUTY_ACK, DUTY_NAK, DUTY_RNR_NAK, DUTY_READ, DUTY_ATOMIC };

struct duty {
    struct duty *next;
    enum duty_kind kind;
    uint32_t psn, msn;
    uint8_t nak, rnr_timer;
    uint64_t ready_ps;
    uint64_t raddr, value; /* value: original value of an atomic */
    uint32_t rkey, length, sent, packets;
};

#define ATOMIC_REPLAYS 16u

struct requester {
    uint32_t next_psn;        /* of the next new request */
    uint32_t una_psn;         /* the oldest not yet acknowledged */
    uint64_t head, cur, tail; /* request numbers: oldest incomplete, being sent, next to be posted */
    uint32_t cur_packet;
    uint32_t reads; /* reads and atomics on their way */
    uint32_t retries, rnr_retries;
    struct landing landing; /* of the read being answered */
    bool rnr_wait, halted;  /* halted: an error waits for its turn */
    bool gap_seen; /* the oldest was asked for again because a later answer came: others like it say nothing new */
    struct evtimer timeout, rnr;
    struct evtimer glance;   /* while timeout is set: the process looks whether anything has come */
    uint64_t waits_since_ps; /* timeout was set then */
    struct chunk *chunk;     /* data last read from memory: of request chunk_wqe, from chunk_at */
    uint64_t chunk_wqe;
    uint32_t chunk_at;
};

struct responder {
    uint32_t expected_psn, msn;
    bool nak_sent, in_message, has_recv;
    bool deaf; /* UC: nothing is taken any more */
    uint8_t message_op;
    struct rwqe recv; /* taken; sge points to recv_sge */
    struct sf_sge *recv_sge;
    uint32_t offset; /* bytes of the message received */
    uint64_t raddr;  /* RDMA write: where the message goes */
    uint32_t rkey, dma_len, capacity;
    struct landing landing;
    struct duty *first, **last;
    struct evtimer ready;
    struct chunk *chunk; /* of the read being answered, from chunk_at */
    uint32_t chunk_at;
    uint32_t leaving; /* responses to reads that are in the adapter's pipe: other answers do not overtake them */
    struct {
        uint32_t psn;
        uint64_t value;
        bool valid;
    } replay[ATOMIC_REPLAYS];
    uint32_t next_replay;
};

/*
 * Calls from an adapter to users of its turns: queue pairs of programs (transport.c), flows (flow.c). A flow has the
 * first three.
 */
struct qp_ops {
    bool (*wants_turn)(struct qp *qp); /* true: now; sets a timer for a later turn */
    int (*lane)(struct qp *qp);
    /* Make the next packet; NULL if there is nothing to send now. *more: it wants another turn. */
    struct packet *(*emit)(struct qp *qp, struct tx_cost *cost, bool *more);
    void (*received)(struct qp *qp, struct packet *p);
    void (*response_left)(struct qp *qp); /* one response to a read has gone from the adapter to the wire */
    void (*to_error)(struct qp *qp);
};

struct qp {
    struct object obj;
    const struct qp_ops *ops;
    struct qp *next_free;
    struct hca *hca;
    struct hca_port *port;
    struct pd *pd;
    struct cq *send_cq, *recv_cq;
    struct srq *srq;
    enum ibv_qp_type type;
    enum ibv_qp_state state;
    uint32_t qpn;
    uint64_t cookie;
    bool sq_sig_all;
    struct ibv_qp_attr attr;
    struct ibv_qp_cap cap;
    uint32_t mtu;
    uint16_t remote_lid;
    uint8_t sl;
    int vl; /* by the port's SL2VL when vl_changes was its changes */
    uint32_t vl_changes;
    bool alt_loaded;  /* the alternate path has been given */
    bool established; /* the program was told of a packet before RTS */
    bool draining;    /* SQD: requests before drain_to are finished, then the program is told */
    uint64_t drain_to;
    uint64_t paced_ps; /* the static rate lets the next packet go then */
    struct wqe *sq;
    uint32_t sq_cap;
    struct sf_sge *sq_sges; /* max_send_sge per slot */
    struct rq rq;
    struct requester req;
    struct responder resp;
    struct mr *windows;            /* bound type 2 windows */
    struct qp_cache_entry context; /* in the adapter's cache */
    uint32_t mcast_groups;         /* attached groups */
    bool in_ready;                 /* in a ready list of its port */
    bool answered;                 /* its last packet was an answer to a read */
    struct qp *next_ready;
    struct evtimer start; /* the first posted request becomes visible to the HCA */
};

struct wqe *qp_wqe(struct qp *qp, uint64_t number);
void qp_ask_turn(struct qp *qp);                                 /* at the adapter, if there is something to send */
void qp_complete_send(struct qp *qp, enum ibv_wc_status status); /* the oldest request, and advance */
void qp_complete_recv(struct qp *qp, struct sf_cqe *cqe, bool solicited);
void qp_check_drained(struct qp *qp);    /* a request is done: checks whether SQD waits for more */
void qp_release_requests(struct qp *qp); /* frees all requests posted to the send queue */
void qp_flush_send(struct qp *qp);
void qp_flush_recv(struct qp *qp);
void qp_to_error(struct qp *qp); /* state ERR, everything flushed */
/* Frees all state of transfers under way. */
void qp_requester_reset(struct qp *qp);
void qp_responder_reset(struct qp *qp);
void duty_drop(struct responder *r); /* the first */

/* The domain of the keys in receive requests. */
static inline const struct pd *qp_recv_pd(const struct qp *qp)
{
    return qp->srq ? qp->srq->pd : qp->pd;
}

/* PSNs are 24 bits wide and compare around the circle. */
#define PSN_MASK 0xffffffu
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

#endif
