/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of this process, one table in stats.c, and the names of the counters that verbs/ keeps for each rail. MPI_T
 * shows the counters as performance variables, `mrrun --stats` in a table. Written with the library's lock held; any
 * thread reads.
 */
#ifndef MRMPI_STATS_H
#define MRMPI_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "libmrmpi/base/idioms.h"

/* The topics of settings and counters, for sorting in tools. */
enum mr_topic { MR_TOPIC_JOB, MR_TOPIC_MESSAGES, MR_TOPIC_RAILS, MR_TOPIC_CONNECTIONS, MR_TOPIC_COUNT };

/* ---- counters: one table in stats.c ------------------------------------------------------------------------------ */
enum mr_stat {
    MR_STAT_EAGER_SENT,
    MR_STAT_RNDV_SENT,
    MR_STAT_READY_SENT,
    MR_STAT_PREFIXES_SENT,
    MR_STAT_BOUNCES_COPIED,
    MR_STAT_BY_READ,
    MR_STAT_BY_WRITE,
    MR_STAT_BY_CROSSING,
    MR_STAT_BY_READY,
    MR_STAT_BY_DATAGRAMS,
    MR_STAT_BY_PACKETS,
    MR_STAT_BY_GET,
    MR_STAT_BY_SHARE,
    MR_STAT_BY_SPLIT,
    MR_STAT_PACKETS_ZCOPY,
    MR_STAT_UNEXPECTED,
    MR_STAT_NO_CREDIT,
    MR_STAT_CREDITS_SENT,
    MR_STAT_SENDS_STALLED,
    MR_STAT_SENDS_HELD,
    MR_STAT_OUT_OF_ORDER,
    MR_STAT_SHM_SENT,
    MR_STAT_SHM_POOLED,
    MR_STAT_SHM_SINGLE_COPY,
    MR_STAT_SHM_JOBS_SENT,
    MR_STAT_COLL_NODE,
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
    MR_STAT_REG_KEPT,
    MR_STAT_CONNECTS,
    MR_STAT_CONNECT_RETRIES,
    MR_STAT_BROKEN,
    MR_STAT_REOPENED,
    MR_STAT_RESENT,
    MR_STAT_MOVED,
    MR_STAT_DETACHED,
    MR_STAT_LOCKS,
    MR_STAT_LOCKS_CLEARED,
    MR_STAT_ENDS_READ,
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
    MR_STAT_UD_SENT,
    MR_STAT_UD_ZCOPY,
    MR_STAT_UD_NO_QP,
    MR_STAT_UD_RECALLED,
    MR_STAT_UD_MISPLACED,
    MR_STAT_UD_MISSING,
    MR_STAT_UD_STRAY,
    MR_STAT_KEEPALIVES,
    MR_STAT_QUESTIONS,
    MR_STAT_ACKS_SENT,
    MR_STAT_ACKS_CARRIED,
    MR_STAT_TIMEOUTS,
    MR_STAT_DUPLICATES,
    MR_STAT_WINDOW_MOST,
    MR_STAT_WINDOW_BYTES,
    MR_STAT_MODEL_COPY_MBPS,
    MR_STAT_MODEL_REGISTER_NS,
    MR_STAT_MODEL_REGISTER_BYTE_PS,
    MR_STAT_MODEL_TRIP_NS,
    MR_STAT_MODEL_POST_NS,
    MR_STAT_MODEL_PAGE_NS,
    MR_STAT_SEEN_COPY_MBPS,
    MR_STAT_SEEN_MEMORY_MBPS,
    MR_STAT_SEEN_REGISTER_NS,
    MR_STAT_SEEN_REGISTER_BYTE_PS,
    MR_STAT_SEEN_TRIP_NS,
    MR_STAT_SEEN_POST_NS,
    MR_STAT_SEEN_PAGE_NS,
    MR_STAT_COUNT
};
extern MR_OWN uint64_t mr_stats[MR_STAT_COUNT]; /* written under the library's lock; tools read at any time */
const char *mr_stat_name(enum mr_stat s);
const char *mr_stat_help(enum mr_stat s);
enum mr_topic mr_stat_topic(enum mr_stat s);
/* It says how much there is now, and may fall; all others only grow. */
bool mr_stat_is_level(enum mr_stat s);
void mr_stats_print(void); /* one line of all counters above zero, to the log */
static inline void mr_stat_add(enum mr_stat s, uint64_t n)
{
#ifdef __SANITIZE_THREAD__
    __atomic_store_n(&mr_stats[s], __atomic_load_n(&mr_stats[s], __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
#else
    mr_stats[s] += n; /* one instruction; an aligned 8-byte value is written as a whole */
#endif
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
uint64_t mr_stat_get(enum mr_stat s);

/* ---- counters of rails: their names are here too; verbs/ keeps them with each rail ------------------------------- */
enum mr_rail_stat {
    MR_RAIL_PACKETS_SENT, /* the counters of short messages first, packets and bytes apart: each is one addition */
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
    MR_RAIL_AILED,
    MR_RAIL_STAT_COUNT
};
const char *mr_rail_stat_name(enum mr_rail_stat s);
const char *mr_rail_stat_help(enum mr_rail_stat s);
#define MR_RAIL_SHARE_NAME "rail_share" /* computed by net/view/view.h */
extern const char mr_rail_share_help[];

#endif
