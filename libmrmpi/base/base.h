/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every room stands on: settings, log, clock, counters. No room above is included here.
 */
#ifndef MRMPI_BASE_H
#define MRMPI_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The struct of that type whose member ptr points to. */
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define MR_EAGER_LEAST 64 /* bytes that every rank takes unasked */

/* What settings and counters are about: how a tool sorts them. */
enum mr_topic { MR_TOPIC_JOB, MR_TOPIC_MESSAGES, MR_TOPIC_RAILS, MR_TOPIC_CONNECTIONS, MR_TOPIC_COUNT };

/* ---- settings: one table in config.c, read once from the environment by mr_config_init() ------------------------ */

/*
 * Sizes in bytes, times as named. The names in the environment are MRMPI_ + upper case of the field. What a tool may
 * change at any time, in any thread, is atomic; the rest is fixed from mr_config_init on.
 */
struct mr_config {
    size_t eager_max;       /* MR_EAGER_LEAST..; of the packets of messages sent eagerly between hosts */
    int eager_packets;      /* that such a message may take */
    size_t shm_eager_max;   /* the same inside a host */
    int single_copy;        /* large messages inside a host by process_vm_readv */
    int rc_peers, rc_after; /* peers that have connections if ud may be used, too; packets to a peer before */
    char *rules;            /* which of them carry what (route/rules.h) */
    char *links, *reliable; /* kinds of links, in order; whether their packets are acknowledged */
    int ring_peers, ring_after, ring_slots; /* who may write into rings here; packets before; slots of each */
    size_t ring_size;                       /* of the longest payload that fits a slot; 0: what the design has */
    char *ring_design;                      /* link/kinds.h */
    char *rndv;                             /* who moves large messages between hosts: auto, write, read */
    char *ud_rndv;                          /* those that go as datagrams: zcopy, copy */
    int ud_pool;                            /* queue pairs of a rail for that */
    int ud_pool_depth;                      /* receives of each */
    char *devices;                          /* comma list "mlx5_0:1,mlx5_1" of rails to use, "" for all active ones */
    char *roce_gid;         /* index, or words as "roce-v2/ipv6"; "" for the usual order (verbs/gid.h) */
    int rails_max;          /* use at most so many; 0: all */
    char *pairs;            /* which rails of two ranks are paired: matched, all */
    int paths;              /* LID paths used between each pair of rails */
    _Atomic int unsent_max; /* packets to a peer that may wait for room before sends do */
    size_t unexpected_max, unexpected_total; /* credits for eager messages: of each peer, of all */
    _Atomic size_t stripe_min;               /* messages below are not striped */
    char *policy_small, *policy_large;
    int srq_depth, sq_depth;
    size_t reg_cache_max;   /* bytes kept registered */
    char *odp;              /* memory that is not pinned: auto, yes, no */
    int reg_cache_entries;  /* in so many pieces; 0: what the devices have room for */
    int connect_timeout_ms; /* UD connection set-up: first retransmission after this */
    int connect_retries;
    int patience;                        /* seconds to wait for a rail to a peer */
    int rc_timeout, rc_retry, rnr_retry; /* QP attributes */
    _Atomic int spin_us;                 /* poll so long before yielding */
    int oversubscribed;                  /* more ranks than cores: 1 yes, 0 no, -1 count them */
    char *coll;                          /* algorithms that collectives shall use (coll/select.c) */
    _Atomic int check_args;
    char *fabricd_socket; /* %h: host name */
    char *job_id;         /* MRMPI_JOBID, else SLURM_JOB_ID */
    char *launcher;       /* whom to ask who this process is: auto, pmix, pmi2, pmi1, none */
    int launcher_timeout_s;
    _Atomic int log_level; /* 0 errors, 1 warnings, 2 info, 3 debug */
    _Atomic int stats;     /* print counters at finalize */
    char *record;      /* file for the figures and the timeline of this rank (base/record.h); %r: its rank; "": none */
    int record_events; /* that it keeps */
    _Atomic int leaks;     /* tell at finalize what was not freed */
};
extern struct mr_config mr_config;
/* Unknown MRMPI_ names and bad values (which keep their default) are remembered; rank 0 warns once it is known. */
int mr_config_init(void);
void mr_config_finalize(void);
void mr_config_complain(void);                   /* print what is remembered, and forget it */
size_t mr_config_complaints(const char **first); /* how many, and the first one's text ("") */
/*
 * For tools (MPI_T), which may come before mr_init, and in other threads: read the settings unless they are read; an
 * mr_config_init to come then leaves them as they are. 0 or negative errno. What follows may be called by any thread.
 */
int mr_config_early(void);
enum mr_setting_kind { MR_SETTING_SIZE, MR_SETTING_INT, MR_SETTING_BOOL, MR_SETTING_STRING };
struct mr_setting {
    const char *name, *help,
        *unit;            /* help: a sentence without its capital letter and full stop; unit: "" if it has none */
    const char *standard; /* the default, as it would be written */
    long long min, max;   /* of sizes and numbers */
    enum mr_setting_kind kind;
    enum mr_topic topic;
    bool live;  /* a change works at once; others are used at mr_init */
    bool fixed; /* it has been used: not to be changed any more */
};
/* The rows of the table; libmrmpi(7) and the control variables of MPI_T are made of them. false: there is no i-th. */
bool mr_config_setting(size_t i, struct mr_setting *out);
size_t mr_config_count(void);
/* To buf: a size_t, an int (a truth value too), or a string, cut to len bytes with its end. */
bool mr_config_get(size_t i, void *buf, size_t len);
/* 0; -EINVAL: not a value for it; -EPERM: fixed. Then nothing changed. */
int mr_config_set(size_t i, const char *value);
/* A variable that is no setting of ours, such as a launcher's; NULL: not set. Needs no init. */
const char *mr_config_foreign(const char *name);

/* ---- log: to stderr, prefixed with rank and host once known ------------------------------------------------------ */
enum mr_log_level { MR_LOG_ERROR, MR_LOG_WARN, MR_LOG_INFO, MR_LOG_DEBUG };
/* local_rank: among the ranks of this host. Rank 0 prints the complaints about settings here. */
void mr_log_identity(int rank, int local_rank, const char *host);
bool mr_log_for_host(void); /* is it this process that says what all of its host's ranks would say? */
void mr_log_print(enum mr_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define mr_log(level, ...)                                                                                             \
    do {                                                                                                               \
        if ((int)(level) <= mr_config.log_level)                                                                       \
            mr_log_print(level, __VA_ARGS__);                                                                          \
    } while (0)

/* ---- clock: the only place that reads the time ------------------------------------------------------------------- */
uint64_t mr_clock_ns(void); /* CLOCK_MONOTONIC */

/* ---- counters: one table in stats.c ------------------------------------------------------------------------------ */
enum mr_stat {
    MR_STAT_EAGER_SENT,
    MR_STAT_RNDV_SENT,
    MR_STAT_HEADS_SENT,
    MR_STAT_TAILS_COPIED,
    MR_STAT_UNEXPECTED,
    MR_STAT_NO_CREDIT,
    MR_STAT_GRANTS_SENT,
    MR_STAT_SENDS_STALLED,
    MR_STAT_SENDS_HELD,
    MR_STAT_OUT_OF_ORDER,
    MR_STAT_SHM_SENT,
    MR_STAT_SHM_POOLED,
    MR_STAT_SHM_SINGLE_COPY,
    MR_STAT_NET_SENT,
    MR_STAT_NET_STRIPES,
    MR_STAT_NET_REWEIGHED,
    MR_STAT_NET_BEHIND,
    MR_STAT_REG_HITS,
    MR_STAT_REG_MISSES,
    MR_STAT_REG_ON_DEMAND,
    MR_STAT_REG_EVICTED,
    MR_STAT_REG_UNMAPPED,
    MR_STAT_REG_ENTRIES,
    MR_STAT_REG_ENTRIES_MOST,
    MR_STAT_REG_BYTES,
    MR_STAT_REG_BYTES_MOST,
    MR_STAT_CONNECTS,
    MR_STAT_CONNECT_RETRIES,
    MR_STAT_BROKEN,
    MR_STAT_REOPENED,
    MR_STAT_RESENT,
    MR_STAT_MOVED,
    MR_STAT_CHANGED,
    MR_STAT_EVICTED,
    MR_STAT_REFUSED,
    MR_STAT_RATIONED_MOST,
    MR_STAT_QPS_MOST,
    MR_STAT_RING_SENT,
    MR_STAT_RING_FULL,
    MR_STAT_RING_CREDITS,
    MR_STAT_RINGS_MOST,
    MR_STAT_RINGS_WITHDRAWN,
    MR_STAT_REWRITTEN,
    MR_STAT_UD_ZCOPY,
    MR_STAT_UD_NO_QP,
    MR_STAT_UD_RECALLED,
    MR_STAT_UD_MISPLACED,
    MR_STAT_UD_MISSING,
    MR_STAT_UD_STRAY,
    MR_STAT_PINGS,
    MR_STAT_QUESTIONS,
    MR_STAT_ACKS_SENT,
    MR_STAT_ACKS_CARRIED,
    MR_STAT_TIMEOUTS,
    MR_STAT_DUPLICATES,
    MR_STAT_WINDOW_MOST,
    MR_STAT_WINDOW_BYTES,
    MR_STAT_COUNT
};
extern uint64_t mr_stats[MR_STAT_COUNT]; /* written under the library's lock; tools look at any time */
const char *mr_stat_name(enum mr_stat s);
const char *mr_stat_help(enum mr_stat s);
enum mr_topic mr_stat_topic(enum mr_stat s);
/* It says how much there is now, and may fall; all others only grow. */
bool mr_stat_is_level(enum mr_stat s);
void mr_stats_print(void); /* one line of those that are not zero, to the log */
static inline void mr_stat_add(enum mr_stat s, uint64_t n)
{
    __atomic_store_n(&mr_stats[s], __atomic_load_n(&mr_stats[s], __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}
static inline void mr_stat_set(enum mr_stat s, uint64_t n)
{
    __atomic_store_n(&mr_stats[s], n, __ATOMIC_RELAXED);
}
static inline void mr_stat_most(enum mr_stat s, uint64_t n)
{
    if (n > __atomic_load_n(&mr_stats[s], __ATOMIC_RELAXED))
        __atomic_store_n(&mr_stats[s], n, __ATOMIC_RELAXED);
}
static inline uint64_t mr_stat_get(enum mr_stat s)
{
    return __atomic_load_n(&mr_stats[s], __ATOMIC_RELAXED);
}

/* ---- counters of rails: their names are here too; verbs/ keeps them with each rail ------------------------------- */
enum mr_rail_stat {
    MR_RAIL_PACKETS_SENT, /* those of short messages first, packets and bytes apart: each is one addition */
    MR_RAIL_PACKETS_RECEIVED,
    MR_RAIL_BYTES_SENT,
    MR_RAIL_BYTES_RECEIVED,
    MR_RAIL_STRIPES_WRITTEN,
    MR_RAIL_BYTES_WRITTEN,
    MR_RAIL_STRIPES_READ,
    MR_RAIL_BYTES_READ,
    MR_RAIL_RESENT,
    MR_RAIL_MOVED,
    MR_RAIL_REWEIGHED,
    MR_RAIL_OPENED,
    MR_RAIL_BROKEN,
    MR_RAIL_CLOSED,
    MR_RAIL_PORT_DOWNS,
    MR_RAIL_DOWN_NS,
    MR_RAIL_STAT_COUNT
};
const char *mr_rail_stat_name(enum mr_rail_stat s);
const char *mr_rail_stat_help(enum mr_rail_stat s);
#define MR_RAIL_SHARE_NAME "rail_share" /* of what peer/view.h computes */
extern const char mr_rail_share_help[];

#endif
