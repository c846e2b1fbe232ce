/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conn: peers on other hosts. Peers are connected on demand, and stay connected: handshakes, recovery, epochs of
 * service levels, budgets of connections, keepalive. The interface for net/.
 *
 * A peer (struct mr_peer) has subchannels (struct mr_sub), and a subchannel has links (verbs/verbs.h). conn/ makes,
 * opens and breaks them; net/ sends over them, and subscribes to their events (struct mr_peer_events). net/ extends
 * struct mr_peer by its own state, and reads the members here; a member that net/ writes says so. The pure parts that a
 * peer embeds have headers of their own: send windows and acknowledgements (reliable/), turns, weights, budgets and
 * paces (route/), handshakes (cm/), the client of fabricd (fabric/).
 *
 * All functions are called with the library's lock held.
 */
#ifndef MRMPI_CONN_H
#define MRMPI_CONN_H

#include "libmrmpi/base/record.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/conn/cm/conn.h"
#include "libmrmpi/conn/fabric/client.h"
#include "libmrmpi/conn/fabric/names.h"
#include "libmrmpi/conn/reliable/ack.h"
#include "libmrmpi/conn/reliable/loss.h"
#include "libmrmpi/conn/route/address.h"
#include "libmrmpi/conn/route/ahead.h"
#include "libmrmpi/conn/route/health.h"
#include "libmrmpi/conn/route/pace.h"
#include "libmrmpi/conn/route/quota.h"
#include "libmrmpi/conn/route/rules.h"
#include "libmrmpi/conn/route/sched.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

struct mr_peer;
struct mr_sub;

/* ---- subchannels ------------------------------------------------------------------------------------------------- */

/*
 * A subchannel: a pair of rails, a LID path and a kind of link. Bytes are counted and weighed by subchannel. Each of
 * its service levels has a link: the first for large messages, and others if smaller messages have another level. A
 * level without a link of its own uses that of the next larger messages. Both ends name a subchannel by both rails,
 * path and kind; its place in mr_peer.sub is its own end's.
 */
struct mr_sub_own;
struct mr_connect_sub;

enum mr_sub_state {
    MR_SUB_CLOSED, /* no queue pairs */
    MR_SUB_OPENING,
    MR_SUB_OPEN,
    MR_SUB_BROKEN, /* a link of it failed, at either end; each end tells the other (conn/recovery.c) */
};

/* Is generation a of a subchannel later than b? They wrap: at most a hundred are apart. */
static inline bool mr_is_later(uint8_t a, uint8_t b)
{
    return (int8_t)(a - b) > 0;
}

struct mr_sub {
    struct mr_peer *peer;
    struct mr_rail *rail;
    uint8_t remote_rail, path;
    uint8_t kind;       /* enum mr_link_kind */
    uint8_t parity;     /* of the epochs that it serves: 0 or 1 (conn/epoch.c) */
    uint8_t epoch;      /* in which it is in use: the peer alternates between two of different parity */
    uint8_t copy;       /* of subchannels equal in all else, for classes of several lanes */
    bool spare;         /* of a pair of rails, or a path, that is used only while no other leads there */
    bool chosen;        /* spare; but large messages use the path beside others */
    bool closing;       /* nothing new goes over it: the peer's connections are given up (conn/) */
    uint16_t pkey;      /* of our rail: the partition of its queue pairs; while closed, the last partition */
    uint8_t generation; /* of its queue pairs, the present or the next ones; wraps */
    uint8_t peer_from;  /* the peer's generations before this one are gone */
    bool refused;       /* it broke since the peer's adapter refused an access to memory */
    bool lossy;         /* it broke since packets were lost on its way; until its port has been down */
    uint32_t doubt;     /* reduction of its weight by evidence of loss, of MR_WEIGHT_MAX (conn/ways.c) */
    enum mr_sub_state state;
    unsigned num_links;   /* links with memory; some may be closed */
    struct mr_link *link; /* NULL: never opened */
    struct mr_link *level[MR_LEVELS];
    unsigned emptied;               /* mr_rail.emptied at the last check of its traffic under way */
    struct mr_sub_own *own;         /* state of conn/peer/, */
    struct mr_connect_sub *connect; /* and conn/ */
};

/* The link of a level for RDMA, never the link of packets, which would wait behind RDMA. */
static inline struct mr_link *mr_sub_rdma_link(const struct mr_sub *sub, unsigned level)
{
    struct mr_link *l = sub->level[level];

    return l == sub->level[MR_LEVEL_PACKETS] ? sub->level[MR_LEVEL_BULK] : l;
}

/* For log messages: the ports of both ends and the path. Returns out. */
#define MR_SUB_NAME 144
const char *mr_sub_name(const struct mr_sub *sub, char out[MR_SUB_NAME]);
/* The reduction by the health of both rails, according to fabricd: of MR_WEIGHT_MAX. */
uint32_t mr_sub_sick(const struct mr_sub *sub);
/* The service level of a level's messages. */
uint8_t mr_sub_sl(const struct mr_sub *sub, enum mr_level level);
/* Parity and twice the copy, which distinguish subchannels of the same rails, path and kind. */
uint8_t mr_sub_variant(const struct mr_sub *sub);
/* Names a subchannel and a generation of it in a control message. */
int32_t mr_sub_tag(const struct mr_sub *sub, uint8_t generation);
/* The generation in a tag. */
static inline uint8_t mr_tag_generation(uint32_t tag)
{
    return (uint8_t)(tag >> 21);
}
/* The subchannel here that a tag of the peer's names; NULL: there is none. */
struct mr_sub *mr_sub_tagged(struct mr_peer *p, uint32_t tag);

/* Control messages, in header kinds of the channel's own; those of large messages are in net/bulk/. */
enum mr_control {
    MR_CONTROL_BROKEN = MR_VC_KIND_CHANNEL, /* conn/: our end is broken. tag: mr_sub_tag(); rank: it loses packets */
    MR_CONTROL_GONE,   /* our end has drained: nothing arrives through it any more. tag: mr_sub_tag() */
    MR_CONTROL_ASK,    /* net/stripe/: has the stripe with the notification ctx landed? sreq: comes back */
    MR_CONTROL_TOLD,   /* the answer. rank: 1 if it has, or is not waited for any more; 0 if not */
    MR_CONTROL_PARKED, /* conn/: we give up our connections. tag: any subchannel */
    MR_CONTROL_IDLE,   /* conn/: nothing from our end is under way on this subchannel, which retires */
    MR_CONTROL_RING,   /* net/rings.c. rank: enum ring_control; tag: mr_sub_tag(); payload: struct mr_ring_says */
    MR_CONTROL_GRANT,  /* net/grant.c. ctx: kB/s on each level that goes ahead; tag: of all packets; 0: no limit */
    MR_CONTROL_HEALTH, /* net/health.c. ctx: our rails' health; tag: doubts of the ways from them (conn/route/health.h)
                        */
    MR_CONTROL_BULK,   /* from here on */
};

/* ---- events ------------------------------------------------------------------------------------------------------ */

/*
 * Events of peers and subchannels, for higher folders, which subscribe before the first peer is made, and stay
 * subscribed for the life of the process. Each event is delivered to all subscribers, in the order of their
 * subscription.
 */
/* NULL: the event does not matter to the subscriber. */
struct mr_peer_events {
    int (*made)(struct mr_peer *p); /* its subchannels have been listed; 0 or a negative errno: it is lost */
    void (*opened)(struct mr_sub *sub);
    void (*established)(struct mr_peer *p);       /* a handshake has opened subchannels, delivered before */
    void (*lossy)(struct mr_peer *p);             /* packets go over links that lose them, from now on */
    void (*preferred)(struct mr_peer *p);         /* the subchannels for packets were chosen anew */
    void (*broken)(struct mr_sub *sub);           /* its links are being drained: nothing new may be posted */
    void (*drained)(struct mr_sub *sub);          /* all posts have come back; the generation ends */
    bool (*due)(struct mr_sub *sub);              /* its peer is served, and is again later if this is true */
    void (*moved)(struct mr_peer *p);             /* packets waiting for room on retiring subchannels go over others */
    bool (*uses)(const struct mr_sub *sub);       /* true: traffic is under way, or waits for the subchannel */
    uint64_t (*queued)(const struct mr_sub *sub); /* bytes of large messages under way there */
    void (*reweighed)(struct mr_peer *p);         /* its weights begin anew */
    void (*lost)(struct mr_peer *p);     /* nothing is sent to it any more, nor comes; links are being drained */
    void (*ended)(struct mr_peer *p);    /* after that: all links have drained */
    void (*freed)(struct mr_peer *p);    /* at the end, of each peer */
    void (*doubted)(struct mr_peer *p);  /* mr_sub.doubt of some subchannel has changed */
    void (*answered)(struct mr_peer *p); /* nothing is open, and its adapter has answered a probe */
    /* For the record: opened, broken or closed, or `a` unconfirmed packets are sent again. */
    void (*noted)(struct mr_sub *sub, enum mr_record_kind kind, uint64_t a);
};
#define MR_PEER_SUBSCRIBERS 4
void mr_peer_subscribe(const struct mr_peer_events *events);

/* ---- peers ------------------------------------------------------------------------------------------------------- */

struct mr_peer_own;
struct mr_connect_peer;

struct mr_peer {
    int rank;           /* in the world, or the number of a guest (launch.h) */
    uint32_t guest_run; /* of a guest: stands for this life of the peer in its connection messages; 0: no guest */
    uint32_t guest_mix; /* of a guest: of the names of both ends, the same at both */
    int error;          /* negative errno: the peer is lost, nothing is sent any more */
    bool up;            /* connected: packets can be posted */
    bool backlogged;    /* is in the list of that name, as relying below */
    uint8_t epoch;      /* the present one's number; wraps */
    struct mr_peer *next_connecting, *next_backlogged;
    struct mr_vc *vc;
    struct mr_cm_conn cm;
    struct mr_address *address; /* as long as its rails; mr_address_none: it has not come */
    unsigned num_subs, num_now; /* of both epochs, of one */
    unsigned
        num_spare; /* behind those of one epoch: for pairs of rails and paths used while no other leads to the peer */
    uint32_t arrived; /* mr_peers.arrived when a packet was last sent there */
    struct mr_sub *sub;
    struct mr_sub *now;   /* those of the present epoch, for all new packets */
    struct mr_load *load; /* theirs. up: open, and the port is active */
    uint32_t *steer;      /* with rules: excluded subchannels by use and size class of a packet (steer.c) */
    struct mr_sched packet_turn;
    bool fast; /* up, no rules, no lossy links: a short packet takes the fast path, with only the turn to look up */
    struct mr_link *fast_link; /* fast path: the link that takes all such packets; NULL: links in turn */
    struct mr_link **small;    /* by subchannel of the present epoch: the link of such packets, if it may carry some */
    uint32_t excluded;         /* set of subchannels that carry no packets, since better ones are open */
    uint32_t excluded_far;     /* the subchannels excluded by their place only (policy near) */
    uint32_t rdma;             /* set of subchannels for large messages */
    uint32_t lives;            /* of the peer's rails, as it said last: as mr_verbs.lives, */
    uint16_t moves;            /* and mr_verbs.moves */
    bool tracked;              /* lossy links among them: the receiver reports landed blocks (net/stripe/track.c) */
    unsigned num_pending;      /* queue pairs of the higher folder under way for the peer */
    struct mr_window out;      /* packets waiting or unconfirmed */
    bool has_lossy_link;       /* packets in either direction go over links that lose some (net/rely.c) */
    bool relying;
    bool needed;        /* promised large messages wait for a connection */
    unsigned num_large; /* large messages under way, by writes or by reads of ours */
    struct mr_peer *next_relying;
    uint64_t heard_ns;        /* its last packet or acknowledgement */
    unsigned num_paths;       /* spare subchannels of further paths: the first of all spare ones */
    uint32_t until_paths;     /* bytes of large messages until fabricd is asked for more paths; 0: it is not */
    uint32_t sick;            /* its rails' health, as it says (conn/route/health.h) */
    uint32_t sick_told;       /* the same of ours, as last sent */
    uint32_t doubts;          /* the peer's reduction of the ways from its rails for observed losses (conn/ways.c), */
    uint32_t doubts_told;     /* and our reduction, as last sent */
    struct mr_ahead *granted; /* by level, the peer's grants; NULL: no limit (net/grant.c) */
    struct mr_shares *shares; /* the shares of each rail by its weights; NULL: no rail has led there (net/view/) */
    uint32_t counted, rate;   /* as of the last tick (conn/budget.c): packets in both directions, per second */
    uint32_t use;             /* and its worth by traffic: recent messages count more */
    struct mr_peer_own *own;  /* state of conn/peer/, */
    struct mr_connect_peer *connect; /* and conn/ */
};

struct mr_peers {
    size_t peer_size; /* of each: higher folders extend struct mr_peer, the first member of their own struct */
    const struct mr_launch *launch;
    uint32_t run; /* of this run of the job, in connection messages */
    struct mr_fabric_qos qos;
    struct mr_ahead ahead[MR_RAILS_MAX][MR_LEVEL_PACKETS]; /* of each of our rails and level that goes ahead, */
    bool ahead_limited;                                    /* some levels have a rate */
    struct mr_pace pace[MR_RAILS_MAX];                     /* of our reads over each rail, */
    bool paced;                                            /* some rails have a rate, */
    unsigned paced_parts;                                  /* posted so far; wraps */
    struct mr_peer **peer;                                 /* [mr_peers_end()], made on demand */
    int num_more;                                          /* numbers behind the world ranks: guests */
    /*
     * Lists of peers: with unfinished handshakes, in order; with packets to flush; with pending work; lost and
     * draining; with packets or receives that may be late.
     */
    struct mr_peer *connecting, *backlogged, *recovering, *failing, *relying;
    struct mr_kinds kinds;
    uint8_t our_kinds;     /* the same as a set */
    uint8_t rationed;      /* kinds of links that only some peers have: set */
    bool untimed;          /* something has gone or come at a time that rely.c does not know */
    bool attentive;        /* some peer has a lossy link, or a handshake is under way: packets may be signs */
    struct mr_rules rules; /* of MRMPI_RULES; num is 0: none */
    struct mr_policy policy[MR_POLICY_CLASSES];
    unsigned num_relying;  /* peers in that list */
    unsigned num_isolated; /* peers without an open subchannel at present */
    uint64_t offered;      /* bytes of memory that peers may be reading or writing */
    bool unwell;           /* some rail, here or of a peer, is or was not healthy */
    bool doubtful;         /* conn/silence.c: something that is under way does not move */
    bool recovery_due;     /* a recovering peer has something to send or do now */
    uint32_t arrived;      /* packets, of all peers */
};
extern MR_OWN struct mr_peers mr_peers;

/* Behind the last number in mr_peers.peer. */
static inline int mr_peers_end(void)
{
    return mr_peers.launch->size + mr_peers.num_more;
}

/* ---- at the start: 0 or a negative errno, already logged --------------------------------------------------------- */

int mr_steer_init(void);  /* reads MRMPI_RULES */
int mr_spread_init(void); /* reads the policies; rails are open */
int mr_address_publish(void);
size_t mr_address_describe(struct mr_address_long *out); /* ours, of this length */
void mr_addresses_close(void);
void mr_peers_free(void);

/* Upcalls of conn/. */
struct mr_connect_upcalls {
    /* Of a subchannel's link that confirms packets itself: the oldest n packets on the link are with the peer. */
    void (*confirmed)(struct mr_link *l, unsigned n);
};
void mr_connect_init(const struct mr_connect_upcalls *up); /* before other subscriptions to events of peers */
/*
 * True if more ranks are on other hosts than the limit of connections. Sets the limit if MRMPI_RC_PEERS is 0. The same
 * at all ranks if their adapters are of one type; otherwise some ranks might use datagrams, too, and others not.
 */
bool mr_budget_exceeded(const struct mr_launch *launch);
void mr_budget_init(void);

/* ---- a peer ------------------------------------------------------------------------------------------------------ */

bool mr_peer_is_remote(int rank); /* true for a rank on another host, and for a guest that has been met */
/* A guest counts as alone on its host. */
static inline bool mr_peers_share_host(int a, int b)
{
    const struct mr_launch *l = mr_peers.launch;

    return a == b || (a < l->size && b < l->size && l->node_of[a] == l->node_of[b]);
}
/* 0: the address is there. -EAGAIN: the launcher's thread asks for it. Other negative errno: no address; logged. */
int mr_peer_fetch_address(struct mr_peer *p);
void mr_peer_backlog(struct mr_peer *p);         /* something of it waits for room: try again from poll */
void mr_peer_watch(struct mr_peer *p);           /* its packets or receives may be late: check them in mr_rely_poll() */
void mr_peer_lost(struct mr_peer *p, int error); /* higher subsystems are told by the next poll */
bool mr_steer_by_rdma(const struct mr_peer *p, size_t len); /* rules allow RDMA for that length */
/* Of a set of subchannels, those allowed by the policy; all, if none is allowed. */
uint32_t mr_spread_narrow(const struct mr_peer *p, enum mr_policy_class c, uint32_t set);

void mr_where_news(void);    /* fabricd has answered where peers are */
void mr_spread_news(void);   /* fabricd has another policy */
void mr_peers_reweigh(void); /* after mr_spread_news(): the weights of all peers begin anew */
/* The health of our rails, or of the peer's, has changed: its traffic moves. */
void mr_peer_take_health(struct mr_peer *p);
int mr_peers_report(void); /* reports lost peers that have drained; returns their number */

/* The peer of that rank, made if need be; NULL: no memory. Connecting begins with mr_peer_connect(). */
struct mr_peer *mr_peer_get(int rank);
struct mr_peer *mr_peer_of(uint32_t rank); /* the same; NULL for a number that is no rank on another host */
void mr_peer_connect(struct mr_peer *p);
/* Asks the peer's adapter over links with packets that no later signaled packet will confirm: the window is full. */
void mr_keepalive_unsignaled(struct mr_peer *p);
/* Lets adapters confirm packets sent over native links. True: all are confirmed. */
bool mr_keepalive_confirm(struct mr_peer *p);
/* Ask its process, by a datagram on the path of the subchannel. */
void mr_keepalive_ask(struct mr_sub *sub, uint64_t now_ns);
bool mr_budget_rdma(struct mr_peer *p); /* it has a connection, or will: large messages may go by RDMA */
void mr_budget_need(struct mr_peer *p); /* a large message waits for a connection */
/*
 * Counts a large message of len bytes to or from the peer: after many bytes, further paths are sought. mr_paths_news:
 * fabricd may have answered; state: fabricd may allow other paths now.
 */
void mr_paths_note(struct mr_peer *p, uint64_t len);
void mr_paths_news(bool state);
/* The subchannel is unusable. Its packets go over others after draining. */
void mr_sub_break(struct mr_sub *sub);

/* ---- guests ------------------------------------------------------------------------------------------------------ */

/*
 * A guest on another host can be a peer, behind the world ranks. The two processes say each other where they are over
 * the channel stream: their addresses, and the numbers for connection messages and packets.
 */
struct mr_guest_terms {
    uint32_t run;          /* ours: stands for this life of the peer; not 0 */
    uint32_t run_there;    /* the same of the guest, */
    uint32_t number_there; /* and the number of this process there: the source of packets that we send */
};
/* Makes the peer of a guest. NULL: no memory, or there is one. Connecting begins with mr_peer_connect(), at one end. */
struct mr_peer *mr_peer_meet(int number, const struct mr_guest_terms *t, const struct mr_address *address);
/* Closes the peer. mr_stream_unrailed() is called once closed. */
void mr_peer_part(struct mr_peer *p, int error);
/* Frees the closed peers of that number, which nothing above uses. False: one is open, or cannot be freed yet. */
bool mr_peer_forget(int number);

/* ---- subchannels, examined --------------------------------------------------------------------------------------- */

/* Its number among the subchannels of its epoch, equal in the other epoch. */
static inline unsigned mr_sub_place(const struct mr_sub *sub)
{
    unsigned i = (unsigned)(sub - sub->peer->sub), all = sub->peer->num_now + sub->peer->num_spare;

    return i < all ? i : i - all;
}
static inline bool mr_sub_is_current(const struct mr_sub *sub)
{
    return sub->parity == (sub->peer->epoch & 1);
}
/* Open, but not for long. */
static inline bool mr_sub_retires(const struct mr_sub *sub)
{
    return sub->closing || !mr_sub_is_current(sub);
}

/* The set of subchannels excluded for this packet. The peer has mr_peer.steer. */
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
 * True if a message of this level may go ahead of the bulk over the subchannel. The budget must allow this; and while a
 * lane of medium messages has not carried the last ones, another would hold up all messages behind.
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

/* ---- arrivals: true if it was a control message of that file ----------------------------------------------------- */

bool mr_budget_control(struct mr_peer *p, const struct mr_hdr *hdr);
bool mr_epoch_control(struct mr_peer *p, const struct mr_hdr *hdr);
void mr_recovery_control(struct mr_peer *p, const struct mr_hdr *hdr); /* asked last */
void mr_handshake_datagram(const struct mr_rail *rail, const void *data, size_t len);
void mr_recovery_rail_changed(struct mr_rail *rail);              /* a port's state */
void mr_recovery_rail_moved(struct mr_rail *rail);                /* its LID or GID */
void mr_recovery_rail_keys(struct mr_rail *rail, uint32_t moved); /* its P_Keys (mr_verbs_handlers) */
void mr_epoch_all(void);                                          /* fabricd has other service levels */

/* ---- poll -------------------------------------------------------------------------------------------------------- */

void mr_peers_poll(void);                  /* while mr_peers.recovery_due, and now and then */
void mr_handshake_tick(void);              /* timers of handshakes */
bool mr_budget_tick(uint64_t now_ns);      /* true: a tick has passed, and packets have been counted */
void mr_keepalive_silent(uint64_t now_ns); /* while this rank waits: ask the adapters of silent peers */
void mr_silence_check(uint64_t now_ns);    /* once in a while: checks for silent ways */

#endif
