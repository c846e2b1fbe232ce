/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: the only room that knows ibv_*. Devices and their active ports (rails), memory registration, queue pairs,
 * completions. The room's header.
 *
 * A rail is one active port of one HCA. It has one completion queue for everything, one shared receive queue whose
 * buffers are filled by all connected queue pairs, one UD queue pair for setting up connections and, where packets may
 * go as datagrams, two more for those, with a receive queue of their own.
 *
 * Completions: whoever posts work embeds a struct mr_wr; mr_verbs_poll() calls its done(). On an error the work of the
 * queue pair that is flushed comes back the same way, so that every struct mr_wr that was posted signaled is given back
 * exactly once. All functions are called with the library's lock held.
 */
#ifndef MRMPI_VERBS_H
#define MRMPI_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/packet.h"

#define MR_DEVICES_MAX MR_RAILS_MAX

struct ibv_context;
struct ibv_pd;
struct ibv_mr;
struct ibv_cq;
struct ibv_srq;
struct ibv_qp;
struct ibv_ah;

/* ---- completions ----------------------------------------------------------------------------------------------- */

enum mr_wc_kind { MR_WC_SENT, MR_WC_RECEIVED, MR_WC_LANDED /* write with immediate */ };

struct mr_wc {
    enum mr_wc_kind kind; /* only if error is 0 */
    int error;            /* 0 or negative errno */
    bool flushed;         /* the error is an earlier one's consequence */
    bool has_imm;
    uint32_t len; /* received bytes (UD: with the 40 bytes of GRH) */
    uint32_t imm; /* host order */
    const char *status; /* text of an error */
};

struct mr_wr {
    void (*done)(struct mr_wr *wr, const struct mr_wc *wc);
};

/* Something that has an end which is looked for from mr_verbs_poll(), until done says that it has come. */
struct mr_later {
    bool (*done)(struct mr_later *later);
    struct mr_later *next;
};

/* ---- devices and rails ----------------------------------------------------------------------------------------- */

struct mr_device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    unsigned index;
    char name[64];
    bool fatal; /* the device went away: nothing can be posted any more */
    uint32_t max_sge, max_qp_wr, max_srq_wr, max_cqe, max_mr;
    bool odp; /* all memory can be registered on demand, for RDMA over reliable connections */
    bool odp_datagrams; /* and datagrams are sent from it */
    uint8_t max_reads; /* RDMA reads that a queue pair can have outstanding, in either direction */
};

/* Queue pairs for datagrams: short ones must not wait behind long ones. */
#define MR_UD_LEVELS 2

/* Where a rail can be found: published by its owner, read by peers. Little endian on the wire as in memory. */
struct mr_rail_addr {
    uint8_t gid[16];
    uint32_t ud_qpn, ud_qkey;
    uint16_t lid;
    uint8_t lmc;
    uint8_t mtu;    /* enum ibv_mtu */
    uint8_t global; /* needs a GRH (link layer Ethernet) */
    uint8_t port;
    uint8_t gid_kind; /* RoCE: mr_gid_kind(), the same at both ends; 0: InfiniBand */
    uint8_t reads;    /* RDMA reads that one of its queue pairs answers at the same time */
    uint32_t rate_mbps;
    uint32_t packet_qpn[MR_UD_LEVELS]; /* where packets come as datagrams, with ud_qkey; 0: they do not */
    char device[32];
};

struct mr_rx;
struct mr_ud;
struct mr_pool;

struct mr_rail {
    unsigned index;
    struct mr_device *dev;
    uint8_t port;
    uint8_t gid_index;
    bool down;        /* the port is not active at present (seen by an event) */
    uint64_t down_ns; /* since when */
    uint32_t max_msg; /* longest write: of the port, or less */
    uint32_t rate_mbps;
    uint64_t until; /* by its rate it will have sent by then what it was given: in the units of route/sched.h, which uses it */
    struct mr_rail_addr addr;
    struct ibv_cq *cq;
    unsigned cq_room;      /* completions that may still be asked for without overrunning the queue */
    unsigned cq_room_all;  /* while nothing is posted */
    unsigned signal_every; /* at least one of so many requests of a queue pair is signaled */
    unsigned num_qps;
    uint64_t count[MR_RAIL_STAT_COUNT]; /* stays when the rail is closed */
    struct mr_rx *rx, *datagram_rx;
    struct mr_ud *ud;
    struct mr_udp *udp;
    struct mr_pool *pool; /* NULL: none of it has been needed yet */
};

/*
 * Count: by the thread that has the library's lock, while others look. An addition in memory is one instruction, and
 * three as an atomic load and store, which the path of a short message would have four times; a counter is read whole
 * either way.
 */
static inline void mr_rail_add(struct mr_rail *rail, enum mr_rail_stat s, uint64_t n)
{
#ifdef __SANITIZE_THREAD__
    __atomic_store_n(&rail->count[s], __atomic_load_n(&rail->count[s], __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
#else
    rail->count[s] += n;
#endif
}

struct mr_verbs {
    unsigned num_devices, num_rails;
    struct mr_device device[MR_DEVICES_MAX];
    struct mr_rail rail[MR_RAILS_MAX];
    unsigned num_memories; /* registered at present */
    size_t packet_max;
    bool datagrams;     /* packets may come as such */
    unsigned next_poll; /* the rail whose turn it is, */
    unsigned poll_streak; /* which has had something to tell so many times */
    struct mr_later *later;
    struct mr_rx *rx_due; /* receive queues that buffers are to be posted to, when there is time */
    bool answered;        /* something has been sent since the first of them came into this list */
};
extern struct mr_verbs mr_verbs;

struct mr_verbs_handlers {
    /* A packet came in over a connection; data is valid during the call. */
    void (*packet)(struct mr_rail *rail, const void *data, size_t len);
    /* A datagram that is a packet (imm NULL), or a part of one. */
    void (*segment)(struct mr_rail *rail, const void *data, size_t len, const uint32_t *imm);
    /* The peer's write with this immediate value has landed. */
    void (*landed)(struct mr_rail *rail, uint32_t imm);
    /* A datagram for connecting. */
    void (*datagram)(struct mr_rail *rail, const void *data, size_t len);
    /* The port went up or down, or the device is gone (rail->down, rail->dev->fatal). */
    void (*rail_changed)(struct mr_rail *rail);
    /* The subnet manager has given the port another LID, or another number of them (rail->addr). */
    void (*rail_moved)(struct mr_rail *rail);
};

/* rejects: may be NULL; says that somebody (fabricd) does not want this port used. */
typedef bool mr_rail_reject(const char *device, int port, void *arg);

/*
 * Open every device and every active port that the settings name. packet_max: bytes of the longest packet; datagrams:
 * packets may come as datagrams. -ENODEV (logged) when there is no port.
 */
int mr_verbs_open(const struct mr_verbs_handlers *handlers, size_t packet_max, bool datagrams, mr_rail_reject *reject,
                  void *arg);
void mr_verbs_close(void);

/*
 * A counter of rail i; of the time that the port has been down also what has passed of it now. Any thread may ask, at
 * any time; a rail that is not there has counted nothing.
 */
uint64_t mr_rail_counted(unsigned i, enum mr_rail_stat s);
/* Handle what has completed, on the first rail that has something. The number of completions; 0: idle. */
int mr_verbs_poll(void);
/* Read asynchronous events of all devices; costs system calls. */
void mr_verbs_check_events(void);
void mr_verbs_later(struct mr_later *later);
void mr_verbs_forget(struct mr_later *later);
/* Is the rail's port active now? Asks the device: for who explains a failure, before the event of it has come. */
bool mr_rail_is_active(const struct mr_rail *rail);

/*
 * How far each rail is from this process: smaller is nearer, as the firmware's table of NUMA distances has it. All the
 * same if nothing is known. Takes milliseconds.
 */
void mr_rails_distances(unsigned out[MR_RAILS_MAX]);

/* ---- datagrams -------------------------------------------------------------------------------------------------- */

#define MR_UD_MAX 1024 /* longest datagram */

/*
 * Send one datagram from rail to the UD queue pair at to. 0, or negative errno (-EAGAIN: too many in flight). Datagrams
 * get lost; nobody is told.
 */
int mr_ud_send(struct mr_rail *rail, const struct mr_rail_addr *to, uint8_t sl, const void *data, size_t len);

/* ---- packets as datagrams (udp.c) ------------------------------------------------------------------------------ */

#define MR_SEGMENTS_MAX 64 /* datagrams that one packet may be cut into */

/* Where datagrams go. */
struct mr_ud_to {
    struct ibv_ah *ah;
    uint32_t qpn, qkey;
};

/* The queue pair of a rail for datagrams of this level; NULL: there is none, or it does not work now. */
struct mr_qp *mr_udp_qp(struct mr_rail *rail, unsigned level);
int mr_udp_address(struct mr_rail *rail, const struct mr_rail_addr *to, uint32_t qpn, uint8_t sl, uint8_t path,
                   struct mr_ud_to *out);
void mr_udp_forget(struct mr_ud_to *to);
/* Bytes of the longest datagram between two ports. */
uint32_t mr_udp_mtu(const struct mr_rail_addr *a, const struct mr_rail_addr *b);

/* ---- large messages as datagrams (pool.c) ---------------------------------------------------------------------- */

/*
 * Each rail has a pool of queue pairs for this, made when they are needed (MRMPI_UD_POOL, MRMPI_UD_POOL_DEPTH). Who has
 * taken one posts receives, each for one place of its own memory, and tells the sender number and key of the queue
 * pair. Datagrams fill the places in the order in which they come.
 */
struct mr_pool_qp;

struct mr_pool_events {
    /* A datagram of len bytes lies in this place, counted from 0 in the order of posting. */
    void (*arrived)(struct mr_pool_qp *q, unsigned place, uint32_t imm, uint32_t len);
    /* After mr_pool_stop(), or an error: nothing comes through it any more, and its memory is the owner's again. */
    void (*stopped)(struct mr_pool_qp *q);
};

struct mr_pool_qp {
    struct mr_rail *rail;
    uint32_t qpn, qkey;
    uint16_t turn; /* how often it has been cleared for a sender; wraps. Its owner's */
    const struct mr_pool_events *events;
    void *owner;
    unsigned posted, back; /* receives, of those that count */
};

/* Make queue pairs until so many are free, if that can be. Returns how many are. */
unsigned mr_pool_prepare(struct mr_rail *rail, unsigned n);
unsigned mr_pool_num(const struct mr_rail *rail);   /* that there are */
unsigned mr_pool_depth(const struct mr_rail *rail); /* receives of each: MRMPI_UD_POOL_DEPTH, if the device can */
/* One that is free. NULL: there is none. */
struct mr_pool_qp *mr_pool_take(struct mr_rail *rail, const struct mr_pool_events *events, void *owner);
/*
 * Post receives for [at, at + len), one for each size bytes; the last place may be shorter than the datagram that comes
 * there, whose end is lost then. No more than mr_pool_depth() at the same time. 0 or negative errno: some of them
 * may be posted all the same.
 */
int mr_pool_post(struct mr_pool_qp *q, void *at, size_t len, uint32_t size, uint32_t lkey);
/* Give up what is posted. stopped() comes out of mr_verbs_poll(). */
void mr_pool_stop(struct mr_pool_qp *q);
/*
 * None of its receives is posted any more: places are counted from 0 again. Unless it is clean, which means that
 * nothing can be under way to it, it has a new key from now on, and the adapter drops what was sent under the old one.
 * 0 or negative errno: it is no more.
 */
int mr_pool_again(struct mr_pool_qp *q, bool clean);
/* The same, then give it back. */
void mr_pool_give(struct mr_pool_qp *q, bool clean);

/* ---- queue pairs ----------------------------------------------------------------------------------------------- */

struct mr_qp;

struct mr_qp_events {
    /* So many sends, those posted first, have arrived. */
    void (*confirmed)(struct mr_qp *qp, unsigned sends);
    /* Called once, at the first request that failed, unless mr_qp_abort() came before it. */
    void (*failed)(struct mr_qp *qp, const struct mr_wc *wc);
    /* After mr_qp_abort(): all that was posted has come back. */
    void (*drained)(struct mr_qp *qp);
};

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
    uint32_t max_inline;
    unsigned unsignaled_left;  /* so many requests may follow before one must be signaled; 0 after an error, too */
    unsigned unsignaled;       /* posted since the last signaled one */
    unsigned unsignaled_sends; /* those of them that are sends */
    unsigned depth, room;      /* of the send queue; requests that may still be posted */
    int error;
    uint32_t qpn, qkey;
    enum mr_qp_type type;
    struct mr_rx *rx; /* a receive queue of its own; NULL: the rail's */
    enum mr_qp_state state;
    const struct mr_qp_events *events;
    void *owner;
    struct mr_wr marker; /* the last request of a queue pair that is given up */
    struct mr_wr unsignaled_failed; /* comes back for requests that were to come back only if they fail */
    struct mr_later later;
};

/* times: so many times MRMPI_SQ_DEPTH requests fit into its send queue, if the device can. 0 or negative errno. */
int mr_qp_create(struct mr_rail *rail, enum mr_qp_type type, unsigned times, struct mr_qp *qp,
                 const struct mr_qp_events *events, void *owner);
/* UD: ready to send. */
int mr_qp_bring_up(struct mr_qp *qp);
/* UD: after it has drained, it works again under the same number. */
int mr_qp_revive(struct mr_qp *qp);
/* Bring it up against the peer's queue pair; path: LID path bits on both sides. */
int mr_qp_connect(struct mr_qp *qp, const struct mr_rail_addr *to, uint32_t remote_qpn, uint32_t local_psn,
                  uint32_t remote_psn, uint8_t sl, uint8_t path);
/* Give up: whatever is posted comes back flushed, then events->drained is called, out of mr_verbs_poll(). */
void mr_qp_abort(struct mr_qp *qp);
/*
 * After it has drained, to learn whether the peer's end is still there. keep: *to takes it over, with other events and
 * another owner; *from is as before mr_qp_create(). psns: the numbers of the packets that it would have sent and
 * received next. again: bring it up once more against the same queue pair; its next request has the number send. It
 * takes nothing in: receive is what the peer sends next, or a little before that.
 */
void mr_qp_keep(struct mr_qp *from, struct mr_qp *to, const struct mr_qp_events *events, void *owner);
/*
 * Instead of mr_qp_destroy() for one that may have received, and has posted nothing: *qp is as before mr_qp_create() at
 * once, but what has been acknowledged to the peer is still handed up. all_gone: at the end, nothing is.
 */
void mr_qp_retire(struct mr_qp *qp);
void mr_qps_all_gone(void);
int mr_qp_psns(struct mr_qp *qp, uint32_t *send, uint32_t *receive);
int mr_qp_again(struct mr_qp *qp, uint32_t send, uint32_t receive);
/* Its room of the completion queue is given back. What is still posted never comes back: for those that have drained,
 * and the end. */
void mr_qp_destroy(struct mr_qp *qp);

/*
 * A signaled request. It stands for the unsignaled ones before it: mr_tx_done() gives their room back, and every
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
/* One datagram of one or two pieces; inline if it is short. imm: may be NULL. */
int mr_qp_send_to(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *piece, unsigned pieces,
                  const uint32_t *imm, struct mr_tx *tx);
/*
 * Datagrams of size bytes, the last one perhaps shorter, MR_QP_RUN at most; imm is that of the first and counts up.
 * There is room for them. The last one is signaled.
 */
#define MR_QP_RUN 16
int mr_qp_send_run(struct mr_qp *qp, const struct mr_ud_to *to, const struct mr_piece *all, uint32_t size, uint32_t imm,
                   struct mr_tx *tx);
/* RDMA write; with imm the receiver is told. */
int mr_qp_write(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
                const uint32_t *imm, struct mr_tx *tx);
/*
 * RDMA write into memory that the peer polls (link/ring.c); inline if it fits. packet: it counts as a send, which
 * mr_qp_events.confirmed tells.
 */
int mr_qp_put(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey, bool packet,
              struct mr_tx *tx);
/* RDMA read; who was read is not told. */
int mr_qp_read(struct mr_qp *qp, void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
               struct mr_tx *tx);
/* RDMA reads that a queue pair of the device answers, or has outstanding, at the same time. */
uint8_t mr_qp_reads(const struct mr_device *dev);
void mr_tx_done(struct mr_tx *tx, const struct mr_wc *wc);

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* Memory that every device knows; keys are by rail. */
struct mr_memory {
    struct ibv_mr *mr[MR_DEVICES_MAX];
};

enum mr_access { MR_ACCESS_SOURCE, MR_ACCESS_TARGET }; /* read by the HCA; written by it, from here or from far */

int mr_memory_register(void *addr, size_t len, enum mr_access access, struct mr_memory *out);
/* All that is mapped when it is used, on demand; for devices that have that (odp.h). */
int mr_memory_register_all(enum mr_access access, struct mr_memory *out);
void mr_memory_deregister(struct mr_memory *m);
uint32_t mr_memory_lkey(const struct mr_memory *m, const struct mr_rail *rail);
uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail);

#endif
