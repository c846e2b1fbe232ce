/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers on other hosts: their subchannels, the state of connecting to them, and the packets that wait for them. This is
 * what other rooms use; subs.h is for conn/, internal.h for conn/peer/ only. All functions are called with the
 * library's lock held.
 */
#ifndef MRMPI_PEER_H
#define MRMPI_PEER_H

#include "libmrmpi/channel/channel.h"
#include "libmrmpi/conn/cm/conn.h"
#include "libmrmpi/conn/fabric/client.h"
#include "libmrmpi/conn/peer/events.h"
#include "libmrmpi/conn/peer/sub.h"
#include "libmrmpi/conn/reliable/rtt.h"
#include "libmrmpi/conn/reliable/window.h"
#include "libmrmpi/conn/route/address.h"
#include "libmrmpi/conn/route/ahead.h"
#include "libmrmpi/conn/route/pace.h"
#include "libmrmpi/conn/route/pair.h"
#include "libmrmpi/conn/route/rules.h"
#include "libmrmpi/conn/route/sched.h"

struct mr_peer_own;
struct mr_connect_peer;

struct mr_peer {
    int rank;
    int error;       /* negative errno: it is lost, nothing is sent to it any more */
    bool up;         /* connected: packets can be posted */
    bool backlogged; /* is in the list of that name, as relying below */
    struct mr_peer *next_connecting, *next_backlogged;
    struct mr_vc *vc;
    struct mr_cm_conn cm;
    struct mr_address *address; /* as long as its rails; mr_address_none: it has not come */
    unsigned num_subs, num_now; /* of both epochs, of one */
    unsigned num_spare;         /* behind those of one: for pairs of rails and paths used while no other leads there */
    struct mr_sub *sub;
    struct mr_sub *now;   /* those of the present epoch, which carry what is sent now */
    struct mr_load *load; /* theirs. up: open, and the port is active */
    uint8_t epoch;        /* its number; wraps */
    uint32_t *steer;      /* with rules: excluded subchannels by use and size class of a packet (steer.c) */
    uint32_t arrived;     /* mr_peers.arrived when a packet was last sent there */
    struct mr_sched packet_turn;
    bool fast; /* up, no rules, no lossy links: of a short packet there is nothing to ask but whose turn it is */
    struct mr_link *fast_link; /* plain: the one that takes all of those; NULL: they have turns */
    struct mr_link **small;    /* by subchannel of the present epoch: the link of such packets, if it may carry some */
    uint32_t excluded;         /* set of subchannels that carry no packets, since better ones are open */
    uint32_t excluded_far;     /* those of them that are excluded by their place only (policy near) */
    uint32_t rdma;             /* set of those that carry large messages */
    uint32_t lives;            /* of the peer's rails, as it said last: as mr_verbs.lives, */
    uint16_t moves;            /* and mr_verbs.moves */
    bool tracked;              /* they lose some: the receiver reports what has landed (net/stripe/track.c) */
    unsigned num_pending;      /* queue pairs that the room above has under way for it */
    struct mr_window out;      /* packets that wait, or are not confirmed */
    bool has_lossy_link;       /* packets in either direction go over links that lose some (net/rely.c) */
    bool relying;
    struct mr_peer *next_relying;
    uint64_t heard_ns;        /* its last packet or acknowledgement */
    unsigned num_large;       /* large messages under way, by writes or by reads of ours */
    bool needed;              /* large messages that were promised wait for a connection */
    unsigned num_paths;       /* spare subchannels of further paths: the first of all spare ones */
    uint32_t until_paths;     /* bytes of large messages until fabricd is asked for more paths; 0: it is not */
    uint32_t sick;            /* its rails' health, as it says (conn/route/health.h) */
    uint32_t sick_told;       /* the same of ours, as it was told */
    uint32_t doubts;          /* what it takes off the ways from its rails for losses that it sees (conn/ways.c), */
    uint32_t doubts_told;     /* and what we do, as it was told */
    struct mr_ahead *granted; /* by level, what the peer grants; NULL: no limit (net/grant.c) */
    struct mr_shares *shares; /* what its weights give each rail; NULL: no rail has led there (net/view/) */
    uint32_t counted, rate;   /* as of the last tick (conn/budget.c): packets in both directions, per second */
    uint32_t use;             /* and what it is worth by them: the later ones count for more */
    struct mr_peer_own *own;  /* what conn/peer/ keeps of it, */
    struct mr_connect_peer *connect; /* and conn/ */
};

struct mr_peers {
    size_t peer_size; /* of each: the rooms above extend struct mr_peer, which is the first member of theirs */
    const struct mr_launch *launch;
    uint32_t run; /* of this run of the job, in connection messages */
    struct mr_fabric_qos qos;
    struct mr_ahead ahead[MR_RAILS_MAX][MR_LEVEL_PACKETS]; /* of each of our rails and level that goes ahead, */
    bool ahead_limited;                                    /* some of which have a rate */
    struct mr_pace pace[MR_RAILS_MAX];                     /* of our reads over each rail, */
    bool paced;                                            /* some of which have a rate, */
    unsigned paced_parts;                                  /* that have been posted; wraps */
    struct mr_peer **peer;                                 /* [launch->size], made on demand */
    /* Lists of peers: handshakes that are not over, in order; those with something to flush, something due, those that
     * are lost and drain, those with packets or receives that may be late. */
    struct mr_peer *connecting, *backlogged, *recovering, *failing, *relying;
    struct mr_kinds kinds;
    uint8_t our_kinds;     /* the same as a set */
    uint8_t rationed;      /* kinds of links that only some peers have: set */
    bool untimed;          /* something has gone or come at a time that rely.c does not know */
    bool attentive;        /* some peer has a lossy link, or a handshake is under way: packets may be signs */
    struct mr_rules rules; /* of MRMPI_RULES; num is 0: none */
    struct mr_policy policy[MR_POLICY_CLASSES];
    unsigned num_relying;  /* peers in that list */
    unsigned num_isolated; /* peers to which no subchannel is open at present */
    bool unwell;           /* some rail, here or of a peer, is or was not healthy */
    bool doubtful;         /* conn/silence.c: something that is under way does not move */
    bool recovery_due;     /* one of those that are recovering has something to send or do now */
    uint32_t arrived;      /* packets, of all peers */
};
extern MR_OWN struct mr_peers mr_peers;

/* ---- at the start: 0 or a negative errno, which was logged ------------------------------------------------------- */

int mr_steer_init(void);  /* reads MRMPI_RULES */
int mr_spread_init(void); /* reads the policies; rails are open */
int mr_address_publish(void);
void mr_addresses_close(void);
void mr_peers_free(void);

/* ---- a peer ------------------------------------------------------------------------------------------------------ */

bool mr_peer_is_remote(int rank); /* it is on another host */
/* 0: its address is there. -EAGAIN: the launcher's thread asks for it. Other negative errno: it has none; logged. */
int mr_peer_fetch_address(struct mr_peer *p);
void mr_peer_backlog(struct mr_peer *p); /* something of it waits for room: try again from poll */
void mr_peer_watch(struct mr_peer *p);   /* its packets or receives may be late: look at them in mr_rely_poll() */
void mr_peer_lost(struct mr_peer *p, int error);            /* upper layers learn of it from the next poll */
bool mr_steer_by_rdma(const struct mr_peer *p, size_t len); /* rules allow RDMA for that length */
/* Is this rail of ours farther from the process than another one, under a policy of small messages that cares? */
bool mr_spread_is_far(unsigned rail);
/* Of a set of subchannels those that the policy allows; all, if it allows none of them. */
uint32_t mr_spread_narrow(const struct mr_peer *p, enum mr_policy_class c, uint32_t set);

void mr_where_news(void);    /* fabricd has answered where peers are */
void mr_spread_news(void);   /* fabricd has another policy */
void mr_peers_reweigh(void); /* after mr_spread_news(): the weights of all peers begin anew */
/* The health of our rails, or of the peer's, has changed: its traffic moves. */
void mr_peer_take_health(struct mr_peer *p);
int mr_peers_report(void); /* report lost peers that have drained; how many */

/* ---- subchannels, looked at -------------------------------------------------------------------------------------- */

/* Its number among those of its epoch, which is the same in the other one. */
static inline unsigned mr_sub_place(const struct mr_sub *sub)
{
    unsigned i = (unsigned)(sub - sub->peer->sub), all = sub->peer->num_now + sub->peer->num_spare;

    return i < all ? i : i - all;
}
static inline bool mr_sub_is_current(const struct mr_sub *sub)
{
    return sub->parity == (sub->peer->epoch & 1);
}
/* It is open, but not for long. */
static inline bool mr_sub_retires(const struct mr_sub *sub)
{
    return sub->closing || !mr_sub_is_current(sub);
}

/* Which subchannels may not carry this packet: set. The peer has mr_peer.steer. */
static inline uint32_t mr_steer_excluded(const struct mr_peer *p, enum mr_rule_use use, size_t payload)
{
    return p->steer[use * (mr_peers.rules.num_sizes + 1) + mr_rules_size_class(&mr_peers.rules, payload)];
}

/* May a message go ahead of the bulk, as far as this bucket says? */
static inline bool mr_bucket_lets(struct mr_ahead *a, size_t len)
{
    return !a->empty || (!mr_ahead_waits(a, len) && mr_ahead_fill(a, mr_clock_ns()));
}

/*
 * May a message of this level go ahead of the bulk over the subchannel? Its budget must allow that; and where a lane of
 * medium messages has not carried the last ones yet, one more would hold up all that comes after it.
 */
#define MR_MEDIUM_MOST                                                                                                 \
    2u /* medium messages under way on a link: each of their packets waits its turn in the fabric                      \
        */
static inline bool mr_may_go_ahead(const struct mr_sub *sub, unsigned level, size_t len)
{
    const struct mr_link *l = sub->level[level];

    if (level != MR_LEVEL_SMALL && l && mr_kind_is(l->kind, MR_IS_CONNECTED) &&
        l->qp.depth - l->qp.room >= MR_MEDIUM_MOST)
        return false;
    return mr_bucket_lets(&mr_peers.ahead[sub->rail->index][level], len);
}

#endif
