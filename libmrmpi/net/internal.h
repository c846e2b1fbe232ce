/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of channel net. */
#ifndef MRMPI_NET_INTERNAL_H
#define MRMPI_NET_INTERNAL_H

#include "libmrmpi/net/bulk/bulk.h"
#include "libmrmpi/net/stripe/keys.h"
#include "libmrmpi/net/answers.h"
#include "libmrmpi/net/grant.h"
#include "libmrmpi/net/net.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/conn/conn.h"

/* A peer, with the channel's state. */
struct mr_net_peer {
    struct mr_bulk_peer base;
    struct mr_ack in;                /* ACKs owed to the peer for its packets, with a lossy link */
    unsigned shared_by;              /* mr_peers.num_relying at the last limit of packets under way */
    uint32_t flight_max;             /* packets that may be under way on such links */
    uint64_t sampled_ns;             /* when the last sample of the round-trip time was taken */
    struct mr_pace *pace;            /* of all packets to the peer, granted by the peer; NULL: no limit */
    uint32_t pace_told;              /* the last value sent to the peer, in kB/s */
    bool rings;                      /* it shall have rings to write into here (rings.c) */
    uint32_t grant_told, grant_seen; /* the last grant sent, in kB/s; its packets at the last count of senders */
    struct mr_peer *next_active;
};

/* Pending report about a rail to fabricd: connections that broke since the last report. */
struct mr_rail_breaks {
    uint64_t since_ns, told_ns; /* of the first break; of the last report */
    uint32_t broken, resent;    /* resent: the rail's counter at the last report */
    bool left;                  /* a way from the rail is not used, for its losses */
    int rank;                   /* to this peer's rail, */
    uint8_t remote;
    bool several; /* and to others */
};

/* Of all peers. */
struct mr_net {
    struct mr_ahead adapter[MR_RAILS_MAX]; /* of the time of our rails' adapters, */
    unsigned message_ns[MR_RAILS_MAX];     /* time of a message there */
    struct mr_grants grants;               /* grants to our senders (grant.c) */
    struct mr_rail_breaks breaks[MR_RAILS_MAX];
    struct mr_pace_report reads; /* fabricd's knowledge of mr_peers.pace */
    bool peers_pace;             /* some have limits for our packets */
    uint64_t pace_until_ns;      /* time at which a waiting packet may go; 0: none waits */
    uint64_t blunt_ns;           /* a nap that was far too long has ended then */
    struct mr_assemblies assemblies;
    bool has_lossy_link; /* with some peer */
    bool parting;        /* ACKs are said at once */
    bool rings;          /* some peers may have rings */
    enum mr_ring_design ring_design;
    bool by_ring;        /* large messages go through rings, not by RDMA */
    unsigned parts;      /* most receive buffers of a packet */
    uint64_t clock_ns;   /* when rely.c read the clock last */
    uint64_t idle_ns;    /* beginning of the idle time */
    unsigned caps;       /* enum mr_vc_caps */
    bool zsends_no_more; /* memory could not be registered once */
    struct mr_answers answers;
    unsigned polls, ring_polls;
    uint64_t news_ns; /* when news were polled for */
};
extern MR_OWN struct mr_net mr_net;

static inline struct mr_net_peer *mr_net_of(const struct mr_peer *p)
{
    return (struct mr_net_peer *)p;
}

/* A packet has come, from any peer, since a packet went to this peer. */
static inline bool mr_peer_answers(const struct mr_peer *p)
{
    return p->arrived != mr_peers.arrived;
}

/* Requests that are with the adapter, as far as their completions have been taken. */
static inline unsigned mr_link_under_way(const struct mr_link *l)
{
    return mr_kind_is(l->kind, MR_IS_CONNECTED) ? l->qp.depth - l->qp.room : 0;
}
/* The next packet needs the time, and the amount under way. In turn.c. */
void mr_net_tell_time(struct mr_peer *p, size_t payload);
/* The subchannel of a packet, not among those excluded; p->num_now: none. */
static inline unsigned mr_packet_turn(struct mr_peer *p, uint32_t excluded, size_t payload)
{
    const struct mr_policy *policy = &mr_peers.policy[MR_POLICY_SMALL];

    if (p->num_now == 1)
        return mr_sched_pick(policy, &p->packet_turn, p->load, 1, excluded, payload);
    p->packet_turn.answers = mr_peer_answers(p) && !p->num_large;
    if (mr_sched_wants_time(policy, &p->packet_turn, p->num_now, payload))
        mr_net_tell_time(p, payload);
    return mr_sched_pick(policy, &p->packet_turn, p->load, p->num_now, excluded, payload);
}
/* The packet was posted there. */
static inline void mr_packet_taken(struct mr_peer *p, unsigned i, size_t payload)
{
    p->arrived = mr_peers.arrived;
    mr_sched_charge(&mr_peers.policy[MR_POLICY_SMALL], &p->packet_turn, p->load, p->num_now, i, payload);
}

/* ---- arrive.c: as struct mr_verbs_handlers, struct mr_connect_upcalls ---- */
void mr_net_packet(struct mr_rail *rail, const void *data, size_t len);
void mr_net_segment(struct mr_rail *rail, const void *data, size_t len, const uint32_t *imm);
void mr_net_landed(struct mr_rail *rail, uint32_t imm);
void mr_net_confirmed(struct mr_link *l, unsigned n);

/* ---- rely.c ---------------------------------------------------------------------------------------------------- */

/* Once, when the adapters are open: how many receive buffers a packet takes. */
void mr_rely_init(void);
/* A lossy link leads to this peer, or from it. */
void mr_rely_begin(struct mr_peer *p);
/* Posts a packet of a peer with a lossy link, and notes the post in its window. As mr_link_ops.send. */
int mr_rely_send(struct mr_peer *p, struct mr_link *l, struct mr_packet *k);
/*
 * A packet that carries an ACK or wants one, or that comes while a peer has a lossy link; the ACK begins at payload +
 * len.
 */
void mr_rely_arrived(struct mr_hdr *hdr, const void *payload, size_t len);
/* Stamps all traffic since the last call with the current time. */
void mr_rely_time(void);
/* Does pending work. idle: all arrivals were handled. now_ns: 0 if the clock was not read; never if idle. */
void mr_rely_poll(bool idle, uint64_t now_ns);

/* ---- rings.c ---- */
/* Packets go over links that may have rings. */
void mr_rings_established(struct mr_peer *p);
/* Packets have been counted: others may deserve rings now. */
void mr_rings_tick(void);
/* True if it was a control message about a ring. */
bool mr_rings_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);

/* ---- post.c: as struct mr_channel_ops ---- */
int mr_net_send(struct mr_vc *vc, const struct mr_hdr *hdr, const void *payload, size_t len);
bool mr_net_send_short(struct mr_vc *vc, const void *payload, size_t len, int rank, int tag, uint32_t ctx);
int mr_net_send_made(struct mr_vc *vc, const struct mr_hdr *hdr, size_t len, void *scratch, mr_vc_make_fn *make,
                     const void *what);
void mr_net_zsend_done(const struct mr_zsend_from *zsend); /* as struct mr_verbs_handlers */
unsigned mr_net_waiting(struct mr_vc *vc);
/* Posts waiting packets, as far as there is room. */
void mr_net_push(struct mr_peer *p);

/* ---- sizes.c: the same ---- */
unsigned mr_net_find_caps(void); /* for mr_net.caps; devices are open */
void mr_net_sizes(struct mr_vc *vc);
unsigned mr_net_caps(int rank, size_t len);

/* The length limit of the fast path to the peer (fast_below in struct mr_vc), after a change of its conditions. */
void mr_net_renew_short(struct mr_peer *p);
void mr_net_renew_shorts(void); /* to all peers */

/* ---- rates.c ---- */
/* As fabricd says of this process and each of its rails at present: ahead of the bulk, and reads. */
void mr_rates_take(void);
void mr_rates_take_paces(uint64_t now_ns);
/* Reports reads to fabricd, while mr_peers.paced. */
void mr_rates_tell_reads(uint64_t now_ns);

/* ---- health.c ---- */
/* Our rails' health, as fabricd says it: traffic moves, and peers are told. */
void mr_net_take_health(void);
/* A subchannel has broken, or the doubts of a peer's subchannels have changed. */
void mr_net_note_break(struct mr_sub *sub);
void mr_net_note_doubt(struct mr_peer *p);
/* Sends fabricd hints about rails when their time has come; ends: the process ends, and hints do not wait. */
void mr_net_tell_breaks(uint64_t now_ns, bool ends);
/* Tells a peer that does not know yet. */
void mr_net_tell_health(struct mr_peer *p);
/* True if it was a peer's message about its rails' health. */
bool mr_net_health_control(struct mr_peer *p, const struct mr_hdr *hdr);

/* ---- guests.c ---- */
extern const struct mr_guest_rails mr_net_guests;

/* ---- poll.c, start.c: as struct mr_channel_ops ---- */
int mr_net_poll(void);
int mr_net_init(const struct mr_launch *launch);
void mr_net_finalize(void);

#endif
