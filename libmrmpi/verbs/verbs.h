/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs: the only subsystem that calls ibv_*. Its interface for conn/, net/ and mrrun: - devices and rails of this
 * process, opened and closed together, polled together; - queue pairs, for callers that need more of one than a link
 * offers (probes, guards), and pools of queue pairs; - links to a peer, and the packets that links send; - registered
 * memory, from a cache or on demand.
 *
 * Structs are open, and fast: the members that a short message reads, and inline functions over them. A member without
 * a note about its writer is written here only. Callers hold the library's lock. Upcalls come out of mr_verbs_poll()
 * and mr_verbs_check_events() only.
 */
#ifndef MRMPI_VERBS_H
#define MRMPI_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/kept.h"
#include "libmrmpi/base/least.h"
#include "libmrmpi/base/packet.h"
#include "libmrmpi/base/wire.h"

struct ibv_ah;
struct ibv_context;
struct ibv_cq;
struct ibv_mr;
struct ibv_pd;
struct ibv_qp;
struct mr_qp;

/* ---- partitions (pkey.c) ----------------------------------------------------------------------------------------- */

/*
 * Partitions (IBTA volume 1, 10.9). A port has a table of P_Keys, in any order and with holes. The 15 low bits of a key
 * are the partition, the highest bit is full membership; a partition of 0 is an empty entry. Two ports can talk in a
 * common partition if at least one is a full member. A queue pair has the index of one entry. The adapter drops a
 * packet whose key does not match that entry, without a report to the program. Pure.
 */
#define MR_PKEY_FULL      0x8000u
#define MR_PKEY_PARTITION 0x7fffu
#define MR_PKEY_DEFAULT   0xffffu /* of a port without a table: the default partition, as a full member */

#define MR_PARTITIONS_MAX 16 /* of a rail: each takes a queue pair, and a place in the rank's address */
#define MR_PKEYS_MAX      (MR_PARTITIONS_MAX - 1) /* of a port in use; the rail keeps one in reserve */

/* An entry of a port's table. */
struct mr_pkey {
    uint16_t key, index;
};

static inline uint16_t mr_pkey_partition(uint16_t key)
{
    return key & MR_PKEY_PARTITION;
}

/* Can a port with one key talk to a port with the other? */
static inline bool mr_pkey_match(uint16_t a, uint16_t b)
{
    return mr_pkey_partition(a) && mr_pkey_partition(a) == mr_pkey_partition(b) && ((a | b) & MR_PKEY_FULL);
}

/*
 * The partitions of a table of n keys, in the order of the choice: the preferred partition (0: none), the default
 * partition, then by number. The order is thus the same at all ports, however the subnet manager has filled their
 * tables. A partition with a full and a limited key counts with the full key. Returns their number; partitions beyond
 * MR_PKEYS_MAX are not in out.
 */
unsigned mr_pkeys_of_table(const uint16_t *table, unsigned n, uint16_t preferred, struct mr_pkey out[MR_PKEYS_MAX]);

/*
 * Our key for a connection to a port with their keys: among the partitions in which both can talk, in our order, number
 * turn, counted round. 0: there is none.
 */
uint16_t mr_pkey_choose(const uint16_t *ours, unsigned num_ours, const uint16_t *theirs, unsigned num_theirs,
                        unsigned turn);

/* "0x7fff (limited), 0x8011"; "none". Returns out. */
const char *mr_pkeys_text(const uint16_t *key, unsigned n, char *out, size_t size);

/* ---- completions (cq.c, later.c) --------------------------------------------------------------------------------- */

/*
 * Completions. A poster of work embeds a struct mr_wr; mr_verbs_poll() calls its done(). After an error the flushed
 * work of the queue pair comes back the same way, so every struct mr_wr that was posted signaled is given back exactly
 * once.
 */
struct ibv_wc;

struct mr_wc {
    int error;                /* 0 or negative errno */
    bool flushed;             /* the error follows from an earlier error */
    const char *status;       /* text of an error */
    const struct ibv_wc *raw; /* for the files of this folder */
};

struct mr_wr {
    void (*done)(struct mr_wr *wr, const struct mr_wc *wc);
};

/* Something with an end that mr_verbs_poll() waits for, until done returns that the end has come. */
struct mr_later {
    bool (*done)(struct mr_later *later);
    struct mr_later *next;
};
void mr_verbs_later(struct mr_later *later);
void mr_verbs_forget(struct mr_later *later);

/* ---- devices and rails (device.c) -------------------------------------------------------------------------------- */

/*
 * Devices and rails. A device is an HCA, opened once. A rail is one of its active ports. It has one completion queue
 * for everything, one shared receive queue whose buffers are filled by all connected queue pairs, one UD queue pair for
 * setting up connections and, where packets may go as datagrams, two more for those, with a receive queue of their own.
 */
#define MR_DEVICES_MAX MR_RAILS_MAX

/* Keys of a rail's memory carry the rail's life, in so many bits: keys of other lives are not used. */
#define MR_RAIL_LIFE_BITS 4
#define MR_RAIL_LIVES     (1u << MR_RAIL_LIFE_BITS)
_Static_assert(MR_RAIL_LIFE_BITS *MR_RAILS_MAX <= 32, "the lives of all rails fit into a word");

/* The life of one rail among the lives of all. */
static inline unsigned mr_life_of(uint32_t lives, unsigned rail)
{
    return lives >> rail * MR_RAIL_LIFE_BITS & (MR_RAIL_LIVES - 1);
}

struct mr_device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    unsigned index;
    char name[64];
    bool fatal;                      /* the device went away: nothing can be posted any more, until it is opened anew */
    uint64_t lost_ns, reopen_ns;     /* fatal: since when, and when it is sought again */
    struct mr_device_before *before; /* earlier openings: registrations with them still exist */
    uint32_t max_sge, max_qp_wr, max_srq_wr, max_cqe, max_mr;
    bool odp;           /* all memory can be registered on demand, for RDMA over reliable connections */
    bool odp_datagrams; /* including sends of datagrams from it */
    uint8_t max_reads;  /* RDMA reads that a queue pair can have outstanding, in either direction */
    bool atomics;       /* has compare and swap, atomic among its own operations */
};

/* Queue pairs for datagrams: short datagrams must not wait behind long ones. */
#define MR_UD_LEVELS 2

/* Where a rail can be found: published by its owner, read by peers. Little endian on the wire as in memory. */
struct mr_rail_addr {
    uint8_t gid[16];
    uint32_t ud_qkey; /* of all its queue pairs for datagrams */
    uint16_t lid;
    uint8_t lmc;
    uint8_t mtu;    /* enum ibv_mtu */
    uint8_t global; /* needs a GRH (link layer Ethernet) */
    uint8_t port;
    uint8_t gid_kind; /* RoCE: mr_gid_kind(), the same at both ends; 0: InfiniBand */
    uint8_t reads;    /* RDMA reads that one of its queue pairs answers at the same time */
    uint32_t rate_mbps;
    char device[32];
};

/* A partition of a rail: published with its address. */
struct mr_partition {
    uint16_t key; /* the rail's P_Key, with its membership; 0: the reserve */
    uint8_t rail, pad;
    uint32_t ud_qpn; /* where datagrams for connecting come in this partition */
};

/*
 * The same of a rail here. A former partition of the rail keeps its place, and its queue pairs. The last is the
 * reserve: peers know its queue pair, which goes to the first partition that the port gets later.
 */
struct mr_rail_partition {
    uint16_t number;    /* 15 bits; 0: the unused reserve */
    bool late;          /* was the reserve */
    struct mr_pkey now; /* the entry of the port's table; key 0: there is none at present, and index is the last one */
    uint32_t ud_qpn;
};

struct mr_rx;
struct mr_ud;
struct mr_ud_pool;

struct mr_rail {
    unsigned index;
    struct mr_device *dev;
    uint8_t port;
    uint8_t gid_index;
    uint8_t life;     /* how often its device was opened anew; wraps at MR_RAIL_LIVES */
    bool down;        /* the port is not active at present (seen by an event) */
    uint64_t down_ns; /* since when */
    uint32_t max_msg; /* longest write: of the port, or less */
    uint32_t rate_mbps;
    uint32_t sick;  /* reduction of its weight by fabricd's judgement of its health, of MR_WEIGHT_MAX (net/health.c) */
    uint64_t until; /* the time when its queue will have been sent, by its rate: in the units of conn/route/sched.h,
                       which uses it */
    struct mr_rail_addr addr;
    struct ibv_cq *cq;
    unsigned emptied;            /* polls that have emptied it, so that requests under way were under way then; wraps */
    struct mr_rail *next_polled; /* of rails with working devices, in a ring; NULL: not among them */
    unsigned cq_room;            /* completions that may still be asked for without overrunning the queue */
    unsigned cq_room_all;        /* while nothing is posted */
    unsigned signal_every;       /* at least one in this number of requests of a queue pair is signaled */
    unsigned num_qps;
    uint64_t count[MR_RAIL_STAT_COUNT]; /* stays when the rail is closed */
    uint16_t wished_pkey;               /* by setting or fabricd; 0: none */
    unsigned num_partitions;            /* in the order of the choice (mr_pkeys_of_table) */
    struct mr_rail_partition partition[MR_PARTITIONS_MAX];
    bool keyless_told; /* already logged: some peer shares no partition with it */
    struct mr_rx *rx, *datagram_rx;
    struct mr_ud *ud;
    struct mr_udp *udp;
    struct mr_ud_pool *pool; /* NULL: not needed yet */
};

/* Its partition with the number of this P_Key; NULL: never a partition of the rail. Of 0: the reserve. */
static inline const struct mr_rail_partition *mr_rail_partition(const struct mr_rail *rail, uint16_t key)
{
    for (unsigned i = 0; i < rail->num_partitions; i++)
        if (rail->partition[i].number == mr_pkey_partition(key))
            return &rail->partition[i];
    return NULL;
}

/* Its P_Keys at present, in the order of choice. Returns how many. */
static inline unsigned mr_rail_keys(const struct mr_rail *rail, uint16_t out[MR_PARTITIONS_MAX])
{
    unsigned n = 0;

    for (unsigned i = 0; i < rail->num_partitions; i++)
        if (rail->partition[i].now.key)
            out[n++] = rail->partition[i].now.key;
    return n;
}

/*
 * Counts: by the thread with the library's lock, while others read. An addition in memory is one instruction, and three
 * as an atomic load and store, four times on the path of a short message; a counter is read as a whole either way.
 */
static inline void mr_rail_add(struct mr_rail *rail, enum mr_rail_stat s, uint64_t n)
{
#ifdef __SANITIZE_THREAD__
    __atomic_store_n(&rail->count[s], __atomic_load_n(&rail->count[s], __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
#else
    rail->count[s] += n;
#endif
}

/*
 * A counter of rail i; for the time that the port was down including the present time. Any thread may ask, at any time;
 * an absent rail has counted nothing.
 */
uint64_t mr_rail_counted(unsigned i, enum mr_rail_stat s);
/* True if the rail's port is active now. Asks the device: for explaining a failure before its event has come. */
bool mr_rail_is_active(const struct mr_rail *rail);

/*
 * How far each rail is from this process: smaller is nearer, as the firmware's table of NUMA distances has it. All the
 * same if nothing is known. Takes milliseconds.
 */
void mr_rails_distances(unsigned out[MR_RAILS_MAX]);
/*
 * True if distances may differ. False if all adapters are at one node, or the kernel does not tell; a quick question.
 */
bool mr_rails_are_apart(void);

/* ---- the devices together (device.c, cq.c, rails.c, contexts.c) -------------------------------------------------- */

/* Receive buffers to be posted again. */
struct mr_rx_back {
    unsigned num; /* of several queues together */
    bool due;     /* one of their queues is in the list of queues due for a batch */
};

/* ---- measured costs (costs.c) ------------------------------------------------------------------------------------ */

/*
 * Measures the inputs of the cost model (base/model.h): copies and registrations when the first rail opens, in memory
 * of the library; round trips behind the first keepalive, by writes of no bytes, which the peer's adapter
 * confirms without its process. At a connection the writes would go between packets: a stream of short packets over
 * unequal rails kept another rhythm until its end, and was 8 percent slower (simulated). Each operation is measured
 * several times (base/least.h) and is part of no message. Under a simulator the clock is virtual, and so are the
 * results: an operation without virtual time leaves the default.
 */

#define MR_COSTS_TRIPS 8u /* round trips, one after the other */

struct mr_link;

struct mr_costs {
    bool memory; /* measured */
    bool quiet;  /* a keepalive was sent to a silent peer */
    unsigned trips;
    struct mr_link *link; /* of the round trip under way; NULL: none */
    uint64_t posted_ns;
    struct mr_least trip, post;
};

/* Registered memory that nobody uses yet, of the given bytes. Its contents may change. Once; later calls do nothing. */
void mr_costs_measure_memory(struct ibv_pd *pd, void *memory, size_t bytes);
/* A keepalive has been sent to a silent peer: MR_COSTS_TRIPS round trips behind a keepalive delay no packets. */
void mr_costs_may_begin(void);
/* A keepalive over the link, or an ask, has returned. */
void mr_costs_answered(struct mr_link *l, bool failed);

struct mr_verbs {
    unsigned num_devices, num_rails;
    struct mr_device device[MR_DEVICES_MAX];
    struct mr_rail rail[MR_RAILS_MAX];
    unsigned num_memories; /* registered at present */
    size_t packet_max;
    bool datagrams;         /* packets may come as such */
    struct mr_rail *polled; /* the next rail to poll; NULL: no device works */
    unsigned streak_left;   /* more polls, if busy */
    bool alone;             /* when it was found to have something all others had nothing */
    struct mr_rail *beside; /* the last of the rails polled since it is alone; NULL: none yet */
    unsigned turns;         /* polls in a row with work at another rail: up to MR_POLL_TURNS */
    struct mr_later *later;
    struct mr_rx_back rx_back; /* of several rails' connections */
    struct mr_rx *rx_due;      /* receive queues that buffers are to be posted to, when there is time */
    bool moved;                /* data has, by RDMA, since the last of them were posted */
    bool answered;             /* something has been sent since the first of them came into this list */
    uint16_t moves;            /* how often a rail had another address or life; wraps */
    struct mr_costs costs;     /* measured for the cost model */
    uint32_t lives;            /* of all rails, each in its bits; 0: no device was opened anew */
};
extern MR_OWN struct mr_verbs mr_verbs;
/* The same for callers outside the library: the number of open rails, and rail i. */
unsigned mr_verbs_num_rails(void);
struct mr_rail *mr_verbs_rail(unsigned i);

struct mr_zsend_from;

/* What verbs/ calls above it. */
struct mr_verbs_handlers {
    /* A packet came in over a connection; data is valid during the call. */
    void (*packet)(struct mr_rail *rail, const void *data, size_t len);
    /* A datagram that is a packet (imm NULL), or a part of a packet. */
    void (*segment)(struct mr_rail *rail, const void *data, size_t len, const uint32_t *imm);
    /* The peer's write with this immediate value has landed. */
    void (*landed)(struct mr_rail *rail, uint32_t imm);
    /* A datagram for connecting. */
    void (*datagram)(struct mr_rail *rail, const void *data, size_t len);
    /* The port went up or down, or the device is gone (rail->down, rail->dev->fatal). */
    void (*rail_changed)(struct mr_rail *rail);
    /* The device was opened anew; its rails are still down. A negative errno: not usable yet. */
    int (*device_renewed)(struct mr_device *dev);
    /* The subnet manager has given the port another LID, or another number of them (rail->addr). */
    void (*rail_moved)(struct mr_rail *rail);
    /* The port's P_Keys have changed (rail->partition). moved: set of partitions with another index. */
    void (*rail_keys)(struct mr_rail *rail, uint32_t moved);
    /* Adapters read no more of the memory of a packet elsewhere than behind its header, and nothing will. */
    void (*zsend_done)(const struct mr_zsend_from *zsend);
    /* NULL, or: the port's first partition, without a setting; 0: any. */
    uint16_t (*pkey)(const char *device, int port);
};

/* rejects: may be NULL; true if the port should not be used (fabricd). */
typedef bool mr_rail_reject(const char *device, int port, void *arg);

/*
 * Open every device and every active port that the settings name. packet_max: bytes of the longest packet; datagrams:
 * packets may come as datagrams. -ENODEV (logged) when there is no port.
 */
int mr_verbs_open(const struct mr_verbs_handlers *handlers, size_t packet_max, bool datagrams, mr_rail_reject *reject,
                  void *arg);
void mr_verbs_close(void);
/* Handles completions, on the first rail that has some. Returns their number; 0: idle. */
int mr_verbs_poll(void);
/* The same, with another poll after each idle rail: a successful poll ends it. */
int mr_verbs_poll_between(int (*between)(void));
/* The next poll begins at this rail, unless it is another's turn. */
static inline void mr_verbs_poll_first(struct mr_rail *rail)
{
    if (rail->next_polled)
        mr_verbs.polled = rail;
}
/* Read asynchronous events of all devices; costs system calls. */
void mr_verbs_check_events(void);
/* The least of the adapters here named by MRMPI_DEVICES. They need not be open. */
unsigned mr_verbs_contexts(void);
bool mr_verbs_present(void); /* this host has some device */

/* ---- queue pairs (qp.c) ------------------------------------------------------------------------------------------ */

/*
 * Queue pairs: RC, UC or UD, on one rail. The owner makes a queue pair, connects it, and gives it up: posted requests
 * then come back flushed, and the queue pair has drained.
 */
struct mr_qp_events {
    /* The first `sends` sends have arrived. */
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
    unsigned unsignaled_left;           /* requests that may follow before a signaled one; 0 after an error, too */
    uint32_t max_inline;
    unsigned unsignaled_sends, unsignaled_others; /* posted since the last signaled request: sends, all else */
    unsigned depth, room;                         /* of the send queue; requests that may still be posted */
    unsigned finished;                            /* completed signaled requests; wraps */
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
void mr_qps_all_gone(void); /* at the end: nothing is handed up any more */
/*
 * After draining, to find out whether the peer's end still exists. keep: *to takes the queue pair over, with other
 * events and another owner; *from is as before mr_qp_create(). psns: the numbers of the next packets sent and received.
 * again: brings it up once more against the same queue pair, at another address unless to is NULL; its next request has
 * the number send, and the peer sends receive next, or, without an answer, a number a little behind: then it takes
 * nothing in. answers: it acknowledges writes of no bytes.
 */
void mr_qp_keep(struct mr_qp *from, struct mr_qp *to, const struct mr_qp_events *events, void *owner);
int mr_qp_psns(struct mr_qp *qp, uint32_t *send, uint32_t *receive);
int mr_qp_again(struct mr_qp *qp, const struct mr_rail_addr *to, uint32_t send, uint32_t receive, bool answers);

/* ---- requests of queue pairs (post.c) ---------------------------------------------------------------------------- */

/*
 * A signaled request. It stands for the unsignaled requests before: mr_tx_done() gives their room back, and every
 * done() of a struct mr_tx calls it first.
 */
struct mr_tx {
    struct mr_wr wr;
    struct mr_qp *qp;
    unsigned requests, sends;
};

/* There is room for a request, and it need not be signaled. */
static inline bool mr_qp_has_unsignaled(const struct mr_qp *qp)
{
    return qp->unsignaled_left && qp->rail->cq_room;
}

struct mr_piece {
    const void *data;
    uint32_t len, lkey;
};
#define MR_QP_RUN  16 /* most datagrams posted together */
#define MR_QP_LIST 16 /* short writes, the same */

/* RDMA write; with imm the receiver is told. lkey 0: of memory that is not registered, len <= max_inline. */
int mr_qp_write(struct mr_qp *qp, const void *data, size_t len, uint32_t lkey, uint64_t raddr, uint32_t rkey,
                const uint32_t *imm, struct mr_tx *tx);
void mr_tx_done(struct mr_tx *tx, const struct mr_wc *wc);

/* ---- datagrams for connecting, and the addresses of datagrams (ud.c, udp.c) -------------------------------------- */

/*
 * Sends one datagram from rail. 0, or negative errno (-EAGAIN: too many in flight, or not in this partition now).
 * Datagrams get lost without a report.
 */
struct mr_ud_route {
    uint16_t pkey; /* of the rail's: the partition of the datagram */
    uint8_t sl;
    uint8_t path; /* of the other rail's LIDs, as in its connections */
    uint32_t qpn; /* the queue pair of the other rail for that partition (struct mr_partition) */
    const struct mr_rail_addr *to;
};
int mr_ud_send(struct mr_rail *rail, const struct mr_ud_route *route, const void *data, size_t len);

/* Where datagrams go. */
struct mr_ud_to {
    struct ibv_ah *ah;
    uint32_t qpn, qkey;
};

/* Bytes of the longest datagram between two ports. */
uint32_t mr_udp_mtu(const struct mr_rail_addr *a, const struct mr_rail_addr *b);

/* ---- large messages as datagrams (pool.c) ------------------------------------------------------------------------ */

/*
 * Large messages as datagrams. Each rail has a pool of queue pairs for them, made on demand (MRMPI_UD_POOL,
 * MRMPI_UD_POOL_DEPTH). The user of a queue pair posts receives, each for one place of its own memory, and sends the
 * sender number and key of the queue pair. Datagrams fill the places in the order of arrival.
 */
struct mr_ud_pool_qp;

struct mr_ud_pool_events {
    /* A datagram of len bytes lies in this place, counted from 0 in the order of posting. */
    void (*arrived)(struct mr_ud_pool_qp *q, unsigned place, uint32_t imm, uint32_t len);
    /*
     * After mr_ud_pool_stop(), or an error: nothing arrives through the queue pair any more, and its memory is the
     * owner's again.
     */
    void (*stopped)(struct mr_ud_pool_qp *q);
};

struct mr_ud_pool_qp {
    struct mr_rail *rail;
    uint32_t qpn, qkey;
    uint16_t pkey; /* of the rail's: its partition */
    uint16_t turn; /* number of clearances for a sender; wraps. Its owner's */
    const struct mr_ud_pool_events *events;
    void *owner;
    unsigned posted, back; /* counted receives */
};

/* Makes queue pairs until n are free, if possible. Returns the number of free ones. */
unsigned mr_ud_pool_prepare(struct mr_rail *rail, unsigned n);
unsigned mr_ud_pool_num(const struct mr_rail *rail);   /* existing ones */
unsigned mr_ud_pool_depth(const struct mr_rail *rail); /* receives of each: MRMPI_UD_POOL_DEPTH, if the device can */
/* A free queue pair for datagrams in this partition. NULL: there is none. */
struct mr_ud_pool_qp *mr_ud_pool_take(struct mr_rail *rail, uint16_t pkey, const struct mr_ud_pool_events *events,
                                      void *owner);
/*
 * Posts receives for [at, at + len), one for each size bytes; the last place may be shorter than its datagram, whose
 * end is lost then. No more than mr_ud_pool_depth() at the same time. 0 or negative errno: some may be posted
 * nevertheless.
 */
int mr_ud_pool_post(struct mr_ud_pool_qp *q, void *at, size_t len, uint32_t size, uint32_t lkey);
/* Gives up the posted receives. stopped() comes out of mr_verbs_poll(). */
void mr_ud_pool_stop(struct mr_ud_pool_qp *q);
/*
 * No receive is posted any more: places are counted from 0 again. Unless clean, which means that nothing can be under
 * way to the queue pair, it gets a new key, and the adapter drops datagrams with the old key. 0 or negative errno: the
 * queue pair is gone.
 */
int mr_ud_pool_again(struct mr_ud_pool_qp *q, bool clean);
/* The same, then gives the queue pair back. */
void mr_ud_pool_give(struct mr_ud_pool_qp *q, bool clean);

/* ---- registered memory (memory/memory.c): with all devices, or with some of them --------------------------------- */

/*
 * Keys are by rail; NULL: the device does not know the memory. A newly opened device does not know earlier
 * registrations, either: such a registration is kept until it is made anew or the memory is deregistered.
 */
struct mr_memory {
    struct ibv_mr *mr[MR_DEVICES_MAX];
};

/* Read by the HCA; written by it, locally or remotely; changed by its atomics, too. */
enum mr_access { MR_ACCESS_SOURCE, MR_ACCESS_TARGET, MR_ACCESS_ATOMIC };

/* Registers with the devices of a set, by index, that do not know the memory yet. After an error m is unchanged. */
int mr_memory_add(void *addr, size_t len, enum mr_access access, uint32_t devices, struct mr_memory *m);
bool mr_memory_is_on(const struct mr_memory *m, const struct mr_rail *rail);
uint32_t mr_memory_lkey(const struct mr_memory *m, const struct mr_rail *rail);
uint32_t mr_memory_rkey(const struct mr_memory *m, const struct mr_rail *rail);

/* ---- registrations: found in a cache, paged on demand, or made (memory/use.c, memory/odp.c) ---------------------- */

/*
 * On-demand paging. One registration per device and access covers all present and future memory of the process, and
 * pins none of it: the adapter asks the kernel for pages on demand and forgets unmapped pages. Neither unmapping nor
 * fork matters then.
 *
 * Memory read by adapters has a registration of its own, without the right to write: for a registration with the right
 * to write, the kernel would refuse a read-only page.
 *
 * An adapter that waits for a page keeps its connection waiting. Datagrams and unreliable connections cannot wait, so
 * the targets of their writes must be pinned. The caller sees to that. With the library's lock.
 */
struct mr_reg {
    uintptr_t start, end;
    unsigned refs, uses; /* now; ever */
    bool writable;       /* may be the target of the HCA's writes */
    bool cached;         /* in the table; else freed with its last use */
    struct mr_memory memory;
    struct mr_reg *older, *newer; /* unused ones, by the time of their last use; of unmapped ones: newer only */
};

/*
 * The devices that must know the memory: each of a set; or, if first is not 0, one of the set is enough, and if none
 * knows the memory first shall, a member of the set.
 */
struct mr_reg_wish {
    uint32_t devices, first;
};

enum mr_odp_use {
    MR_ODP_NEVER,
    MR_ODP_LAST,  /* for memory that cannot be pinned */
    MR_ODP_FIRST, /* for mapped memory */
};

/* NULL if every device has the abilities for connections of these kinds, else the name of the first that lacks them. */
const char *mr_odp_missing(bool datagrams);
void mr_odp_open(enum mr_odp_use use);
/* A device was opened anew: existing registrations are made with it, too. 0 or negative errno. */
int mr_odp_renew(void);
bool mr_odp_comes_first(void);

bool mr_odp_owns(const struct mr_reg *r);

/*
 * Registering memory, and giving it back, takes microseconds without polling: the number of such times, and whether
 * completions of that time may not have been found yet: mr_regs_is_behind().
 */
struct mr_regs {
    const char *unwatched; /* why nothing stays registered beyond its use; NULL: unmappings are noted */
    unsigned away;
    bool behind;
};
extern struct mr_regs mr_regs;

void mr_regs_open(void);
void mr_regs_close(void);
/* At most so many registrations; 0: this rank's share, of ranks on this host, of a device with max_regions. */
void mr_regs_limit(size_t registrations, size_t max_regions, size_t ranks);
bool mr_regs_stay(void); /* unused registrations stay */
/*
 * Registers memory, or finds it registered. pinned: its pages must be present, because the sender does not wait for
 * them. 0; negative errno: logged. mr_regs_release() gives it back.
 */
int mr_regs_get(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg **out);
int mr_regs_get_with(void *buf, size_t len, enum mr_access access, bool pinned, struct mr_reg_wish wish,
                     struct mr_reg **out);
void mr_regs_release(struct mr_reg *r);
/* Extends a registration in use to other devices. 0 or negative errno: unchanged. */
int mr_regs_extend(struct mr_reg *r, struct mr_reg_wish wish);
/* The registration that covers the memory, for reading; NULL: there is none. */
const struct mr_reg *mr_regs_find(const void *buf, size_t len);
/* As mr_regcache_knows(): true if the memory is likely to be used again. */
bool mr_regs_know(const void *buf, size_t len);
/*
 * The same bytes and no others, outside of the cache, pinned: after its end no key reaches the memory any more. With
 * all devices for writing (MR_ACCESS_TARGET), or with a device that has atomics (MR_ACCESS_ATOMIC): -EOPNOTSUPP, if
 * none has. Errors are not logged: the caller has other means.
 */
int mr_regs_get_alone(void *buf, size_t len, enum mr_access access, struct mr_reg **out);
void mr_regs_end_alone(struct mr_reg *r);
/*
 * True if completions that arrived while memory was registered may not have been found yet (net/stripe/adapt.h). They
 * have been found when a poll has found nothing, or, on a busy network, when each rail's queue has been emptied twice:
 * the results of the first poll are handled before the second.
 */
bool mr_regs_is_behind(void);
/* True if registered with all devices, for writing. */
bool mr_regs_has(const void *buf, size_t len);
/* True if registered with some. */
bool mr_regs_has_some(const void *buf, size_t len);
uint32_t mr_regs_devices(void); /* set of working devices */

/* ---- kinds of links (link/kinds.c) ------------------------------------------------------------------------------- */

/*
 * The kinds of links (kinds.def), their abilities, the kinds that a rank may use, and whether the rank relies on the
 * adapter for delivery (MRMPI_LINKS, MRMPI_RELIABLE). These are the six combinations of M. Koop, R. Kumar, D. Panda,
 * "Can Software Reliability Outperform Hardware Reliability on High Performance Interconnects?", ICS 2008, section 5:
 * RC, UC, UD, each native or reliable. Callers ask for traits, never for a kind by its enumerator. Pure.
 */
/* As in messages of connecting. */
enum mr_link_kind {
#define MR_KIND(id, name, ops, traits, help) MR_LINK_##id,
#include "libmrmpi/verbs/link/kinds.def"
#undef MR_KIND
    MR_LINK_KINDS
};
_Static_assert(MR_LINK_KINDS <= 8, "sets of kinds are bytes on the wire");

enum mr_kind_traits {
    MR_IS_CONNECTED = 1,  /* needs a queue pair of its own at either end: struct mr_link has qp, not ud */
    MR_IS_RELIABLE = 2,   /* the adapter delivers every packet, once and in order, and confirms it */
    MR_IS_CONFIRMING = 4, /* confirmed() is called when packets have been sent, at least */
    MR_IS_RDMA = 8,       /* writes to the peer's memory, */
    MR_IS_READING = 16,   /* and reads from it */
    MR_IS_DATAGRAM = 32,  /* long packets go in parts of an MTU, and it has runs */
    MR_IS_RING = 64       /* short packets go into a ring, if the receiver has offered one */
};

/* The kinds of a set with all these traits. With constant traits an AND. */
static inline __attribute__((always_inline)) unsigned mr_kinds_that_are(unsigned set, unsigned traits)
{
    unsigned those = 0;

#define MR_KIND(id, name, ops, has, help) those |= (unsigned)(((has)&traits) == traits) << MR_LINK_##id;
#include "libmrmpi/verbs/link/kinds.def"
#undef MR_KIND
    return set & those;
}

/* MR_LINK_KINDS has no traits. */
static inline __attribute__((always_inline)) bool mr_kind_is(unsigned kind, unsigned traits)
{
    return mr_kinds_that_are(1u << kind, traits);
}

/*
 * True for a connection that may break at the peer's end alone, without a report of an adapter: its process has to be
 * asked.
 */
static inline bool mr_kind_breaks_unseen(unsigned kind)
{
    return mr_kind_is(kind, MR_IS_CONNECTED) && !mr_kind_is(kind, MR_IS_RELIABLE);
}

/*
 * The kind of the set for large messages by RDMA: the first with reads, too, else the first with writes. MR_LINK_KINDS:
 * none.
 */
static inline unsigned mr_kinds_bulk(unsigned set)
{
    unsigned rdma = mr_kinds_that_are(set, MR_IS_RDMA), reading = mr_kinds_that_are(rdma, MR_IS_READING);

    return !rdma ? MR_LINK_KINDS : (unsigned)__builtin_ctz(reading ? reading : rdma);
}

/* The same, or MR_LINK_KINDS if large messages go through its ring in packets (by_ring). */
static inline unsigned mr_kinds_by_rdma(unsigned set, bool by_ring)
{
    unsigned kind = mr_kinds_bulk(set);

    return by_ring && mr_kind_is(kind, MR_IS_RING) ? MR_LINK_KINDS : kind;
}

/* "unknown": no kind. */
const char *mr_kind_name(unsigned kind);
/* Its description in the user's words. */
const char *mr_kind_help(unsigned kind);
/* The kind of the first len bytes of the word, in any case of letters; MR_LINK_KINDS: none. */
unsigned mr_kind_by_name(const char *word, size_t len);
/* All names, as "rc, uc and ud"; last: "and" or "or". Returns out. */
#define MR_KINDS_TEXT 160
const char *mr_kinds_list(const char *last, char out[MR_KINDS_TEXT]);

struct mr_kinds {
    unsigned num;
    uint8_t kind[MR_LINK_KINDS]; /* in the order of preference */
    bool native[MR_LINK_KINDS];  /* by kind: packets are not acknowledged by the peer */
    bool unsafe;                 /* a native kind loses packets */
};

/* The meaning of MRMPI_LINKS=auto, and its meaning with many ranks, more than connections. */
#define MR_LINKS_AUTO      "rc"
#define MR_LINKS_AUTO_MANY "rc,ud"

/*
 * links: comma list of names, or auto; with many: MR_LINKS_AUTO_MANY, if datagrams may be acknowledged. reliable: auto,
 * yes, no. False: *why is the wrong variable.
 */
bool mr_kinds_parse(const char *links, const char *reliable, bool many, struct mr_kinds *out, const char **why);
/* The allowed values of the wrong variable, for the error message. Returns out. */
const char *mr_kinds_form(const char *why, char out[MR_KINDS_TEXT]);
bool mr_kinds_have(const struct mr_kinds *k, unsigned kind);
/* The kinds as a set: bit i is kind i. */
unsigned mr_kinds_set(const struct mr_kinds *k);

/* How packets go through a ring (MRMPI_RING_DESIGN). */
enum mr_ring_design { MR_RING_BASIC, MR_RING_PIGGYBACK, MR_RING_PIPELINED, MR_RING_ZEROCOPY, MR_RING_DESIGNS };

const char *mr_ring_design_name(enum mr_ring_design design);
/* False: no design. */
bool mr_ring_design_parse(const char *text, enum mr_ring_design *out);
/* The longest payload of a packet that fits a slot. setting: MRMPI_RING_SIZE. */
size_t mr_ring_size(enum mr_ring_design design, size_t setting, size_t eager_max);

/* ---- packets of links (link/packet.c) ---------------------------------------------------------------------------- */

/*
 * Packets of links: header and payload in one piece of registered memory, kept until no repetition is needed. They come
 * from pools of two sizes, short packets and all others, that grow as needed and stay until the end.
 */
struct mr_link;
struct mr_packet_slab;

/* Memory of a packet's payload elsewhere than behind its header. */
struct mr_zsend_from {
    const struct mr_memory *memory; /* NULL: copied */
    const void *from;               /* NULL: adapters may still read it, but the payload is behind the header now */
    void *zsender;
};

struct mr_packet {
    struct mr_kept kept; /* the first member: net/'s window of sent packets */
    struct mr_tx tx;     /* of the request that sends the packet, if signaled */
    struct mr_packet_slab *slab;
    struct mr_link *link; /* datagrams: its last link */
    struct mr_zsend_from zsend;
    unsigned char *data;
    uint32_t size;    /* of header and payload */
    uint32_t payload; /* bytes of it */
    uint8_t ack_len;  /* bytes of the peer's ACK behind it (net/rely.c) */
    bool posted;      /* tx is with the adapter */
    bool dropped;     /* to be freed when tx has come back */
};

/* Room behind each packet, in bytes: for an ACK, and the header of each of its parts (assembly.h). */
#define MR_PACKET_SPARE 32

/* packet_max: header and payload of the longest. So many rails are in use. 0 or negative errno. */
int mr_packets_open(size_t packet_max, unsigned rails);
void mr_packets_close(void);
/* A device was opened anew: all packets have to be registered there. 0 or negative errno. */
int mr_packets_renew(void);

/* Free packets of one size, through kept.next. */
struct mr_packet_pool {
    size_t stride;
    struct mr_packet *free;
    unsigned first, num; /* in the first slab; in all, free or not */
};
extern MR_OWN struct mr_packet_pool mr_packets_short; /* of MR_PACKET_SHORT bytes and MR_PACKET_SPARE behind them */
#define MR_PACKET_SHORT 256

/* There is memory for the next so many packets, however long: 0, or -ENOMEM. */
int mr_packets_reserve(unsigned num);
/* A packet with this header and payload (NULL: it is not filled in); NULL: no memory. */
struct mr_packet *mr_packet_make(const struct mr_hdr *hdr, const void *payload, size_t len);
/* The next free short packet, to be filled; NULL: none is at hand. */
static inline struct mr_packet *mr_packet_take_short(void)
{
    struct mr_packet *p = mr_packets_short.free;

    if (likely(p != NULL))
        mr_packets_short.free = (struct mr_packet *)p->kept.next;
    return p;
}
/* Fills the packet, whose first bytes are its header, with MR_PACKET_SHORT - MR_WIRE_MAX bytes at most. */
static inline void mr_packet_fill_short(struct mr_packet *p, size_t header, const void *payload, size_t len)
{
    p->size = p->kept.len = (uint32_t)(header + len);
    p->payload = (uint32_t)len;
    p->ack_len = 0;
    if (len)
        memcpy(p->data + header, payload, len);
}
/* The packet was not posted. */
static inline void mr_packet_unmake_short(struct mr_packet *p)
{
    p->kept.next = (struct mr_kept *)mr_packets_short.free;
    mr_packets_short.free = p;
}
/* The same bytes once more, for callers that cannot wait until the first packet is back. */
struct mr_packet *mr_packet_copy(struct mr_packet *p);
/* Moves its payload behind its header. */
void mr_packet_settle(struct mr_packet *p);
/* At once, or when the adapter is done with it. */
void mr_packet_free(struct mr_packet *p);
/* All of a chain through kept.next, as conn/reliable/window.h gives them back. */
void mr_packets_free(struct mr_kept *chain);

/* ---- packets that arrive as several datagrams (link/assembly.c) -------------------------------------------------- */

/*
 * Packets that arrive as several datagrams. Each part begins with MR_PART_HEADER bytes, equal in all parts of a packet
 * (sender, number, length); its immediate data has the number of the part and the length of all parts but the last.
 * Parts may arrive in any order, twice, or not at all, and from anybody: parts that do not fit are dropped. A repeated
 * packet begins anew with another length, and fills the gaps with the same length. Pure: tested alone.
 */
#define MR_PART_HEADER 16
#define MR_PARTS_MAX   64 /* of one packet */
struct mr_assembly;
struct mr_assemblies {
    size_t packet_max;
    struct mr_assembly *recent; /* a ring: the last is the one before it */
    struct mr_assembly *whole;  /* given out last */
    unsigned num;
    uint64_t dropped; /* parts that do not fit, and packets given up */
};

/* packet_max: longer packets are dropped. Allocates nothing. */
void mr_assemblies_init(struct mr_assemblies *as, size_t packet_max);
void mr_assemblies_free(struct mr_assemblies *as);
/* A part has arrived. Returns the packet if it is complete, else NULL; valid until the next call. */
const void *mr_assemblies_add(struct mr_assemblies *as, const void *data, size_t len, uint32_t imm, size_t *size);

/* ---- links (link/) ---------------------------------------------------------------------------------------------- */

/*
 * A link leads to one peer over one rail, one LID path and one service level. Each kind of link is one file with
 * one struct mr_link_ops, and one row of kinds.def. conn/peer/ opens links, chooses among the links to a peer, and
 * keeps order and uniqueness: a link knows no sequence numbers, no matching and no other link.
 *
 * Life: MR_LINK_CLOSED -> open() -> MR_LINK_OPENING -> connect() -> MR_LINK_OPEN -> an error or drain() ->
 * MR_LINK_BROKEN, while posted work comes back -> drained() -> MR_LINK_CLOSED, and open() works again. Callers hold the
 * library's lock; upcalls come out of mr_verbs_poll() only.
 */
enum mr_link_state { MR_LINK_CLOSED, MR_LINK_OPENING, MR_LINK_OPEN, MR_LINK_BROKEN };

struct mr_link;

/* The upcalls to the owner of a link. */
struct mr_link_events {
    /* Native links: the n oldest unconfirmed packets are with the peer. */
    void (*confirmed)(struct mr_link *l, unsigned n);
    /* The first request failed: the link is MR_LINK_BROKEN now, and wants to be drained. */
    void (*failed)(struct mr_link *l, const struct mr_wc *wc);
    /*
     * All posted requests have come back: the adapter no longer touches their memory. The link is MR_LINK_CLOSED now.
     */
    void (*drained)(struct mr_link *l);
    /* Called before: the queue pair of a reliable link, for mr_qp_keep(). False: destroyed. NULL: always. */
    bool (*left)(struct mr_link *l, struct mr_qp *qp);
};

/* The other end of a link, and how to get there. */
struct mr_link_end {
    const struct mr_rail_addr *addr;
    uint32_t qpn, local_psn, remote_psn; /* of the peer's queue pair for this link */
    uint8_t sl, path;                    /* path: LID path bits on both sides */
};

/* One part of a large transfer. */
struct mr_link_part {
    void *local; /* only read from by a write */
    uint64_t len, raddr;
    uint32_t lkey, rkey;
    const uint32_t *imm; /* write: the peer gets a notification; NULL: no notification */
    bool wakes;          /* needs a completion when done, even without a waiter */
};

/* Short writes to one region; data longer than qp.max_inline is in memory with this lkey. */
struct mr_link_list {
    const struct mr_short_write *one;
    unsigned num;
    uint32_t rkey, lkey;
};

/* An atomic change in the peer's memory, which begins at raddr, and a read; the result is in memory with this lkey. */
struct mr_link_atomic {
    const struct mr_atomic *atomic;
    uint64_t raddr;
    uint32_t rkey, lkey;
};

/*
 * Datagrams for a queue pair of the peer that waits for them (verbs/pool.c): MR_QP_RUN at most, each with size bytes of
 * data, except perhaps the last. The poster embeds a struct mr_link_run; done() is called when they have left, or never
 * will.
 */
struct mr_link_run {
    struct mr_tx tx;
    struct mr_link *link;
    struct mr_link_run *next, **at; /* among the posted runs of its link */
    void (*done)(struct mr_link_run *run);
};
struct mr_link_datagram {
    struct mr_piece data;
    uint32_t size, imm; /* imm: of the first; counts up */
    uint32_t qpn, qkey;
};

/* Its traits list the optional operations of a kind. */
struct mr_link_ops {
    /* Make this end on the rail. Sets l->qpn; 0 or negative errno. */
    int (*open)(struct mr_link *l, struct mr_rail *rail);
    int (*connect)(struct mr_link *l, const struct mr_link_end *to);
    /*
     * Posts one packet; the packet must not change while p->posted, nor until it is confirmed or the link has drained.
     * -EAGAIN: no room now.
     */
    int (*send)(struct mr_link *l, struct mr_packet *p);
    /*
     * RDMA; NULL: the link has none. tx comes back when this part and all earlier parts are done; NULL: nobody waits.
     * -EAGAIN: no room. A part has l->rail->max_msg bytes at most.
     */
    int (*write)(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx);
    int (*read)(struct mr_link *l, const struct mr_link_part *part, struct mr_tx *tx);
    /*
     * Short writes, as a list, as far as there is room: *posted, also after an error. tx comes back when they and all
     * earlier requests are done. NULL: not supported. -EAGAIN: no room.
     */
    int (*write_list)(struct mr_link *l, const struct mr_link_list *list, struct mr_tx *tx, unsigned *posted);
    /*
     * An atomic change of the peer's memory by its adapter. NULL: the link has none. tx comes back when done, if the
     * adapters at both ends have atomics; after an error the change may have been made. -EAGAIN: no room.
     */
    int (*atomic)(struct mr_link *l, const struct mr_link_atomic *w, struct mr_tx *tx);
    /*
     * Datagrams without a header of ours. NULL: the link has none. Returns the number of posted bytes of d->data, full
     * datagrams or all of it; -EAGAIN: no room.
     */
    ssize_t (*run)(struct mr_link *l, const struct mr_link_datagram *d, struct mr_link_run *run);
    /* Ask the peer's adapter for a sign of life: without one the link fails. -EAGAIN: not now. NULL: nothing answers.
     */
    int (*keepalive)(struct mr_link *l);
    /* The same, without effect on packets: for the time of the answer (costs.c). NULL: not measured. */
    int (*ask)(struct mr_link *l);
    /*
     * Finds out whether all posted requests are done: confirmed() follows. NULL: confirmed() comes without a request.
     */
    int (*flush)(struct mr_link *l);
    /* Gives up: posted requests come back flushed, then drained() is called. */
    void (*drain)(struct mr_link *l);
    /* Takes the link away at once, with requests posted or not; for the end. */
    void (*close)(struct mr_link *l);
    /* The same for a link without posts; arrivals are still handed up. */
    void (*leave)(struct mr_link *l);
    /* Before drained(): nothing can land any more by its queue pair. NULL: nothing is left to be done then. */
    void (*emptied)(struct mr_link *l);
};

/* The state of a link without a queue pair of its own. */
struct mr_link_datagrams {
    struct mr_qp *qp; /* the rail's */
    struct mr_ud_to to;
    uint32_t mtu;
    unsigned posted; /* packets and runs of this link that have not come back */
    struct mr_link_run *runs;
    struct mr_later later;
};

struct mr_link {
    const struct mr_link_ops *ops;
    const struct mr_link_events *events;
    void *owner;
    struct mr_rail *rail;
    enum mr_link_state state;
    uint8_t kind;  /* enum mr_link_kind. Set by the owner, like ops */
    uint8_t index; /* the owner's number of the link */
    uint8_t sl, path;
    uint16_t pkey; /* the rail's: its partition. Set by the owner, like ops */
    bool bulk;     /* for large messages. Set by the owner, like native */
    bool deep;     /* its send queue is deep: packets wait long for their turn in the fabric. Set by the owner */
    bool lossy;    /* packets are lost on its way (mr_qp.lossy). Set by the owner */
    bool native;   /* its packets need no acknowledgement beside confirmed() */
    uint32_t qpn;
    bool keepalive_sent; /* and not done yet */
    uint8_t stuck;       /* conn/silence.c: polls in a row without progress of its traffic */
    bool owed;           /* the same: a signaled request had not come back when it was first stuck */
    uint32_t seen;       /* the same: the progress by then */
    struct mr_tx keepalive;
    struct mr_ring_link *ring; /* NULL: none, in either direction */
    union {
        struct mr_qp qp;
        struct mr_link_datagrams ud;
    };
};

#define MR_LINK_DEEP  4u    /* times the usual depth of a send queue, */
#define MR_LINK_SHORT 2048u /* for packets up to so many bytes: more long packets under way would only fill buffers */

/* A deep link takes no packet of that length now. */
static inline bool mr_link_is_deep_enough(const struct mr_link *l, size_t len)
{
    return l->deep && len > MR_LINK_SHORT && l->qp.room <= l->qp.depth - l->qp.depth / MR_LINK_DEEP;
}

#define MR_KIND(id, name, ops, traits, help) extern const struct mr_link_ops ops;
#include "libmrmpi/verbs/link/kinds.def"
#undef MR_KIND
extern const struct mr_link_ops *const mr_link_ops[MR_LINK_KINDS];

/* ---- rings (link/ring.c) ----------------------------------------------------------------------------------------- */

/*
 * Links of kind ring: reliable connections whose short packets the sender writes into a ring in the receiver's memory,
 * which the receiver polls. All else goes as over rc: packets longer than a slot or without a free slot, and large
 * messages by RDMA.
 *
 * A link begins without rings. The receiver makes a ring and offers it; the sender answers, and writes from then on.
 * The receiver may withdraw the ring; the sender stops, reports the number of written packets, and when these have been
 * read the memory is given back. net/rings.c decides which peers have a ring and carries these messages. Each direction
 * has a ring of its own, or none.
 *
 * When a link breaks, packets in its ring are still handed up, because the sender's adapter may have confirmed them.
 * This happens after the queue pair has drained, when nothing can land any more.
 */
/* One end's message to the other about its rings; the reader checks bounds. */
struct mr_ring_says {
    uint64_t slots_addr, words_addr;
    uint32_t slots_rkey, words_rkey;
    uint32_t num, size;
    uint32_t count;  /* written packets, of a ring that ends */
    uint32_t counts; /* 1: after each packet the count of packets is written, too */
};
_Static_assert(sizeof(struct mr_ring_says) == 40, "on the wire");

/* num, longest: slots of a ring, bytes of the longest packet in one. */
void mr_rings_init(enum mr_ring_design design, unsigned num, size_t longest);
/* Hands up arrived packets. Returns their number. Only while mr_rings_num. */
int mr_rings_poll(void);
extern MR_OWN unsigned mr_rings_num; /* polled rings */

/* ---- the receiver: the memory is here ---------------------------------------------------------------------------- */

/* Makes a ring for arrivals over this link, which is open and has none. 0 or negative errno. */
int mr_ring_make(struct mr_link *l, struct mr_ring_says *out);
/* True if there is a ring, or a ring not yet given back. */
bool mr_ring_exists(const struct mr_link *l);
/* True if the peer writes into the ring: it may be withdrawn. */
bool mr_ring_in_use(const struct mr_link *l);
void mr_ring_accepted(struct mr_link *l, const struct mr_ring_says *says);
/* The peer is asked to stop. */
void mr_ring_withdraw(struct mr_link *l);
/* Nobody knows the ring. */
void mr_ring_drop(struct mr_link *l);
/* The peer has stopped, after so many packets of this link in all, or does not begin. */
void mr_ring_ended(struct mr_link *l, uint32_t count);

/* ---- the sender ------------------------------------------------------------------------------------------------ */

/* Writes into the peer's ring from now on. 0; -EINVAL: an impossible ring; or another negative errno. */
int mr_ring_accept(struct mr_link *l, const struct mr_ring_says *offer, struct mr_ring_says *out);
/* No more. How many packets were written over this link so far. */
uint32_t mr_ring_stop(struct mr_link *l);

#endif
