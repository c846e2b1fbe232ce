/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FD_STATE of the protocol (proto.h): the class of a process's job, its service levels and the rails of its host. An
 * FD_STATE always holds the whole state: a client needs only the last.
 *
 * The layout: struct fd_state up to its last rail, then the struct fd_levels, then a struct fd_spread if the policy has
 * one, then a struct fd_health if the client asked for health. header.length tells the parts.
 */
#ifndef FABRICD_PROTO_STATE_H
#define FABRICD_PROTO_STATE_H

#include "fabricd/proto/proto.h"

/* One port of an HCA of this host. Ports of other link layers than InfiniBand are listed too. */
struct fd_rail {
    char device[FD_DEV_MAX];
    uint8_t port;       /* 1.. */
    uint8_t lmc;        /* the port has 2^lmc LIDs, from lid on */
    uint8_t state;      /* as ibv_port_state: 1 down, 2 init, 3 armed, 4 active */
    uint8_t phys_state; /* as ibv_port_attr.phys_state: 5 link up */
    uint16_t lid;
    uint16_t sm_lid;
    uint32_t rate_mbps; /* signalling rate from sysfs: 4X SDR is 10000 */
    uint8_t infiniband; /* 1: InfiniBand link layer, 0: Ethernet or other */
    /*
     * 1: the port is active, and the library should use the rail. In an FD_STATE without struct fd_health also 0 if the
     * rail's health is 0 while that of another usable rail is not.
     */
    uint8_t usable;
    /*
     * In an FD_STATE: the part of the rate, of FD_AHEAD_ALL, that this client may send on each level ahead of its
     * class's bulk (small messages, messages between small and large). Traffic beyond goes on sl_bulk. 0: not given.
     */
    uint16_t ahead;
};
#define FD_AHEAD_ALL 65536u

#define FD_CHANGED_CLASS  1u /* fd_state.changed: the job's class or its service levels */
#define FD_CHANGED_RAILS  2u
#define FD_CHANGED_POLICY 4u     /* generation or verified */
#define FD_CHANGED_PATHS  8u     /* the subnet's forwarding: ask again for paths */
#define FD_CAN_PLACES     0x100u /* in the answer to a hello with FD_HELLO_PLACES: this daemon knows FD_WHERE */
#define FD_CAN_PATHS      0x400u /* in the answer to a hello with FD_HELLO_PATHS: this daemon knows FD_PATHS */
#define FD_NO_JOB         0x200u /* with FD_HELLO_KNOWN: the daemon has no such job, or the client is not of it */

struct fd_state {
    struct fd_header h;
    int32_t status;   /* 0: a policy is in force; -ENOENT: none yet (service levels 0); else a negative errno */
    uint16_t changed; /* FD_CHANGED_ bits; in the answer to a hello FD_CAN_ bits, FD_NO_JOB */
    /*
     * How much of an adapter's message rate this client's small messages may take, of FD_AHEAD_ALL: with more they go
     * on sl_bulk. 0: not said.
     */
    uint16_t messages;
    uint64_t generation; /* goes up whenever a policy is put in force; 0: none */
    uint32_t small_max;  /* messages of up to so many bytes (and all control messages) travel on sl_small */
    uint8_t verified;    /* 1: every port of the fabric was found to have the policy's tables */
    uint8_t sl_small;    /* 0..15 */
    uint8_t num_lanes;   /* 1..FD_LANES_MAX service levels for large messages, to be used in turn */
    uint8_t num_rails;   /* 0..FD_RAILS_MAX */
    uint8_t sl_bulk[FD_LANES_MAX];
    char class_name[FD_NAME_MAX];
    char job[FD_JOB_MAX]; /* the job of this state, as asked */
    struct fd_rail rails[FD_RAILS_MAX];
    /* After rails[num_rails - 1] come struct fd_level, struct fd_spread, or nothing. */
};

/* Length of an FD_STATE with n rails. */
#define FD_STATE_LENGTH(n) ((uint32_t)(sizeof(struct fd_state) - (FD_RAILS_MAX - (n)) * sizeof(struct fd_rail)))

/*
 * How small and large messages of the job's class shall be spread over rails, in the words of MRMPI_POLICY_SMALL and
 * MRMPI_POLICY_LARGE; empty: the policy says nothing. The last part of an FD_STATE, if the policy says something.
 */
struct fd_spread {
    char small[FD_SPREAD_MAX], large[FD_SPREAD_MAX];
};

/*
 * A level between small and large. All levels follow the last rail, at most FD_MEDIUM_MAX, the smallest first;
 * header.length has their number. A client that did not ask for levels, or asks a daemon that does not know levels,
 * sends its medium messages with the large ones.
 */
struct fd_level {
    uint32_t max;      /* messages of up to so many bytes, and more than the level before; ascending */
    uint8_t num_lanes; /* 1..FD_LANES_MAX service levels, to be used in turn */
    uint8_t reserved[3];
    uint8_t sl[FD_LANES_MAX]; /* 0..15 */
};

/*
 * Health and partition of the rails, in their order; the last part of an FD_STATE. weight multiplies the part of the
 * traffic that the rail would get otherwise, in FD_HEALTHY parts: 0 means no traffic while another rail leads to the
 * peer.
 */
#define FD_HEALTHY 1024u
enum fd_rail_state { FD_RAIL_HEALTHY, FD_RAIL_DEGRADED, FD_RAIL_BAD, FD_RAIL_DRAINED };
struct fd_rail_health {
    uint16_t weight; /* 0..FD_HEALTHY */
    uint8_t state;   /* enum fd_rail_state; a client treats an unknown state by the weight alone */
    uint8_t reserved;
    uint16_t pkey; /* the partition of the job's processes over the rail, 15 bits; 0: not given */
    uint16_t reserved2;
};
struct fd_health {
    struct fd_rail_health rail[FD_RAILS_MAX];
};

/* The first of them. num_rails must have been looked at. */
static inline struct fd_level *fd_state_levels(const struct fd_state *s)
{
    return (struct fd_level *)((uintptr_t)s + FD_STATE_LENGTH(s->num_rails));
}

/* Number of levels in a state of len bytes; -1: no state has this length. */
static inline int fd_state_num_levels(const struct fd_state *s, size_t len)
{
    size_t rest;

    if (len < FD_STATE_LENGTH(0) || s->num_rails > FD_RAILS_MAX || len < FD_STATE_LENGTH(s->num_rails))
        return -1;
    rest = len - FD_STATE_LENGTH(s->num_rails);
    if (rest >= sizeof(struct fd_health))
        rest -= sizeof(struct fd_health);
    if (rest >= sizeof(struct fd_spread))
        rest -= sizeof(struct fd_spread);
    return rest % sizeof(struct fd_level) || rest > FD_MEDIUM_MAX * sizeof(struct fd_level)
               ? -1
               : (int)(rest / sizeof(struct fd_level));
}

/* The spread of a state with num_levels levels; NULL: the state has none. */
static inline struct fd_spread *fd_state_spread(const struct fd_state *s, size_t len, int num_levels)
{
    struct fd_level *end = fd_state_levels(s) + num_levels;
    size_t rest = num_levels >= 0 ? len - (size_t)((uintptr_t)end - (uintptr_t)s) : 0;

    return rest == sizeof(struct fd_spread) || rest == sizeof(struct fd_spread) + sizeof(struct fd_health)
               ? (struct fd_spread *)end
               : NULL;
}

/* The health of a state with num_levels levels; NULL: the state has none. */
static inline struct fd_health *fd_state_health(const struct fd_state *s, size_t len, int num_levels)
{
    struct fd_level *end = fd_state_levels(s) + num_levels;
    size_t rest = num_levels >= 0 ? len - (size_t)((uintptr_t)end - (uintptr_t)s) : 0;

    return rest >= sizeof(struct fd_health) ? (struct fd_health *)((uintptr_t)s + len - sizeof(struct fd_health))
                                            : NULL;
}

/* True if the level is in range, and for larger messages than the levels up to below. */
static inline bool fd_level_is_sane(const struct fd_level *l, uint32_t below)
{
    bool sane = l->max > below && l->num_lanes >= 1 && l->num_lanes <= FD_LANES_MAX;

    for (unsigned i = 0; sane && i < l->num_lanes; i++)
        sane = l->sl[i] <= 15;
    return sane;
}

/* The longest FD_STATE. */
struct fd_state_long {
    struct fd_state s;
    struct fd_level more[FD_MEDIUM_MAX];
    struct fd_spread spread;
    struct fd_health health;
};

static_assert(sizeof(struct fd_rail) == 80, "layout");
static_assert(sizeof(struct fd_state) == 144 + 32 * 80, "layout");
static_assert(sizeof(struct fd_level) == 16, "layout");
static_assert(sizeof(struct fd_spread) == 192, "layout");
static_assert(sizeof(struct fd_health) == 256, "layout");
static_assert(FD_MEDIUM_MAX * sizeof(struct fd_level) + sizeof(struct fd_spread) < sizeof(struct fd_health),
              "the length tells what follows");
static_assert(FD_MEDIUM_MAX * sizeof(struct fd_level) < sizeof(struct fd_spread), "the length tells what follows");

#endif
