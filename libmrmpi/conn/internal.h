/* SPDX-License-Identifier: BSD-3-Clause */
/* State of peers and subchannels kept by conn/, and calls between its files. Included by no other folder. */
#ifndef MRMPI_CONNECT_INTERNAL_H
#define MRMPI_CONNECT_INTERNAL_H

#include "libmrmpi/base/base.h"
#include "libmrmpi/conn/conn.h"
#include "libmrmpi/conn/peer/subs.h"
#include "libmrmpi/conn/route/trust.h"

/* Of a peer: behind the state of conn/peer/, in one allocation (mr_peer_make). */
struct mr_connect_peer {
    bool queued;                 /* its handshake waits for its turn (connect.c) */
    bool connecting, recovering; /* in the list of that name */
    struct mr_peer *next_recovering;
    uint64_t silence_ns; /* time without an answer to the request to connect at the last log message */

    struct mr_sub *handshake_sub; /* handshake.c: the subchannel that our handshake is about; NULL: all of an epoch */
    struct mr_sub *datagram_sub;  /* of the last datagram */
    const struct mr_rail *came;   /* the local rail of its last message; NULL: none, */
    uint8_t came_from, came_path; /* the peer's rail, and the path */
    bool rescue;                  /* our handshake is about all ways that answer: nothing is open now */

    bool change;        /* epoch.c: service levels have changed, another epoch is to begin */
    uint64_t change_ns; /* not before */

    uint8_t wanted;   /* ration.c: kinds of links that shall be open: set, as mr_address.kinds */
    bool holds;       /* has or shall have connections: counts */
    uint8_t refusals; /* budget.c: how often in a row it had no room for a connection */
    uint64_t ask_ns;  /* not asked again before */

    uint64_t isolated_ns;           /* recovery.c: since when no subchannel is open; 0: one is */
    uint64_t waited_ns, counted_ns; /* time without a sign of life; last count; 0: never */
    uint64_t guarded_ns;            /* time of the questions to guards while isolated */
    uint32_t heard_received,
        heard_confirmed;               /* keepalive.c: packets of the peer, and ours confirmed by the peer, last time */
    unsigned keepalive_next;           /* the next link to ask */
    uint64_t round_ns, round_pause_ns; /* silence.c: when all ways were asked; 0: none was; the next one */
    bool unproven;                     /* the first request had to be repeated, and a way has not answered yet */
    struct mr_questions *questions;    /* questions.h: of each subchannel; NULL: none was ever asked */
    struct mr_connect_sub *subs;       /* of each subchannel; NULL: not listed yet */
};

/* News about a subchannel not sent to the peer yet (recovery.c). */
struct mr_sub_news {
    bool broken, gone;
    uint8_t broken_generation, gone_generation;
};

struct mr_connect_sub {
    bool absent;             /* the peer has none such: it met us in a class of fewer lanes */
    bool told;               /* of a retiring subchannel: nothing from here is under way there, and the peer was told */
    bool heard;              /* the same of the peer */
    bool late;               /* silence.c: a confirmation is late, not for the first time, */
    uint8_t polls;           /* consecutive polls without a movement of packets under way */
    struct mr_sub_news news; /* for the peer */
    uint64_t opened_ns, retry_ns;
    unsigned failures;     /* in a row */
    uint8_t pkey_turn;     /* of the common partitions, the partition of our next request: wraps */
    uint32_t question;     /* the last that the peer was asked over this path (keepalive.c), */
    uint64_t asked_ns;     /* and its time; 0: answered */
    uint16_t unsent;       /* answers over this path that found no room; wraps */
    uint8_t doubted;       /* rounds of the peer's questions over this way without an answer, reported by the peer */
    struct mr_trust trust; /* of its way; of several subchannels the first one's counts (mr_way_trust) */
};

/* Of all peers. */
struct mr_connect {
    uint32_t next_id; /* of a handshake */
    struct mr_peer **connecting_end;
    struct mr_rtt connect_rtt; /* of requests to connect */
    unsigned num_rationed;     /* peers that shall have links of the kinds mr_peers.rationed */
    unsigned num_held;         /* and those whose connections are not closed yet */
    bool suffices;             /* no rank ever has to refuse a connection */
    uint64_t budget_ns;        /* time of the last tick */
    uint64_t keepalive_ns;     /* when silent peers were asked */
    uint64_t silence_ns;       /* silence.c: the last poll, */
    unsigned silence_next;     /* and the first rank of the next one */
};
extern struct mr_connect mr_connect;

/* Of the present epoch, and of a kind for the peer: to be opened, and opened again. */
static inline bool mr_sub_is_wanted(const struct mr_sub *sub)
{
    const struct mr_connect_peer *c = sub->peer->connect;

    return mr_sub_is_current(sub) && !sub->connect->absent && c->wanted >> sub->kind & 1 &&
           (!sub->spare || sub->chosen || c->isolated_ns);
}

static inline bool mr_is_same_way(const struct mr_sub *a, const struct mr_sub *b)
{
    return a->rail == b->rail && a->remote_rail == b->remote_rail && a->path == b->path;
}

/* Is the way of a peer on the same host the same: from the same port here to the same port there? */
static inline bool mr_is_shared_way(const struct mr_sub *a, const struct mr_sub *b)
{
    return a->rail == b->rail && a->path == b->path &&
           a->peer->address->rail[a->remote_rail].lid == b->peer->address->rail[b->remote_rail].lid;
}

#define MR_GUEST_PATIENCE_S 2 /* at most: TCP goes on */

/* Time without a sign of life until the peer's rails are given up. */
static inline uint64_t mr_patience_ns(const struct mr_peer *p)
{
    bool sooner = p->guest_run && mr_config.patience > MR_GUEST_PATIENCE_S;

    return (uint64_t)(sooner ? MR_GUEST_PATIENCE_S : mr_config.patience) * 1000000000;
}

/* The recorded health of the subchannel's way. */
static inline struct mr_trust *mr_way_trust(const struct mr_sub *sub)
{
    const struct mr_sub *first = sub->peer->sub;

    while (!mr_is_same_way(first, sub))
        first++;
    return &first->connect->trust;
}

/* ---- ways.c ------------------------------------------------------------------------------------------------------ */

/* The part of its rate that the subchannel's way carries, of MR_TRUST_FULL. */
uint32_t mr_way_value(const struct mr_sub *sub, uint64_t now_ns);
/* With the way all ways carry more than the others do alone. */
bool mr_way_is_worth(const struct mr_sub *sub, uint64_t now_ns);
#define MR_WAY_WELL  (MR_TRUST_FULL / 2) /* more: others may be left in favour of the way */
#define MR_WAY_LOSES 50000u              /* millionths of packets: at least two questions in a dozen were lost */
/*
 * The way breaks since packets were lost. The way loses packets of all ranks on the host: a packet and its repetition
 * count for each that knows of no loss.
 */
void mr_ways_lose(const struct mr_sub *way, uint64_t now_ns);
/* The peer says that the subchannel breaks for this reason. */
void mr_way_told(struct mr_sub *sub);
/* Adapts the weights of the peer's subchannels to the present knowledge about their ways. */
void mr_ways_weigh(struct mr_peer *p, uint64_t now_ns);

/* ---- due.c ------------------------------------------------------------------------------------------------------- */

/* Work is pending for the peer: handled in mr_peers_poll(). */
void mr_peer_due(struct mr_peer *p);

/* ---- handshake.c, connect.c -------------------------------------------------------------------------------------- */

#define MR_REOPEN_ATTEMPTS 4          /* of one handshake; another begins after a pause (recovery.c) */
#define MR_RESCUE_NS       1000000ull /* before the first repetition of a message over ways that answer; doubles */
#define MR_RESCUE_ATTEMPTS 6          /* over such ways */
extern const struct mr_cm_ops mr_handshake_ops;
/* Begin a handshake for a closed subchannel; NULL: for all of the epoch to come. False: one is under way. */
typedef bool mr_begin_fn(struct mr_peer *p, struct mr_sub *sub);
bool mr_handshake_begin(struct mr_peer *p, struct mr_sub *sub);
/* Before another handshake about a way that answers: gives up one about ways that do not. */
void mr_handshake_yield(struct mr_peer *p, const struct mr_sub *to, uint64_t now_ns);
/* Other ways answer: gives up the peer's handshake if it is about ways that do not. */
void mr_handshake_drop_vain(struct mr_peer *p);

/* ---- ration.c, budget.c ------------------------------------------------------------------------------------------ */

/* These kinds of links to the peer shall be open: set. */
void mr_ration_want(struct mr_peer *p, uint8_t kinds);
/* A subchannel was closed: its queue pairs may be the peer's last. */
void mr_ration_recount(struct mr_peer *p);
/* The peer opens a link of that kind. */
void mr_ration_asked(struct mr_peer *p, unsigned kind);
/* The peer is lost: others may have its place. */
void mr_ration_lost(struct mr_peer *p);
/* The kinds wanted, among these, for a peer just met. */
void mr_budget_first(struct mr_peer *p, uint8_t kinds);
/* A peer without a connection requests one. needed: promised large messages wait for the connection. */
bool mr_budget_allows(struct mr_peer *p, bool needed);
/* The peer has refused a connection. */
void mr_budget_refused(struct mr_peer *p);

/* ---- epoch.c, recovery.c ----------------------------------------------------------------------------------------- */

/* Does pending work. True: more later. */
bool mr_epoch_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin);
/* The handshake for the epoch to come has failed. */
void mr_epoch_failed(struct mr_peer *p);
/* A handshake has opened subchannels of this epoch: a later epoch becomes the present epoch. */
void mr_epoch_opened(struct mr_peer *p, uint8_t epoch);

extern struct mr_link_events mr_recovery_events; /* of the links of every subchannel */
/* Sends and does pending work. True: more later. */
bool mr_recovery_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin);
/* It is about to break since its way loses packets. */
void mr_recovery_loses(struct mr_sub *sub);
/* The subchannel is no longer used: closes it without telling the peer. */
void mr_sub_close(struct mr_sub *sub);
/* The opening handshake has failed, or no longer includes the subchannel. */
void mr_recovery_unopen(struct mr_sub *sub);
/* A subchannel that is closed, or could not be opened, is tried again after a pause. */
void mr_recovery_later(struct mr_sub *sub);
/* An answering way was not opened, and none is open: another attempt follows its next answer. */
void mr_recovery_ask_again(struct mr_peer *p);
/* The peer's end is gone and has drained, in this generation and those before. */
void mr_sub_gone(struct mr_sub *sub, uint8_t generation);
void mr_recovery_opened(struct mr_sub *sub);
/* The first handshake has ended: tells the peer of breaks meanwhile, and opens these subchannels again. */
void mr_recovery_connected(struct mr_peer *p);

/* ---- paths.c ----------------------------------------------------------------------------------------------------- */

/* The peer has opened a further path: large messages use the path at this end, too. */
void mr_path_opened(struct mr_sub *sub);

/* ---- silence.c --------------------------------------------------------------------------------------------------- */

/* No subchannel to the peer is open, or a port has come back: its process is asked at once over every pair of rails. */
void mr_silence_ask(struct mr_peer *p, uint64_t now_ns);
/* The way of the subchannel has brought an answer to the present questions. */
bool mr_silence_answered(const struct mr_sub *sub);
/* The same, and questions go on: the answer is not an old one. */
bool mr_silence_leads(const struct mr_sub *sub);
/* Some way has, and all have, or the others have had time enough. */
bool mr_silence_heard(const struct mr_peer *p, uint64_t now_ns);

/* ---- keepalive.c ------------------------------------------------------------------------------------------------- */

/* Ask the adapter over all links to this peer, at once. */
void mr_keepalive_all(struct mr_peer *p);
/* A question of the peer's process, or its answer. */
void mr_keepalive_datagram(struct mr_peer *p, const struct mr_cm_msg *msg);

#endif
