/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peers on other hosts: for each, its subchannels (pair of rails, LID path, service level), the state of connecting
 * to it, and what waits to be sent. Shared by rail/net.c (the channel), rail/peer.c (connecting and failing) and
 * channel/rc_*.c (moving bytes).
 */
#ifndef MRMPI_NET_H
#define MRMPI_NET_H

#include "libmrmpi/channel/channel.h"
#include "libmrmpi/fabric/client.h"
#include "libmrmpi/rail/adapt.h"
#include "libmrmpi/rail/filter.h"
#include "libmrmpi/rail/sched.h"
#include "libmrmpi/verbs/connect.h"
#include "libmrmpi/verbs/regcache.h"
#include "libmrmpi/verbs/verbs.h"

_Static_assert(MR_SUBS_MAX == MR_CM_SUBS_MAX && MR_SUBS_MAX <= MR_STRIPES_MAX, "one notification tells all stripes");

/* What a rank publishes about itself. */
struct mr_card {
    uint32_t magic;
    uint16_t version, num_rails;
    char host[64];
    struct mr_rail_addr rail[MR_RAILS_MAX]; /* only num_rails of them travel */
};

enum mr_level { MR_LEVEL_SMALL, MR_LEVEL_BULK, MR_LEVELS };

struct mr_sub {
    struct mr_peer *peer;
    struct mr_rail *rail;
    uint8_t remote_rail, path;
    struct mr_qp qp[MR_LEVELS]; /* the second only if the levels differ */
    struct mr_qp *level[MR_LEVELS];
    struct mr_stripe_op *waiting, **waiting_end; /* stripes that found no room */
};

struct mr_pending {
    struct mr_pending *next;
    size_t len;
    struct mr_hdr hdr;
    unsigned char payload[];
};

struct mr_peer {
    int rank;
    int error;                            /* lost; nothing is sent any more */
    bool up;                              /* packets can be posted */
    bool connecting, backlogged, failing; /* is in the list of that name */
    struct mr_peer *next_connecting, *next_backlogged, *next_failing;
    struct mr_vc *vc;
    struct mr_cm_conn cm;
    struct mr_card card;
    unsigned num_subs;
    struct mr_sub *sub;
    struct mr_load load[MR_SUBS_MAX];
    struct mr_sched packet_turn, stripe_turn;
    struct mr_adapt adapt;
    struct mr_pending *pending, **pending_end;
    unsigned num_pending;
    struct mr_put *puts; /* not yet complete */
};

struct mr_net {
    const struct mr_launch *launch;
    uint32_t run; /* of this run of the job, in connection messages */
    uint32_t next_id;
    struct mr_fabric_qos qos;
    struct mr_regcache regs;
    struct mr_landings landings;
    struct mr_peer **peer; /* [launch->size], made on demand */
    struct mr_peer *connecting, *backlogged, *failing;
    unsigned open_puts;
    unsigned caps; /* enum mr_vc_caps */
    unsigned idle_polls, polls;
};
extern struct mr_net mr_net;

/* ---- peer.c ---------------------------------------------------------------------------------------------------- */

/* The peer of that rank, made if need be; NULL: no memory. Connecting begins with mr_peer_connect(). */
struct mr_peer *mr_peer_get(int rank);
void mr_peer_connect(struct mr_peer *p);
void mr_peer_datagram(const void *data, size_t len);
/* Timers of those that are being connected. */
void mr_peers_tick(void);
/* Take it as lost: said upwards from the next poll. */
void mr_peer_lost(struct mr_peer *p, int error);
/* Tell above of what was lost. Number of peers. */
int mr_peers_report(void);
void mr_peers_rail_changed(struct mr_rail *rail);
/* Lose those to whom no port of ours has been up for so long that a queue pair with work would have given up. */
void mr_peers_check_ports(uint64_t now_ns);
void mr_peers_free(void);
/* Publish how we can be reached. */
int mr_card_publish(void);

/* ---- net.c ----------------------------------------------------------------------------------------------------- */

/* Something of this peer waits for room: try again from poll. */
void mr_net_backlog(struct mr_peer *p);
/* The first of the packets that wait is taken from the queue, sent or not. */
void mr_net_pending_pop(struct mr_peer *p);

#endif
