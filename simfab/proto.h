/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attach protocol: between a process (through libsimfab.so) and the engine of its fabric.
 *
 * Every connection is a SOCK_SEQPACKET UNIX socket at $SIMFAB_DIR/engine.sock. The client's first message is a struct
 * sf_hello, with the kind of the connection. The engine trusts SO_PEERCRED for pid and uid and nothing else: every
 * message, and everything read from shared memory, is copied and checked before use.
 *
 * SF_CONN_PROC   a process that uses verbs. Control verbs are requests answered one by one (struct sf_req/sf_rep);
 *                posting and polling go through the arena, memory shared by engine and process.
 * SF_CONN_UMAD   the socket becomes one open /dev/infiniband/umadN: see simfab/umad_proto.h.
 * SF_CONN_ISSM   the same for issmN.
 * SF_CONN_DESC   the socket becomes a file node_desc of /sys, open for writing: the first message names the adapter
 *                ("mlx5_0"), each further message is a new node description. No answers.
 * SF_CONN_QUERY  stateless questions (sysfs contents, status, counters), answered one by one; the host may be "".
 *
 * The starter of the engine passes a descriptor (--ready-fd). The engine writes "ready\n" there once listening; or, for
 * a wrong topology or model, the text of the error, and ends.
 *
 * Virtual time is in picoseconds (u64) since the engine started. The engine moves time only while no actor (a thread
 * that calls verbs) is RUNNING; an actor's own clock may be ahead of the engine's. See simfab/TIME.md.
 */
#ifndef SIMFAB_PROTO_H
#define SIMFAB_PROTO_H

#include <stdint.h>

#define SF_MAGIC   0x73666162u /* "sfab" */
#define SF_VERSION 3u

#define SF_MSG_MAX  65536u /* largest message on a PROC or QUERY connection */
#define SF_HOST_MAX 64u    /* host name, with the terminating zero */
#define SF_DEV_MAX  64u

enum sf_conn_kind {
    SF_CONN_PROC = 1,
    SF_CONN_UMAD = 2,
    SF_CONN_QUERY = 3,
    SF_CONN_ISSM = 4,
    SF_CONN_DESC = 5,
};

struct sf_hello {
    uint32_t magic;
    uint32_t version;
    uint32_t kind; /* enum sf_conn_kind */
    uint32_t
        arg; /* UMAD, ISSM: the number N of umadN/issmN on this host; SF_UMAD_NONBLOCK. PROC: the process's rank in its
                job plus 1; 0: none. The rank decides the order of simultaneous events among processes of a host */
    char host[SF_HOST_MAX]; /* the simulated host, from SIM_HOST */
};

/*
 * The engine's answer to a hello. PROC: comes with the descriptors of the arena's memfd, of the doorbell's eventfd,
 * and, if there is a seat, of the memfd of the host's struct sf_relay. QUERY: no arena. UMAD, ISSM, DESC: only error is
 * valid; the answer for a taken issm comes when the issm is free.
 */
struct sf_welcome {
    uint32_t magic;
    uint32_t version;
    int32_t error; /* 0, or an errno; nothing else is valid then */
    uint32_t arena_bytes;
    uint64_t epoch_ns;         /* CLOCK_REALTIME at virtual time 0: whole seconds */
    uint64_t mono_epoch_ns;    /* CLOCK_MONOTONIC at virtual time 0: the same on every fabric */
    uint64_t clock_read_ps;    /* cost of one reading of the clock */
    uint64_t post_ps;          /* cost of a post to a queue, for the caller */
    uint64_t poll_ps;          /* cost of a poll with a result, for the caller */
    uint64_t poll_empty_ps;    /* cost of an empty poll, for the caller */
    uint32_t cpu_factor_milli; /* measured CPU time of the caller counts times this / 1000; 0: not at all */
    uint32_t copy_ps_per_kib;  /* time to copy 1024 bytes; 0: no time */
    uint64_t now_ps; /* PROC, QUERY: the engine's virtual time; clocks of processes without actors begin here */
    uint32_t seat;   /* PROC: the process's place in the host's struct sf_relay; 0: none */
    uint32_t pad;
};

/* ---- the arena ------------------------------------------------------------------------------------------------- */

#define SF_ACTORS_MAX 256u
#define SF_PKEYS      64u /* entries of the P_Key table of a port */

enum sf_actor_state {
    SF_ACTOR_FREE = 0,
    SF_ACTOR_RUNNING = 1, /* executing the program; time stands still */
    SF_ACTOR_IDLE = 2,    /* an empty poll: wake on a completion for this process, at wake_ps (if not 0), or when
                             another actor of the same host has run (it may have written to shared memory) */
    SF_ACTOR_BLOCKED = 3, /* in a kernel call that simfab cannot see through; returns by itself */
    SF_ACTOR_SLEEP = 4,   /* wants wake_ps and nothing else */
    SF_ACTOR_DRAIN = 5,   /* the command ring is full; wake when it has room */
    /* returned or new, waiting for its turn; wake_ps not 0: after the other waiting actors */
    SF_ACTOR_READY = 6,
    SF_ACTOR_LOCK = 7, /* waits for another thread of its process (a lock, a join, ...), which sets nudged */
};

/* The engine alone leaves FREE and MOVING; a thread that is HELD may make itself FREE. */
enum sf_cpu_state { SF_CPU_FREE = 0, SF_CPU_MOVING = 1, SF_CPU_HELD = 2 };

#define SF_LOOK_CALLS 8u /* more calls than this in one look at memory: the look had a result */

struct sf_actor {
    uint32_t state; /* enum sf_actor_state; also the futex word, of actors without a place in the relay. The client sets
                       all states but RUNNING, the engine RUNNING; a BLOCKED actor sets RUNNING itself, and a thread
                       that wants a lock sets RUNNING for the IDLE actors of its process; both ring the doorbell; not
                       where actors take turns */
    uint32_t tid;
    uint64_t clock_ps; /* the actor's local clock; the engine raises the clock when waking the actor */
    uint64_t wake_ps;
    uint64_t calls;       /* calls into simfab; unchanged for a spinner that never calls */
    uint32_t wake_reason; /* set by the engine: 1 completion, 2 time, 3 shared memory, 4 drained, 5 nothing to do, 6 a
                             signal, 7 its turn */
    uint32_t stops;       /* stops of RUNNING: between two checks the actor may have been running */
    uint64_t seen_events; /* the arena's count at the last call */
    uint32_t nudged; /* another actor of the process wants an empty poll to return, or has done the awaited action: */
    uint32_t
        left_out; /* set by the engine: time goes on without this actor; the actor asks for a turn at its next call */
    uint64_t nudge_ps; /* clock of the nudge; of LOCK */
    /* order of creation of the thread within its process; the first thread has 0 */
    uint32_t number;
    /* takes turns, but has not called verbs so far, and may never do so */
    uint32_t guest;
    uint32_t helpers;  /* LOCK: threads that are no actors may release */
    uint32_t held;     /* enum sf_cpu_state: the engine holds the thread on its own processor; */
    uint64_t cpus[4];  /* former affinity: a bit for each processor */
    uint64_t readings; /* readings of a clock */
    /*
     * Of the first actor of a process with a seat, set by the engine: the actor's turn in the relay; 0: none. The
     * engine exchanges the turn for 0 to take the turn back, the actor does so to begin: the turn goes to the side that
     * finds a turn there.
     */
    uint32_t relay_turn;
    uint32_t relay_reason;   /* of a turn that another process passes on: as wake_reason, */
    uint64_t relay_clock_ps; /* and the actor's clock at the beginning */
};

/* How a process's readings of the time stamp counter are caught: simfab/preload/tsc.c. */
enum sf_tsc {
    SF_TSC_UNKNOWN = 0, /* not decided yet */
    SF_TSC_REAL,        /* not caught, as requested */
    SF_TSC_TRAP,        /* the kernel makes them fault */
    SF_TSC_PATCHED,     /* the instructions were replaced */
    SF_TSC_NO_TRAP,     /* not caught: the kernel's trap fails, and patching was excluded */
    SF_TSC_NO_LIBRARY,  /* not caught: libsimfab-tsc.so cannot be loaded */
    SF_TSC_NO_WRITING,  /* not caught: the kernel refuses writes into code */
    SF_TSC_WAYS,
};

struct sf_arena {
    uint32_t magic;
    uint32_t version;
    uint64_t now_ps;                /* engine's virtual time, for threads that are not actors and for BLOCKED ones */
    uint32_t engine_asleep;         /* nonzero: ring the doorbell (write 1 to the eventfd) after a change of state */
    uint32_t engine_dead;           /* set when the engine leaves in good order */
    uint32_t cmd_offset;            /* from the start of the arena */
    uint32_t cmd_bytes;             /* a power of two */
    _Alignas(64) uint64_t cmd_head; /* bytes produced, by the client (under its own lock) */
    _Alignas(64) uint64_t cmd_tail; /* bytes consumed, by the engine */
    /*
     * Nonzero: nothing in the fabric can happen by itself, and several actors share this host's memory. An empty poll
     * returns at once and costs nothing, unless commands are waiting (cmd_head != cmd_tail): then the actor goes IDLE.
     */
    _Alignas(64) uint32_t free_run;
    uint32_t births;      /* counts the threads that actors have started: each may become an actor soon */
    uint32_t in_turns;    /* actors of this host run one after the other: an actor back from a system call goes READY */
    uint32_t tsc;         /* enum sf_tsc, set by the process before its first request */
    uint64_t events;      /* completions and events made visible to this process */
    uint32_t port_events; /* changes of ports of the fabric: earlier answers about ports are out of date */
    _Alignas(64) struct sf_actor actor[SF_ACTORS_MAX];
};

/*
 * The relay: a page shared by the engine and the processes of one host. Where actors take turns, the engine writes the
 * order of the waiting actors and starts the first. An actor that goes IDLE passes the turn on: the actor advances
 * `turn` by one place, calls the seat of that place, and does not ring the doorbell. The engine closes the relay (turn
 * = 0) before any change to actors of the host, and finds in their arenas which actors have run.
 *
 * A process can write anything here. The only effect is that actors of its own host look at their arenas: the engine
 * reads nothing but `turn`, and an actor begins only if its arena says so.
 */
#define SF_SEATS      256u /* seat 0 is unused */
#define SF_RELAY_MOST 255u /* places of an order, including the first */

struct sf_relay {
    uint32_t turn;           /* the order's number << 8 | the place of the runner; 0: there is no order */
    uint8_t seat[256];       /* by place; 0 behind the last */
    uint32_t call[SF_SEATS]; /* futex words, by seat: 1 makes an actor look whether its turn has come, or it runs */
};

/*
 * The command ring holds records of 8-byte granularity; a record never wraps: a record with op SF_CMD_SKIP fills the
 * rest of the ring. stamp is the poster's local clock; records of a process are in the order of its calls.
 */
enum sf_cmd_op {
    SF_CMD_SKIP = 0,
    SF_CMD_POST_SEND = 1,
    SF_CMD_POST_RECV = 2,  /* object = qp handle */
    SF_CMD_POST_SRQ = 3,   /* object = srq handle */
    SF_CMD_REQ_NOTIFY = 4, /* object = cq handle; flags 1: solicited only */
};

struct sf_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

struct sf_cmd {
    uint32_t bytes; /* of the whole record, a multiple of 8 */
    uint16_t op;    /* enum sf_cmd_op */
    uint16_t num_sge;
    uint32_t object;
    uint32_t flags; /* enum sf_send_flags */
    uint64_t stamp_ps;
    uint64_t wr_id;
    /* POST_SEND: struct sf_send follows, then num_sge struct sf_sge, or inline_bytes of data (padded to 8), or a
       struct sf_bind.
       POST_RECV, POST_SRQ: num_sge struct sf_sge follow. */
};

enum sf_send_flags {
    SF_SEND_SIGNALED = 1,
    SF_SEND_SOLICITED = 2,
    SF_SEND_FENCE = 4,
    SF_SEND_INLINE = 8,
};

struct sf_send {
    uint32_t opcode; /* enum ibv_wr_opcode */
    uint32_t inline_bytes;
    uint32_t imm;  /* as given (big endian) */
    uint32_t rkey; /* also invalidated by IBV_WR_LOCAL_INV and IBV_WR_SEND_WITH_INV */
    uint64_t remote_addr;
    uint64_t compare_add; /* atomics */
    uint64_t swap;
    uint32_t ah;          /* UD: address handle */
    uint32_t remote_qpn;  /* UD */
    uint32_t remote_qkey; /* UD */
    uint32_t wqe_index;   /* the client's count of posted send requests of this queue pair, mod 2^32 */
};

/* Follows struct sf_send if its opcode is IBV_WR_BIND_MW. */
struct sf_bind {
    uint32_t mw, mr; /* handles */
    uint32_t rkey;   /* the window's from now on */
    uint32_t access; /* enum ibv_access_flags */
    uint64_t addr, length;
};

/* A completion queue lives in the arena; the engine produces, the client consumes. */
struct sf_cqe {
    uint64_t t_ps; /* time of visibility; a poller with an earlier clock does not see the entry */
    uint64_t wr_id;
    uint32_t status; /* enum ibv_wc_status */
    uint32_t opcode; /* enum ibv_wc_opcode */
    uint32_t byte_len;
    uint32_t imm;
    uint32_t qp_num;
    uint32_t src_qp;
    uint32_t wc_flags;
    uint16_t pkey_index;
    uint16_t slid;
    uint8_t sl;
    uint8_t dlid_path_bits;
    uint8_t is_recv; /* frees a receive slot (of the QP or its SRQ), else send slots up to wqe_index */
    uint8_t stale;   /* the client's mark: the queue pair was destroyed or reset, the entry is passed over */
    uint32_t qp_handle;
    uint32_t wqe_index;
};

struct sf_cq_ring {
    _Alignas(64) uint64_t produced;
    _Alignas(64) uint64_t consumed;
    uint32_t slots;   /* the real number of entries in cqe[] */
    uint32_t overrun; /* set by the engine after dropping an entry */
    _Alignas(64) struct sf_cqe cqe[];
};

/* ---- control requests (SF_CONN_PROC) --------------------------------------------------------------------------- */

enum sf_op {
    SF_OP_DEVICES = 1,  /* rep: u32 n, then n struct sf_device */
    SF_OP_OPEN,         /* req: u32 device; rep: u32 ctx; fd: the async event pipe */
    SF_OP_CLOSE,        /* req: u32 ctx */
    SF_OP_QUERY_DEVICE, /* req: u32 ctx; rep: struct ibv_device_attr, struct ibv_odp_caps */
    SF_OP_QUERY_PORT,   /* req: u32 ctx, u32 port; rep: struct ibv_port_attr */
    SF_OP_QUERY_GID,    /* req: u32 ctx, u32 port, u32 index; rep: 16 bytes */
    SF_OP_QUERY_PKEYS,  /* req: u32 ctx, u32 port; rep: the P_Key table, SF_PKEYS u16 big endian */
    SF_OP_ALLOC_PD,     /* req: u32 ctx; rep: u32 pd */
    SF_OP_DEALLOC_PD,
    SF_OP_REG_MR, /* req: struct sf_reg_mr; rep: u32 mr, u32 lkey, u32 rkey */
    SF_OP_DEREG_MR,
    SF_OP_CREATE_CHANNEL, /* req: u32 ctx; rep: u32 channel; fd: the event pipe (records: struct sf_cq_event) */
    SF_OP_DESTROY_CHANNEL,
    SF_OP_CREATE_CQ, /* req: struct sf_create_cq; rep: u32 cq, u32 arena offset of the ring, u32 cqe */
    SF_OP_RESIZE_CQ, /* req: u32 cq, u32 cqe; rep as CREATE_CQ; unconsumed entries move along */
    SF_OP_DESTROY_CQ,
    SF_OP_CREATE_SRQ, /* req: struct sf_create_srq; rep: u32 srq, u32 max_wr, u32 max_sge */
    SF_OP_MODIFY_SRQ, /* req: u32 srq, s32 mask, struct ibv_srq_attr */
    SF_OP_QUERY_SRQ,  /* req: u32 srq; rep: struct ibv_srq_attr */
    SF_OP_DESTROY_SRQ,
    SF_OP_CREATE_QP, /* req: struct sf_create_qp; rep: u32 qp handle, u32 qpn, caps */
    SF_OP_MODIFY_QP, /* req: u32 qp, s32 mask, struct ibv_qp_attr */
    SF_OP_QUERY_QP,  /* req: u32 qp; rep: struct ibv_qp_attr, struct ibv_qp_init_attr (pointers zero) */
    SF_OP_DESTROY_QP,
    SF_OP_CREATE_AH, /* req: u32 pd, struct ibv_ah_attr; rep: u32 ah */
    SF_OP_DESTROY_AH,
    SF_OP_ATTACH_MCAST, /* req, of the next too: u32 qp, u16 lid, 16 bytes gid, without padding */
    SF_OP_DETACH_MCAST,
    SF_OP_REREG_MR = 40, /* req: struct sf_rereg_mr; rep: u32 mr, u32 lkey, u32 rkey */
    SF_OP_NULL_MR,       /* req: u32 pd; rep: u32 mr, u32 lkey, u32 rkey */
    SF_OP_ALLOC_MW,      /* req: u32 pd, u32 enum ibv_mw_type; rep: u32 mw, u32 rkey */
    SF_OP_DEALLOC_MW,    /* req: u32 mw */
    SF_OP_MODIFY_CQ,     /* req: u32 cq, u32 count, u32 period in us: completions per event, and for how long at most */
    SF_OP_TIMER_NEW = 50, /* req: struct sf_timer_new; rep: u32 timer; fd: of kind FD, an eventfd */
    SF_OP_TIMER_SET,      /* req: struct sf_timer_set; rep: the same, with the time left before */
    SF_OP_TIMER_DROP,     /* req: u32 timer */
    /* SF_CONN_QUERY */
    SF_OP_SYSFS = 100, /* req: a path under /sys/class/infiniband*, or /dev/infiniband; rep: struct sf_sysfs + data */
    SF_OP_STATUS,   /* req: nothing, or the text "hosts"; rep: text, as printed by `simfab status`, or the names of the
                       hosts in netlist order, one per line */
    SF_OP_COUNTERS, /* req: text "NODE PORT" or empty; rep: text, per port and VL */
    SF_OP_STOP,     /* end the engine in good order */
    SF_OP_FAULT = 110,  /* req: the words of `simfab fault`, separated by newlines; rep: "+" and the answer, or "-" and
                           the error */
    SF_OP_FLOW = 111,   /* the same for `simfab flow` */
    SF_OP_COMING = 112, /* req: nothing. The process that asks, or a child of its, is about to attach (world.h) */
    SF_OP_TRACE = 120,  /* req: text "start LIMIT PATTERN" and a descriptor to write to, or "stop"; rep: text about the
                           records written (errors: trace_log.h) */
};

struct sf_req {
    uint32_t op;
    uint32_t seq;
    uint32_t actor; /* index in the arena */
    uint32_t body_bytes;
    uint64_t stamp_ps;
    /* body */
};

struct sf_rep {
    uint32_t op;
    uint32_t seq;
    int32_t error; /* 0 or errno */
    uint32_t body_bytes;
    /* body; QUERY: a body of more than SF_BODY_MAX bytes is in a memfd that comes with the message */
};

#define SF_BODY_MAX (SF_MSG_MAX - (uint32_t)sizeof(struct sf_rep))

struct sf_device {
    char name[SF_DEV_MAX]; /* "mlx5_0" */
    uint64_t node_guid;    /* host order */
    uint64_t sys_guid;
    uint32_t ports;
    uint32_t index; /* as in SF_OP_OPEN */
};

struct sf_reg_mr {
    uint32_t pd;
    uint32_t access; /* enum ibv_access_flags */
    uint64_t addr;
    uint64_t length;
    uint64_t iova;
};

struct sf_rereg_mr {
    uint32_t mr;
    uint32_t flags; /* enum ibv_rereg_mr_flags */
    struct sf_reg_mr to;
};

struct sf_create_cq {
    uint32_t ctx;
    uint32_t cqe;
    uint32_t channel; /* 0: none */
    uint32_t pad;
    uint64_t cookie; /* comes back in events: the client's struct ibv_cq pointer */
};

struct sf_create_srq {
    uint32_t pd;
    uint32_t max_wr;
    uint32_t max_sge;
    uint32_t pad;
    uint64_t cookie;
};

struct sf_create_qp {
    uint32_t pd;
    uint32_t qp_type; /* enum ibv_qp_type */
    uint32_t send_cq, recv_cq;
    uint32_t srq; /* 0: none */
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
    uint32_t sq_sig_all;
    uint32_t pad;
    uint64_t cookie;
};

struct sf_created_qp {
    uint32_t qp, qpn;
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
    uint32_t pad;
};

struct sf_cq_event { /* a record in a channel's pipe */
    uint64_t cookie;
    uint64_t t_ps;
};

struct sf_async_event { /* a record in a context's pipe */
    uint32_t event;     /* enum ibv_event_type */
    uint32_t port;
    uint64_t cookie; /* of the qp, cq or srq */
    uint64_t t_ps;
};

/* A timer of a program, and the action at its end. */
enum sf_timer_kind { SF_TIMER_SILENT = 0, SF_TIMER_ALARM = 1, SF_TIMER_SIGNAL = 2, SF_TIMER_FD = 3 };
struct sf_timer_new {
    uint32_t kind;
    uint32_t signo; /* ALARM, SIGNAL */
    uint32_t tid;   /* SIGNAL: the receiving thread; 0: any */
    uint32_t pad;
    uint64_t value; /* SIGNAL: the signal's value */
};

struct sf_timer_set {
    uint32_t timer;
    uint32_t only_look; /* change nothing */
    uint64_t from_ps;   /* the caller's clock */
    uint64_t left_ps;   /* time left; 0: the timer is stopped */
    uint64_t interval_ps;
};

enum sf_sysfs_kind { SF_SYSFS_NONE = 0, SF_SYSFS_FILE = 1, SF_SYSFS_DIR = 2, SF_SYSFS_DEV = 3 };
struct sf_sysfs {
    uint32_t kind; /* FILE: the content follows; DIR: names, each ending in a newline; DEV: nothing */
    uint32_t bytes;
};

#endif
