/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peers on other hosts: for each, its subchannels (pair of rails, LID path, service level), the state of connecting
 * to it, and what waits to be sent.
 */
#ifndef MRMPI_PEER_H
#define MRMPI_PEER_H

#include "libmrmpi/channel/channel.h"
#include "libmrmpi/fabric/client.h"
#include "libmrmpi/link/link.h"
#include "libmrmpi/route/ahead.h"
#include "libmrmpi/peer/address.h"
#include "libmrmpi/route/pace.h"
#include "libmrmpi/route/pair.h"
#include "libmrmpi/route/rules.h"
#include "libmrmpi/route/sched.h"
#include "libmrmpi/reliable/rtt.h"
#include "libmrmpi/verbs/connect.h"
#include "libmrmpi/verbs/verbs.h"

_Static_assert(MR_RAILS_MAX == MR_CM_PORTS_MAX, "one place for each rail");
_Static_assert(MR_RAILS_MAX <= MR_POLICY_RAILS, "a policy can name all rails");
_Static_assert(MR_LEVELS == MR_CM_LEVELS, "one place for each level");
_Static_assert(MR_SUBS_MAX == MR_CM_SUBS_MAX, "one place for each subchannel");

enum mr_sub_state {
    MR_SUB_CLOSED, /* no queue pairs */
    MR_SUB_OPENING,
    MR_SUB_OPEN,
    MR_SUB_BROKEN, /* a link of it failed, here or there; both sides come to know it (peer/recovery.c) */
};

/* Is generation a of a subchannel later than b? They wrap: at most a hundred are apart. */
static inline bool mr_is_later(uint8_t a, uint8_t b)
{
    return (int8_t)(a - b) > 0;
}

/* What a peer has yet to hear about a subchannel (peer/recovery.c). */
struct mr_sub_news {
    bool broken, gone;
    uint8_t broken_generation, gone_generation;
};

/*
 * A pair of rails and a LID path: where bytes are counted and weighed. It has a link for each of its service levels:
 * the first for large messages, and others where smaller ones have another level. A level without a link of its own
 * uses that of the next larger messages. Both ends call it by the numbers of both rails, path and kind: its place in
 * mr_peer.sub is its own side's.
 */
struct mr_sub {
    struct mr_peer *peer;
    struct mr_rail *rail;
    uint8_t remote_rail, path;
    uint8_t kind; /* enum mr_link_kind */
    uint8_t side; /* 0 or 1: peers change from the one to the other when service levels change (epoch.c) */
    uint8_t epoch; /* that the peer changes to, or has changed to, with it */
    uint8_t twin; /* of those alike in all else, for classes of several lanes */
    uint8_t lane; /* which of them it has, from the first that the peer uses; counted round */
    bool absent;  /* the peer has none such: it met us in a class of fewer lanes */
    bool closing; /* nothing new goes over it: the peer's connections are given up (budget.c) */
    bool told;    /* of one that retires: what it carried from here is with the peer, which knows that */
    bool heard;   /* the same of the peer */
    enum mr_sub_state state;
    uint8_t generation; /* of its queue pairs, those that are or those that come next; wraps */
    uint8_t peer_from;  /* those of the peer before this generation are gone */
    uint8_t sl[MR_LEVELS];
    struct mr_sub_news news;      /* for the peer */
    struct mr_probe *probe; /* while it is closed: what is left of a link of it (peer/probe.c) */
    uint64_t opened_ns, closed_ns, retry_ns;
    unsigned failures;    /* in a row */
    uint32_t question;    /* the last that the peer was asked over this way (keepalive.c), */
    uint64_t asked_ns;    /* and when; 0: it has answered */
    uint8_t crowded;      /* levels that want a link, for which there was no room when it was opened: set */
    uint8_t extra;        /* links that it was opened with, beside the first */
    unsigned num_links;   /* that there is memory for; some may be closed */
    struct mr_link *link; /* NULL: it was never opened */
    struct mr_link *level[MR_LEVELS];
};

/* Control messages, in header kinds of the channel's own; those of large messages are in bulk.h and zcopy.h. */
enum mr_control {
    MR_CONTROL_BROKEN = MR_VC_KIND_CHANNEL, /* mend.c: our end is broken; tag: a subchannel by its sender's names, and a generation */
    MR_CONTROL_GONE,   /* our end has drained: nothing lands through it any more */
    MR_CONTROL_ASK,    /* bulk.c: has the stripe with the notification ctx landed? sreq: comes back */
    MR_CONTROL_TOLD,   /* rank: 1 if it has, or is not waited for any more; 0 if not */
    MR_CONTROL_PARKED, /* budget.c: we give up our connections; tag: any subchannel */
    MR_CONTROL_IDLE,   /* change.c: it is of the old side, and nothing from our end is under way on it */
    MR_CONTROL_RING,   /* rings.c. rank: what; tag: the subchannel; payload: struct mr_ring_says */
    MR_CONTROL_GRANT,  /* grant.c. ctx: kB/s on each level that goes ahead, over all rails; tag: of all packets; 0: no limit */
    MR_CONTROL_BULK,   /* from here on */
};

struct mr_peer {
    int rank;
    int error;                                     /* lost; nothing is sent any more */
    bool up;                                       /* connected: packets can be posted */
    bool queued;                                   /* its turn to connect has not come (handshake.c) */
    uint64_t silence_ns;                           /* it had not answered for so long when that was said last */
    uint64_t where_ns, where_pause_ns;             /* when fabricd is asked where it is (where.c) */
    unsigned where_asked;                          /* how often it was */
    bool connecting, backlogged, mending, failing; /* is in the list of that name */
    struct mr_peer *next_connecting, *next_backlogged, *next_mending, *next_failing;
    struct mr_vc *vc;
    struct mr_cm_conn cm;
    struct mr_address *address;       /* as long as its rails; mr_address_none: it has not come */
    int address_error;             /* there is none, and why */
    bool fetching;              /* it is asked for (addresses.c) */
    unsigned num_subs, num_now; /* of both sides, of one */
    struct mr_sub *sub;
    struct mr_sub *now;       /* those of the side that carries what is sent now */
    struct mr_load *load;     /* theirs */
    struct mr_load *loads[2]; /* of each side. up: open, and the port is active */
    uint8_t epoch;             /* how often the side was changed; wraps */
    bool change;              /* it wants to be, since service levels have changed */
    uint64_t change_ns;       /* not before */
    uint8_t wanted;           /* kinds of links that shall be open: set, as mr_address.kinds */
    bool holds;               /* it has connections, or shall have: it counts (budget.c) */
    uint8_t refusals;         /* how often in a row it had no room for one */
    uint64_t ask_ns;          /* not before */
    bool rings;               /* it shall have rings to write into here (rings.c) */
    uint32_t use, counted;    /* what its connections are worth, packets that were counted for that */
    uint32_t rate;            /* packets per second, lately */
    uint32_t holding;         /* rules that hold for it: set */
    uint32_t *steer;          /* with rules: as spare, by what a packet is and its size class (steer.c) */
    uint64_t link_ids;        /* set of those that are given out: places in the window */
    uint32_t arrived;         /* mr_peers.arrived when a packet was last sent there */
    struct mr_sched packet_turn;
    struct mr_shares *shares; /* what its weights give each rail (view.c); NULL: nothing has led there */
    uint32_t excluded;            /* set of subchannels that carry no packets, since better ones are open */
    uint32_t excluded_far;              /* those of them that are spare only because of where they are (policy near) */
    uint32_t rdma;             /* set of those that carry large messages */
    uint8_t bulk_kind;         /* enum mr_link_kind of those that carry large messages by RDMA */
    bool tracked;              /* they lose some: the receiver tells what has landed (track.c) */
    unsigned num_pending; /* queue pairs that the room above has under way for it */
    struct mr_window out; /* packets that wait, or are not known to be with the peer */
    bool has_lossy_link;         /* some of them go over links that lose packets, or theirs (rely.c) */
    bool relying;         /* is in the list of that name */
    struct mr_peer *next_relying;
    uint64_t heard_ns;                        /* its last word */
    unsigned num_large;       /* large messages under way, by writes or by reads of ours */
    bool needed;                              /* large messages that were promised wait for a connection */
    struct mr_sub *reopening;                 /* what the round of connecting that we began is about, after the first */
    struct mr_sub *answering;                 /* that the last datagram went over */
    uint64_t isolated_ns;                     /* since when no subchannel is open; 0: one is */
    uint64_t waited_ns, looked_ns;            /* so long for a sign of life; when that was counted last */
    uint32_t heard_received, heard_confirmed; /* packets of the peer, and ours that it has, when ping.c looked last */
    unsigned ping_turn;                       /* the link that is asked next */
    struct mr_ahead *granted;                 /* of each level, as it says; NULL: no limit (grant.c) */
};

struct mr_peers {
    size_t peer_size; /* of each: the rooms above extend struct mr_peer, which is the first member of theirs */
    const struct mr_launch *launch;
    uint32_t run; /* of this run of the job, in connection messages */
    uint32_t next_id;
    struct mr_fabric_qos qos;
    struct mr_ahead ahead[MR_RAILS_MAX][MR_LEVEL_PACKETS]; /* of each of our rails and level that goes ahead, */
    bool ahead_limited;                                    /* some of which have a rate */
    struct mr_pace pace[MR_RAILS_MAX]; /* of our reads over each rail, */
    bool paced;                        /* some of which have a rate, */
    unsigned paced_parts;              /* that have been posted; wraps */
    struct mr_peer **peer;                        /* [launch->size], made on demand */
    struct mr_peer *connecting, **connecting_end; /* in order */
    struct mr_peer *backlogged, *mending, *failing, *relying;
    struct mr_rtt connect_rtt; /* of requests to connect */
    struct mr_kinds kinds;
    uint8_t our_kinds; /* the same as a set */
    bool untimed;          /* something has gone or come of which rely.c does not know when */
    bool attentive;        /* has_lossy_link, or somebody is being connected: packets may be signs */
    uint8_t rationed;      /* kinds of links that only some peers have: set */
    unsigned num_rationed; /* peers that shall have them */
    unsigned num_held;     /* and those whose are not closed yet */
    bool rings;            /* some may have them */
    bool suffices;         /* no rank ever has to refuse one */
    uint64_t budget_ns;    /* when that was looked at */
    struct mr_rules rules; /* of MRMPI_RULES; num is 0: none */
    struct mr_policy policy[MR_POLICY_CLASSES];
    uint32_t policy_rails[MR_POLICY_CLASSES]; /* set of our rails that they allow */
    unsigned distance[MR_RAILS_MAX];          /* of our rails from this process, as far as a policy asks */
    bool distances_known;
    unsigned num_relying;  /* peers to which or from which packets on links that lose them are under way */
    unsigned num_fetching;  /* addresses that are asked for, or have come and mr_addresses_poll has not told */
    unsigned num_isolated;  /* peers to whom nothing leads at present */
    bool mend_due;          /* one of those that are mending has something to say or do now */
    uint32_t arrived;   /* packets, of all peers */
    uint64_t pinged_ns; /* when silent peers were */
};
extern struct mr_peers mr_peers;

/* ---- events.c -------------------------------------------------------------------------------------------------- */

/*
 * What happens to peers and subchannels, for those above who subscribe before the first peer is made. NULL: it does not
 * matter to them.
 */
struct mr_peer_events {
    int (*made)(struct mr_peer *p);     /* its subchannels have been listed; 0 or a negative errno: it is lost */
    void (*opened)(struct mr_sub *sub);
    void (*lossy)(struct mr_peer *p);   /* packets go over links that lose them, from now on */
    void (*broken)(struct mr_sub *sub); /* its links are being drained: nothing new may be posted */
    void (*drained)(struct mr_sub *sub); /* all that was posted on it has come back; its generation ends */
    bool (*due)(struct mr_sub *sub);    /* its peer is looked after, and is again later if this is true */
    void (*moved)(struct mr_peer *p);   /* what waits for room on subchannels that retire goes over others */
    bool (*uses)(const struct mr_sub *sub); /* something is under way over it, or waits for it */
    void (*reweighed)(struct mr_peer *p); /* its weights begin anew */
    void (*lost)(struct mr_peer *p);    /* nothing is sent to it any more, nor comes; links are being drained */
    void (*ended)(struct mr_peer *p);   /* after that: all links have drained */
    void (*freed)(struct mr_peer *p);   /* at the end, of each peer */
};
#define MR_PEER_SUBSCRIBERS 4
void mr_peer_subscribe(const struct mr_peer_events *events);
int mr_peer_tell_made(struct mr_peer *p);
void mr_peer_tell_opened(struct mr_sub *sub);
void mr_peer_tell_lossy(struct mr_peer *p);
void mr_peer_tell_broken(struct mr_sub *sub);
void mr_peer_tell_drained(struct mr_sub *sub);
bool mr_peer_tell_due(struct mr_sub *sub);
void mr_peer_tell_moved(struct mr_peer *p);
bool mr_peer_ask_uses(const struct mr_sub *sub);
void mr_peer_tell_reweighed(struct mr_peer *p);
void mr_peer_tell_lost(struct mr_peer *p);
void mr_peer_tell_ended(struct mr_peer *p);
void mr_peer_tell_freed(struct mr_peer *p);

/* ---- lists.c, peer.c ------------------------------------------------------------------------------------------- */

/* The peer's rank is on another host. */
bool mr_peer_is_remote(int rank);
/* The peer of that rank, made if need be; NULL: no memory, or it is on this host. Connecting begins with
 * mr_peer_connect(). */
struct mr_peer *mr_peer_get(int rank);
struct mr_peer *mr_peer_of(uint32_t rank); /* any number may be asked for */
/* Something of it is to be said or done: look after it in mr_peers_poll(). */
void mr_peer_due(struct mr_peer *p);
/* Something of it waits for room: try again from poll. */
void mr_peer_backlog(struct mr_peer *p);
/* Look after its packets and receives that may be late, in mr_rely_poll(). */
void mr_peer_watch(struct mr_peer *p);
/* Take it as lost: said upwards from the next poll. */
void mr_peer_lost(struct mr_peer *p, int error);
/* Tell above of what was lost. Number of peers. */
int mr_peers_report(void);
void mr_peers_free(void);

/* ---- addresses.c --------------------------------------------------------------------------------------------------- */

/* Publish how we can be reached. */
int mr_address_publish(void);
/* At the end: that of the peer, if it has come. */
void mr_address_drop(struct mr_peer *p);
/*
 * Its address is there afterwards: 0. Waits for the launcher, unless threads share the library: then -EAGAIN until it has
 * come, and mr_cm_resume() is called. Other negative errno: there is none, that was said.
 */
int mr_peer_fetch_address(struct mr_peer *p);
/* While mr_peers.num_fetching: take those that have come, go on connecting. Not while a connection is prepared. */
void mr_addresses_poll(void);
void mr_addresses_close(void);

/* ---- levels.c -------------------------------------------------------------------------------------------------- */

/* May a subchannel have a link for packets that go with the bulk, beside that of small ones that go ahead? */
bool mr_levels_have_room(const struct mr_peer *p);
/*
 * Places in the window for links, beyond those that are kept for the first link of every closed subchannel but this one
 * (NULL: of all).
 */
unsigned mr_levels_spare_links(const struct mr_peer *p, const struct mr_sub *but);
/* The service levels that messages have on a subchannel that is opened now. */
void mr_levels_of(const struct mr_sub *sub, uint8_t sl[MR_LEVELS]);

/* ---- subs.c, links.c ---------------------------------------------------------------------------------------------------- */

/* All pairs of rails, their paths and kinds of links, whether their ports are up or not. 0 or a negative errno. */
int mr_subs_make(struct mr_peer *p);
/* Queue pairs for one that is closed, which is being opened then. 0 or a negative errno: it is still closed. */
int mr_sub_open(struct mr_sub *sub, const struct mr_link_events *events);
/* What a message says of one that is being opened. */
struct mr_cm_sub mr_sub_describe(const struct mr_sub *sub);
/* With what the peer has said of its end; sls: of the side whose service levels count. 0 or a negative errno. */
int mr_sub_connect(struct mr_sub *sub, const struct mr_rail_addr *to, const struct mr_cm_sub *remote,
                   const struct mr_cm_sub *sls, uint32_t local_psn, uint32_t remote_psn);
/* The round came to nothing: it is closed. */
void mr_sub_unopen(struct mr_sub *sub);
/* Weights of all peers begin anew, as the policies are now. */
void mr_peers_reweigh(void);
/* That of ours between these rails, ours and the peer's; NULL: there is none. */
struct mr_sub *mr_sub_find(struct mr_peer *p, unsigned rail, unsigned remote, unsigned path, unsigned kind);
/* How the peer is told of a subchannel and a generation of it, and which of ours it means. */
static inline uint8_t mr_tag_generation(uint32_t tag)
{
    return (uint8_t)(tag >> 21);
}
int32_t mr_sub_tag(const struct mr_sub *sub, uint8_t generation);
struct mr_sub *mr_sub_tagged(struct mr_peer *p, uint32_t tag);
/* For messages: the ports of both ends and the path. */
#define MR_SUB_NAME 144
const char *mr_sub_name(const struct mr_sub *sub, char out[MR_SUB_NAME]);
/* Its number among those of its side, which is the same on the other side. */
static inline unsigned mr_sub_place(const struct mr_sub *sub)
{
    unsigned i = (unsigned)(sub - sub->peer->sub);

    return i < sub->peer->num_now ? i : i - sub->peer->num_now;
}
static inline bool mr_sub_is_current(const struct mr_sub *sub)
{
    return sub->side == (sub->peer->epoch & 1);
}
static inline bool mr_sub_is_wanted(const struct mr_sub *sub)
{
    return mr_sub_is_current(sub) && !sub->absent && sub->peer->wanted >> sub->kind & 1;
}
/* It is open, but not for long. */
static inline bool mr_sub_retires(const struct mr_sub *sub)
{
    return sub->closing || !mr_sub_is_current(sub);
}
/* Kind, side and twin in one byte, as messages name them. */
static inline uint8_t mr_sub_kind(const struct mr_sub *sub)
{
    return (uint8_t)(sub->kind | sub->side << 2 | sub->twin << 3);
}
/* Its links are closed: their places in the window can be given to others. */
void mr_sub_forget_links(struct mr_sub *sub);
/* Which subchannels carry packets: those of the kind that is preferred, of those that are open. */
void mr_sub_prefer(struct mr_peer *p);

/* ---- handshake.c, connect.c -------------------------------------------------------------------------------------------------- */

#define MR_REOPEN_ATTEMPTS 4 /* of one handshake; another begins after a pause (recovery.c) */
extern const struct mr_cm_ops mr_handshake_ops;
void mr_peer_connect(struct mr_peer *p);
/* Say and do what is due for the peers that are looked after. */
void mr_peers_poll(void);
/* Begin a round for a subchannel that is closed, unless one is under way; NULL: for all of the side that is not
 * current. */
bool mr_handshake_begin(struct mr_peer *p, struct mr_sub *sub);
void mr_handshake_datagram(const void *data, size_t len);
/* Timers of peers that are being connected. */
void mr_handshake_tick(void);

/* ---- where.c --------------------------------------------------------------------------------------------------- */

/* The peer's ports are where its message says, not where its address said. */
void mr_where_learn(struct mr_peer *p, const struct mr_cm_msg *m);
/* A request to connect is not answered: is the peer where it was? */
void mr_where_ask(struct mr_peer *p, uint64_t now_ns);
void mr_where_answered(struct mr_peer *p);
/* What fabricd has found out. */
void mr_where_news(void);

/* ---- steer.c --------------------------------------------------------------------------------------------------- */

/* Reads MRMPI_RULES. 0; -EINVAL: that was said. */
int mr_steer_init(void);
/* Room for the tables of a peer that was just met. 0 or -ENOMEM. */
int mr_steer_peer(struct mr_peer *p);
/* The tables anew: the subchannels of each kind that may be taken, and those that are up. What is spare for packets that do
 * not ask: all. */
uint32_t mr_steer_set(struct mr_peer *p, const uint32_t of_kind[MR_LINK_KINDS], uint32_t up);
/* The peer's counts make a difference: the tables are to be made anew. */
bool mr_steer_is_stale(const struct mr_peer *p);
/* Which subchannels may not carry this packet: set. */
static inline uint32_t mr_steer_excluded(const struct mr_peer *p, enum mr_rule_use use, size_t payload)
{
    return p->steer[use * (mr_peers.rules.num_sizes + 1) + mr_rules_size_class(&mr_peers.rules, payload)];
}
/* Large messages of that length may go there by RDMA, as far as rules say. */
bool mr_steer_by_rdma(const struct mr_peer *p, size_t len);
/* Packets to this peer would go over one of these kinds of links. */
bool mr_steer_wants(const struct mr_peer *p, uint8_t set);

/* ---- spread.c -------------------------------------------------------------------------------------------------- */

/* Reads the policies' settings; rails are open. 0; -EINVAL: that was said. */
int mr_spread_init(void);
/* fabricd has said something else than before. */
void mr_spread_news(void);
/* Of a set of subchannels those that the policy allows; all, if it allows none of them. */
uint32_t mr_spread_narrow(const struct mr_peer *p, enum mr_policy_class c, uint32_t set);

/* The link of a level for RDMA, which does not go over the link of packets: those would wait behind it. */
static inline struct mr_link *mr_sub_rdma_link(const struct mr_sub *sub, unsigned level)
{
    struct mr_link *l = sub->level[level];

    return l == sub->level[MR_LEVEL_PACKETS] ? sub->level[MR_LEVEL_BULK] : l;
}

/* May a message go ahead of the bulk, as far as this bucket says? */
static inline bool mr_bucket_lets(struct mr_ahead *a, size_t len)
{
    return !a->empty || (!mr_ahead_waits(a, len) && mr_ahead_fill(a, mr_clock_ns()));
}

#define MR_MEDIUM_MOST 2u /* medium messages under way on a link: each of their packets waits for a round of the tables */

/*
 * May a message of this level go ahead of the bulk over the subchannel? Its budget must allow that; and where a lane of
 * medium messages has not carried the last ones yet, one more would hold up all that comes after it.
 */
static inline bool mr_may_go_ahead(const struct mr_sub *sub, unsigned level, size_t len)
{
    const struct mr_link *l = sub->level[level];

    if (level != MR_LEVEL_SMALL && l && l->ops->connected && l->qp.depth - l->qp.room >= MR_MEDIUM_MOST)
        return false;
    return mr_bucket_lets(&mr_peers.ahead[sub->rail->index][level], len);
}

/* ---- ration.c -------------------------------------------------------------------------------------------------- */

/* These kinds of links to the peer shall be open: set. */
void mr_ration_want(struct mr_peer *p, uint8_t kinds);
/* Its queue pairs have gone, perhaps. */
void mr_ration_recount(struct mr_peer *p);
/* The peer opens a link of that kind. */
void mr_ration_asked(struct mr_peer *p, unsigned kind);
/* The peer is lost: others may have its place. */
void mr_ration_lost(struct mr_peer *p);

/* ---- budget.c -------------------------------------------------------------------------------------------------- */

/* There are more ranks on other hosts than one may have connections to. The same for all ranks of the job. */
bool mr_budget_exceeded(const struct mr_launch *launch);
void mr_budget_init(void);
/* Which of these kinds are wanted of a peer that was just met. */
void mr_budget_first(struct mr_peer *p, uint8_t kinds);
/* A peer that may have none asks for a connection. needed: large messages that were promised wait for it. */
bool mr_budget_grants(struct mr_peer *p, bool needed);
/* The peer has no room for one. */
void mr_budget_refused(struct mr_peer *p);
/* The peer's word that it gives up its connections: true if it is one. */
bool mr_budget_control(struct mr_peer *p, const struct mr_hdr *hdr);
/* Large messages may go there by RDMA: there is a connection, or will be. */
bool mr_budget_rdma(struct mr_peer *p);
/* One waits for a connection. */
void mr_budget_need(struct mr_peer *p);
/* True: a tick has passed, and packets have been counted. */
bool mr_budget_tick(uint64_t now_ns);

/* ---- rings.c ----------------------------------------------------------------------------------------------------- */

/* A round has opened subchannels to p. */
void mr_rings_opened(struct mr_peer *p);
/* After each tick of the budget. */
void mr_rings_tick(void);
/* A word about a ring: true if it is one. */
bool mr_rings_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len);

/* Begins a handshake for a subchannel, or NULL: for all of the other side. False: one is under way. */
typedef bool mr_begin_fn(struct mr_peer *p, struct mr_sub *sub);

/* ---- epoch.c -------------------------------------------------------------------------------------------------- */

/* fabricd has said something new: all peers that are connected otherwise change sides. */
void mr_epoch_all(void);
/* What is due of it. True: more later. */
bool mr_epoch_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin);
/* The round that was to open the other side came to nothing. */
void mr_epoch_failed(struct mr_peer *p);
/* A round has opened subchannels of this turn: if it is a later one it is the one that counts now. */
void mr_epoch_opened(struct mr_peer *p, uint8_t epoch);
/* The peer's word that a subchannel of the other side carries nothing from there any more: true if it is one. */
bool mr_epoch_control(struct mr_peer *p, const struct mr_hdr *hdr);

/* ---- recovery.c ---------------------------------------------------------------------------------------------------- */

/* Links of every subchannel report here. */
extern const struct mr_link_events mr_recovery_events;
/* The subchannel cannot be used any more. Its packets go over others once it has drained. */
void mr_sub_break(struct mr_sub *sub);
/* Nobody needs it any more: closed without a word. */
void mr_sub_close(struct mr_sub *sub);
/* A subchannel that is closed, or could not be opened: it is tried again after a pause. */
void mr_recovery_later(struct mr_sub *sub);
/* The peer's end of it is gone and has drained, in this generation and those before. */
void mr_sub_gone(struct mr_sub *sub, uint8_t generation);
void mr_recovery_opened(struct mr_sub *sub);
/* The first round has ended: say what broke while it lasted, and open it again. */
void mr_recovery_connected(struct mr_peer *p);
/* A word of the peer's mend.c: header kinds from MR_VC_KIND_CHANNEL on. */
void mr_recovery_control(struct mr_peer *p, const struct mr_hdr *hdr);
/* Say and do what is due. True: more later. */
bool mr_recovery_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin);
/* A port's state has changed; its address is another one. */
void mr_recovery_rail_changed(struct mr_rail *rail);
void mr_recovery_rail_moved(struct mr_rail *rail);

/* ---- keepalive.c ---------------------------------------------------------------------------------------------------- */

/* While this rank waits: ask the adapters of peers from which nothing comes for a sign of life. */
void mr_keepalive_silent(uint64_t now_ns);
/* Over all links to this peer, at once. */
void mr_keepalive_all(struct mr_peer *p);
/*
 * The window is full: over those links whose last packets nobody will confirm by himself. Short packets are not signaled
 * each, and when all later ones go over another link, as large ones do on another service level, the oldest stays.
 */
void mr_keepalive_unsignaled(struct mr_peer *p);
/* Ask the process, by a datagram over the way of this subchannel. */
void mr_keepalive_ask(struct mr_sub *sub, uint64_t now_ns);
/* Such a question of the peer, or its answer. */
void mr_keepalive_datagram(struct mr_peer *p, const struct mr_cm_msg *msg);
/* ---- probe.c ------------------------------------------------------------------------------------------------ */

/* A link of the subchannel has drained: keep its queue pair. False: there is one already, or it is of no use. */
bool mr_probe_keep(struct mr_sub *sub, struct mr_qp *qp);
/* Ask the adapter at its other end, once a second at most; its answer ends peer->waited_ns. */
void mr_probe_ask(struct mr_sub *sub, uint64_t now_ns);
void mr_probe_drop(struct mr_sub *sub);
/* At the end: at once. */
void mr_probe_free(struct mr_sub *sub);

#endif
