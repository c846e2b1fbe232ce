/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host channel adapters and the verbs objects that live in them. An object belongs to the process that made it
 * (struct object is its first member) and to the HCA of its context. Queue pairs are type-stable: their memory is
 * reused only for queue pairs, so that the timers in it may still be queued when one is gone.
 */
#ifndef SIMFAB_HCA_H
#define SIMFAB_HCA_H

#include <infiniband/verbs.h>

#include "simfab/engine/bus.h"
#include "simfab/engine/event_pipe.h"
#include "simfab/engine/link.h"
#include "simfab/engine/qp_cache.h"
#include "simfab/proto.h"

struct proc;
struct qp;

enum object_kind { OBJ_CTX = 1, OBJ_PD, OBJ_MR, OBJ_CHANNEL, OBJ_CQ, OBJ_SRQ, OBJ_QP, OBJ_AH, OBJ_MW };
#define OBJECT_KINDS (OBJ_MW + 1)

struct object {
    enum object_kind kind;
    uint32_t handle;
    uint32_t uses; /* by other objects: it cannot be destroyed before them */
    struct proc *proc;
    struct ctx *ctx;
};

struct ctx {
    struct object obj;
    struct hca *hca;
    struct event_pipe events;
    struct ctx *next; /* of the HCA */
    bool lost;        /* the HCA has been without power since it was opened: its queue pairs are gone */
};

struct pd {
    struct object obj;
};

/* What a key stands for: a memory region, or a memory window (mw.c), which is part of a region once it is bound. */
struct mr {
    struct object obj;
    struct pd *pd;
    uint64_t addr, length, iova;
    uint32_t access, key;
    bool null; /* reads as zeros, swallows what is written */
    /* windows */
    enum ibv_mw_type window; /* 0: a region */
    struct mr *region;       /* that it is bound to; NULL: not bound */
    struct qp *qp;           /* type 2: whose packets alone may use it */
    struct mr *next_of_qp;
};

struct channel {
    struct object obj;
    struct event_pipe events;
};

enum cq_arm { CQ_UNARMED, CQ_ARMED_ANY, CQ_ARMED_SOLICITED };

struct cq {
    struct object obj;
    struct channel *channel;
    uint64_t cookie;
    uint32_t offset, slots, cqe; /* of the ring in the arena */
    uint64_t produced;
    enum cq_arm armed;
    uint64_t solicited; /* entries produced up to the last that a solicited-only event is for */
    bool overrun;       /* an entry had to be dropped: no more come */
    /* moderation: an event for so many entries, or after so long */
    uint32_t event_count, event_period_us, pending;
    uint64_t event_due_ps;
};

struct rwqe {
    uint64_t wr_id, ready_ps;
    uint32_t num_sge;
    struct sf_sge *sge;
};

/* Posted receive requests, of a queue pair or shared. */
struct rq {
    struct rwqe *slot;
    struct sf_sge *sges; /* max_sge per slot */
    uint32_t cap, max_sge;
    uint64_t posted, taken;
};

struct srq {
    struct object obj;
    struct pd *pd;
    struct rq rq;
    uint32_t limit;
    uint64_t cookie;
};

struct ah {
    struct object obj;
    struct pd *pd;
    struct ibv_ah_attr attr;
};

/* One posted send request. */
struct wqe {
    uint64_t wr_id, ready_ps;
    uint32_t opcode, flags; /* enum ibv_wr_opcode, enum sf_send_flags */
    uint32_t imm, rkey, wqe_index;
    uint64_t remote_addr, compare_add, swap;
    uint32_t remote_qpn, remote_qkey;
    struct ibv_ah_attr av; /* UD: the address as it was when posted */
    uint32_t length, num_sge;
    struct sf_sge *sge;
    struct chunk *inline_data;
    struct sf_bind bind; /* IBV_WR_BIND_MW */
    /* once it is being sent */
    bool started;
    uint32_t first_psn, packets; /* packets: PSNs that it takes */
    uint32_t status;             /* enum ibv_wc_status: what it completes with when its turn comes */
};

/* The responder's duties in the order of their PSNs: acknowledges, and reads and atomics to answer. */
enum duty_kind { DUTY_ACK, DUTY_NAK, DUTY_RNR_NAK, DUTY_READ, DUTY_ATOMIC };

struct duty {
    struct duty *next;
    enum duty_kind kind;
    uint32_t psn, msn;
    uint8_t nak, rnr_timer;
    uint64_t ready_ps;
    uint64_t raddr, value; /* value: what an atomic found */
    uint32_t rkey, length, sent, packets;
};

/* Packets received in order and not yet written to memory: they are parts of one chunk, written at once. */
struct landing {
    struct chunk *chunk;
    uint32_t off, len, at; /* chunk->data[off .. off + len) goes to byte at of the message */
};

/* Add p's payload at byte at of the message. False: it does not continue what is there; flush first. */
bool landing_add(struct landing *l, struct packet *p, uint32_t at);
void landing_clear(struct landing *l);
/* What has come of the message that is under way goes to memory. False: it cannot. */
bool landing_flush(struct qp *qp);

#define ATOMIC_REPLAYS 16u

struct requester {
    uint32_t next_psn;        /* of the next new request */
    uint32_t una_psn;         /* the oldest not yet acknowledged */
    uint64_t head, cur, tail; /* request numbers: oldest incomplete, being sent, next to be posted */
    uint32_t cur_packet;
    uint32_t reads; /* reads and atomics on their way */
    uint32_t retries, rnr_retries;
    struct landing landing; /* of the read that is being answered */
    bool rnr_wait, halted;  /* halted: an error waits for its turn */
    bool gap_seen; /* the oldest was asked for again because a later answer came: others like it say nothing new */
    struct evtimer timeout, rnr;
    struct evtimer glance; /* while timeout is set: the process looks whether anything has come */
    uint64_t waits_since_ps; /* timeout was set then */
    struct chunk *chunk; /* what was read from memory last: of request chunk_wqe, from chunk_at */
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

struct qp {
    struct object obj;
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
    bool established; /* the program was told that a packet came before it said RTS */
    bool draining;    /* SQD: requests before drain_to are finished, then the program is told */
    uint64_t drain_to;
    uint64_t paced_ps; /* the static rate lets the next packet go then */
    struct wqe *sq;
    uint32_t sq_cap;
    struct sf_sge *sq_sges; /* max_send_sge per slot */
    struct rq rq;
    struct requester req;
    struct responder resp;
    struct mr *windows;            /* of type 2 that are bound through it */
    struct qp_cache_entry context; /* in the adapter's cache */
    uint32_t mcast_groups;         /* that it is attached to */
    bool in_ready;                 /* in a ready list of its port */
    bool answered;                 /* its last packet was an answer to a read */
    struct qp *next_ready;
    struct evtimer start; /* the first posted request becomes visible to the HCA */
};

struct ready_list {
    struct qp *first, **last;
};

/* What emitting a packet costs. */
struct tx_cost {
    bool first;      /* a request had to be fetched */
    bool inlined;    /* its data came with the doorbell */
    uint32_t memory; /* bytes read from memory */
};

struct hca_port {
    struct hca *hca;
    struct port *port;
    bool was_active;
    uint64_t tx_busy_ps, rx_busy_ps, last_landed_ps;
    bool tx_reading;        /* the packet in hand waits for its request or its data: no other is begun */
    struct tx_cost tx_cost; /* of that packet */
    uint64_t tx_behind_ps;  /* what its request takes beyond the engine's time for it */
    uint64_t tx_owed_ps;    /* for acknowledges that came meanwhile */
    uint64_t last_wire_ps[FABRIC_VLS];
    uint32_t rx_waiting; /* packets whose turn at the receive engine is an event */
    struct evtimer tx;
    struct ready_list ready[FABRIC_VLS];
    uint32_t ready_mask;
    struct {
        uint32_t packets, bytes; /* made and not yet on the wire */
    } pipe[FABRIC_VLS];
    struct vlarb_state arb;
};

struct hca {
    struct sim *sim;
    struct node *node;
    uint32_t slow_milli;               /* by a fault: what comes in takes so many thousandths of its time */
    struct bus *bus, own_bus;          /* bus: its own, or that of the first adapter on it */
    struct memory *memory, own_memory; /* the same for the host's memory */
    struct dma reader, writer;
    struct qp_cache contexts_held;
    struct hca_port *ports; /* num_ports + 1 */
    struct qp **qp_table;   /* by number - HCA_FIRST_QPN */
    uint32_t qp_table_size, next_qpn;
    struct mr **mr_table; /* by key >> 8 */
    uint32_t mr_table_size, mr_hint;
    uint8_t mr_tag;
    struct qp *free_qps;
    struct ctx *contexts;
    uint32_t objects[OBJECT_KINDS]; /* how many of each, of all processes */
    struct mcast_group *mcast_groups; /* mcast.c */
    uint32_t num_mcast_groups;
};

#define HCA_FIRST_QPN 64u

/* ---- hca.c: the adapter itself */
void hcas_init(struct sim *s);
void hcas_fini(struct sim *s);
/* A packet of so many bytes left the output queue: room for another. */
void hca_lane_drained(struct port *p, unsigned vl, uint32_t wire_bytes);
void hca_packet_arrived(struct port *p, struct packet *pkt); /* the last bit has come in */
void hca_port_changed(struct port *p);
void hca_slow(struct hca *h, uint32_t factor_milli); /* 1000: as the model says */
/* The queue pair has something to send: it takes its turn in its lane. */
void hca_qp_ready(struct qp *qp);
void hca_qp_forget(struct qp *qp); /* take it out of the ready lists */
/* Send a packet that costs no memory access (an acknowledge) at once. */
void hca_send_control(struct qp *qp, struct packet *p);
bool hca_owns_lid(const struct port *p, uint16_t lid);
struct qp *hca_find_qp(struct hca *h, uint32_t qpn);

/* ---- qp.c, qp_state.c: creating, state machine, posting */
int qp_create(struct ctx *ctx, const struct sf_create_qp *r, struct pd *pd, struct cq *scq, struct cq *rcq,
              struct srq *srq, struct qp **out);
void qp_destroy(struct qp *qp);
void qp_clear(struct qp *qp); /* forget all that was posted and all that is under way */
int qp_modify(struct qp *qp, int mask, const struct ibv_qp_attr *a);
bool ah_attr_valid(const struct hca *h, const struct ibv_ah_attr *a);
void qp_take_path(struct qp *qp, const struct ibv_ah_attr *a, uint8_t port);
void qp_check_drained(struct qp *qp); /* a request is done: was it the last that SQD waits for? */
void qp_query(const struct qp *qp, struct ibv_qp_attr *a, struct ibv_qp_init_attr *init);
int qp_post_send(struct qp *qp, const struct sf_cmd *cmd, const struct sf_send *s, const void *data, struct ah *ah);
void qp_to_error(struct qp *qp); /* state ERR, everything flushed */
void qp_flush_send(struct qp *qp);
void qp_flush_recv(struct qp *qp);
void qp_complete_send(struct qp *qp, enum ibv_wc_status status); /* the oldest request, and advance */
void qp_complete_recv(struct qp *qp, struct sf_cqe *cqe, bool solicited);
struct wqe *qp_wqe(struct qp *qp, uint64_t number);
int qp_lane(struct qp *qp);
/* Make the next packet; NULL if there is nothing to send now. *more: it wants another turn. */
struct packet *qp_emit(struct qp *qp, struct tx_cost *cost, bool *more);
bool qp_wants_turn(struct qp *qp);
void qp_received(struct qp *qp, struct packet *p);

/* ---- path.c: automatic path migration, static rates */
void qp_migrate(struct qp *qp); /* to the alternate path, and tell the program */
bool qp_listens(const struct qp *qp, const struct hca_port *hp);
/* Does the packet come by a path of the connection? May migrate, or complete the arming. */
bool qp_path_accepts(struct qp *qp, const struct packet *p);
void qp_pace(struct qp *qp, const struct ibv_ah_attr *a, const struct packet *p);

/* ---- rq.c */
void rq_init(struct rq *rq, uint32_t cap, uint32_t max_sge);
void rq_fini(struct rq *rq);
int rq_post(struct rq *rq, const struct sf_cmd *cmd, const struct sf_sge *sge);
int rq_resize(struct rq *rq, uint32_t cap, uint32_t max);
void srq_check_limit(struct srq *srq);
/* Take the oldest request that the HCA can see at now; sge is copied to *store. False: none. */
bool rq_take(struct rq *rq, uint64_t now, struct rwqe *out, struct sf_sge *store);
/* The domain whose keys receive requests have. */
static inline const struct pd *qp_recv_pd(const struct qp *qp)
{
    return qp->srq ? qp->srq->pd : qp->pd;
}
bool qp_take_recv(struct qp *qp, struct rwqe *out, struct sf_sge *store);

/* ---- rc_request.c: the sending side of RC, and the packets of a message for UC too */
void rc_init(struct qp *qp);
bool rc_can_emit(struct qp *qp);
struct packet *rc_emit(struct qp *qp, struct tx_cost *cost);
void rc_handle_response(struct qp *qp, struct packet *p);
void rc_requester_reset(struct qp *qp);
/* A packet of the queue pair's connection; its dlid is 0 if the service level has no lane (to be discarded). */
struct packet *connected_packet(struct qp *qp, enum packet_op op, uint32_t psn, uint32_t payload);
/* Begin a request: check it, give it its PSNs. Sets its status if it cannot be done. */
void request_start(struct qp *qp, struct wqe *w);
/* Packet number index of a send or a write. NULL: the memory is not there (status set). */
struct packet *request_data_packet(struct qp *qp, uint64_t number, uint32_t index, struct tx_cost *cost);

/* ---- receive.c: what comes in for RC and UC, and the responder of RC */
void rc_duties_run(void *qp, uint64_t arg);
void rc_response_left(struct qp *qp); /* one response to a read has gone from the adapter to the wire */
bool rc_duty_needs_turn(struct qp *qp);
struct packet *rc_emit_duty(struct qp *qp, struct tx_cost *cost);
void rc_handle_request(struct qp *qp, struct packet *p);
void rc_acknowledge_now(struct qp *qp); /* what it has taken already */
void rc_responder_reset(struct qp *qp);

enum take_result {
    TAKE_OK,
    TAKE_NO_RECV,
    TAKE_BAD_REQUEST,
    TAKE_NO_ACCESS,
    TAKE_TOO_LONG,
    TAKE_BAD_KEY,
    TAKE_NO_MEMORY
};
/* A packet of a send or a write, in its turn: place the data, complete the message. */
enum take_result take_data(struct qp *qp, struct packet *p);

/* ---- uc.c, ud.c */
struct packet *uc_emit(struct qp *qp, struct tx_cost *cost);
void uc_handle(struct qp *qp, struct packet *p);
/* Give the packet a global route header. */
void packet_route_globally(struct packet *p, const struct qp *qp, const struct ibv_ah_attr *a);
struct packet *ud_emit(struct qp *qp, struct tx_cost *cost);
void ud_handle(struct qp *qp, struct packet *p);

/* PSNs are 24 bits wide and compare around the circle. */
#define PSN_MASK 0xffffffu
static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

/* ---- mem.c: protection and movement of memory */
struct mr *mr_register(struct pd *pd, const struct sf_reg_mr *r, int *err);
struct mr *mr_null(struct pd *pd, int *err);
int mr_reregister(struct mr *mr, struct pd *pd, const struct sf_rereg_mr *r);
void mr_deregister(struct mr *mr);
struct mr *mr_add_key(struct pd *pd, int *err); /* a zeroed object with a key of its own, mw.c */
struct mr *mr_of_key(const struct hca *h, uint32_t key);
/* What the two take of the caller's time: pages are pinned and entered into the adapter's tables one by one. */
uint64_t mr_register_ps(const struct mr *mr);
uint64_t mr_deregister_ps(const struct mr *mr);
/* What a peer's key lets it do: the region or window if [addr, addr + len) is in it, with all of the access. */
struct mr *mr_check(const struct qp *qp, uint32_t key, uint64_t addr, uint64_t len, uint32_t access);
/* Are all parts of a list in regions of the domain, with the access (0: reading)? */
bool sge_check(const struct qp *qp, const struct pd *pd, const struct sf_sge *sge, uint32_t n, uint32_t access);
/*
 * len bytes of the message described by the list, from offset on; keys and bounds of the parts that are touched are
 * checked. False: the memory is not there or not ours.
 */
bool mem_gather(const struct qp *qp, const struct sf_sge *sge, uint32_t n, uint32_t offset, void *to, uint32_t len);
bool mem_scatter(const struct qp *qp, const struct pd *pd, const struct sf_sge *sge, uint32_t n, uint32_t offset,
                 const void *from, uint32_t len);
bool mem_read(const struct mr *mr, uint64_t addr, void *to, uint32_t len);
bool mem_write(const struct mr *mr, uint64_t addr, const void *from, uint32_t len);

/* ---- mw.c: memory windows */
struct mr *mw_alloc(struct pd *pd, enum ibv_mw_type type, int *err);
void mw_free(struct mr *w);
/* Requests of a send queue. False: it may not be done. */
bool mw_bind(struct qp *qp, const struct sf_bind *b);
bool mw_invalidate(struct qp *qp, uint32_t key);
void mw_forget_qp(struct qp *qp);

/* ---- cq.c: completions and events */
int cq_create(struct ctx *ctx, const struct sf_create_cq *r, struct channel *ch, struct cq **out);
int cq_resize(struct cq *cq, uint32_t cqe);
void cq_moderate(struct cq *cq, uint32_t count, uint32_t period_us);
void cq_destroy(struct cq *cq);
void cq_push(struct cq *cq, const struct sf_cqe *cqe, bool solicited);
void cq_arm(struct cq *cq, bool solicited_only);
void async_event(struct ctx *ctx, enum ibv_event_type ev, uint32_t port, uint64_t cookie);
void async_forget(struct ctx *ctx, uint64_t cookie); /* its object is gone: what was not read yet is not read */

#endif
