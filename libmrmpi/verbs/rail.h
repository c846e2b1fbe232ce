/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices and rails. A device is an HCA, opened once. A rail is one of its active ports. It has one completion queue
 * for everything, one shared receive queue whose buffers are filled by all connected queue pairs, one UD queue pair for
 * setting up connections and, where packets may go as datagrams, two more for those, with a receive queue of their own.
 */
#ifndef MRMPI_VERBS_RAIL_H
#define MRMPI_VERBS_RAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/packet.h"
#include "libmrmpi/verbs/pkey.h"

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

struct ibv_context;
struct ibv_pd;
struct ibv_cq;

struct mr_device {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    unsigned index;
    char name[64];
    bool fatal;                      /* the device went away: nothing can be posted any more, until it is opened anew */
    uint64_t lost_ns, reopen_ns;     /* fatal: since when, and when it is looked for again */
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
 * reserve: peers know its queue pair, and it becomes the queue pair of the first partition that the port gets later.
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
    unsigned signal_every;       /* at least one of so many requests of a queue pair is signaled */
    unsigned num_qps;
    uint64_t count[MR_RAIL_STAT_COUNT]; /* stays when the rail is closed */
    uint16_t wished_pkey;               /* by setting or fabricd; 0: none */
    unsigned num_partitions;            /* in the order of the choice (pkey.h) */
    struct mr_rail_partition partition[MR_PARTITIONS_MAX];
    bool keyless_told; /* logged that some peer shares no partition with it */
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

#endif
