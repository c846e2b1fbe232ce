/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of conn/ keep of peers and subchannels, and call of each other. No other room includes this. */
#ifndef MRMPI_CONNECT_INTERNAL_H
#define MRMPI_CONNECT_INTERNAL_H

#include "libmrmpi/conn/conn.h"
#include "libmrmpi/conn/peer/subs.h"
#include "libmrmpi/conn/route/trust.h"

/* Of a peer: behind what conn/peer/ keeps of it, in one allocation (mr_peer_make). */
struct mr_connect_peer {
    bool queued;                 /* its handshake waits for its turn (connect.c) */
    bool connecting, recovering; /* is in the list of that name */
    struct mr_peer *next_recovering;
    uint64_t silence_ns; /* it had not answered the request to connect for so long when that was last logged */

    struct mr_sub *handshake_sub; /* handshake.c: the subchannel that our handshake is about; NULL: all of an epoch */
    struct mr_sub *datagram_sub;  /* that the last datagram went over */
    const struct mr_rail *came;   /* the rail here over which its last one came; NULL: none has, */
    uint8_t came_from, came_path; /* the peer's rail, and the path */
    bool rescue;                  /* our handshake is about all ways that answer: nothing is open now */

    bool change;        /* epoch.c: service levels have changed, another epoch is to begin */
    uint64_t change_ns; /* not before */

    uint8_t wanted;   /* ration.c: kinds of links that shall be open: set, as mr_address.kinds */
    bool holds;       /* it has connections, or shall have: it counts */
    uint8_t refusals; /* budget.c: how often in a row it had no room for a connection */
    uint64_t ask_ns;  /* it is not asked again before */

    uint64_t isolated_ns;                     /* recovery.c: since when no subchannel is open; 0: one is */
    uint64_t waited_ns, looked_ns;            /* so long without a sign of life; when it was counted last; 0: never */
    uint64_t guarded_ns;                      /* when guards were asked while it is isolated */
    uint32_t heard_received, heard_confirmed; /* keepalive.c: packets of the peer, and ours that it has, last time */
    unsigned keepalive_next;                  /* the link that is asked next */
    uint64_t round_ns, round_pause_ns;        /* silence.c: when all ways were asked; 0: none was; the next one */
    bool unproven;                            /* the first request had to be repeated, and a way has not answered yet */
    struct mr_questions *questions;           /* questions.h: of each subchannel; NULL: none was ever asked */
    struct mr_connect_sub *subs;              /* of each subchannel; NULL: they are not listed yet */
};

/* What a peer has yet to hear about a subchannel (recovery.c). */
struct mr_sub_news {
    bool broken, gone;
    uint8_t broken_generation, gone_generation;
};

struct mr_connect_sub {
    bool absent;             /* the peer has none such: it met us in a class of fewer lanes */
    bool told;               /* of one that retires: nothing from here is under way on it, and the peer was told so */
    bool heard;              /* the same of the peer */
    bool late;               /* silence.c: a confirmation is late, not for the first time, */
    uint8_t looks;           /* and looks in a row at which nothing had moved of what is under way */
    struct mr_sub_news news; /* for the peer */
    uint64_t opened_ns, retry_ns;
    unsigned failures;     /* in a row */
    uint8_t pkey_turn;     /* of the common partitions, the one that our next request is in: wraps */
    uint32_t question;     /* the last that the peer was asked over this path (keepalive.c), */
    uint64_t asked_ns;     /* and when; 0: it has answered */
    uint16_t unsent;       /* answers over this path for which there was no room; wraps */
    uint8_t doubted;       /* the peer says that so many rounds of its questions were not answered over this way */
    struct mr_trust trust; /* of its way; of several subchannels the first one's counts (mr_way_trust) */
};

/* Of all peers. */
struct mr_connect {
    uint32_t next_id; /* of a handshake */
    struct mr_peer **connecting_end;
    struct mr_rtt connect_rtt; /* of requests to connect */
    unsigned num_rationed;     /* peers that shall have links of the kinds mr_peers.rationed */
    unsigned num_held;         /* and those whose are not closed yet */
    bool suffices;             /* no rank ever has to refuse one */
    uint64_t budget_ns;        /* time of the last tick */
    uint64_t keepalive_ns;     /* when silent peers were asked */
    uint64_t silence_ns;       /* silence.c: the last look, */
    unsigned silence_next;     /* and the rank with which the next one begins */
};
extern struct mr_connect mr_connect;

/* Of the present epoch, and of a kind that the peer shall have: it is opened, and opened again. */
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

/* What is kept of the health of the subchannel's way. */
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
#define MR_WAY_WELL (MR_TRUST_FULL / 2) /* more: others may be left for it */
/* The weights of the peer's subchannels follow what is known of their ways now. */
void mr_ways_weigh(struct mr_peer *p, uint64_t now_ns);

/* ---- due.c ------------------------------------------------------------------------------------------------------- */

/* Something of it is to be sent or done: look after it in mr_peers_poll(). */
void mr_peer_due(struct mr_peer *p);

/* ---- handshake.c, connect.c -------------------------------------------------------------------------------------- */

#define MR_REOPEN_ATTEMPTS 4          /* of one handshake; another begins after a pause (recovery.c) */
#define MR_RESCUE_NS       4000000ull /* before the first repetition of a message over ways that answer; doubles */
extern const struct mr_cm_ops mr_handshake_ops;
/* Begin a handshake for a closed subchannel; NULL: for all of the epoch to come. False: one is under way. */
typedef bool mr_begin_fn(struct mr_peer *p, struct mr_sub *sub);
bool mr_handshake_begin(struct mr_peer *p, struct mr_sub *sub);
/* Other ways answer: the peer's handshake is given up if it is about ways that do not. */
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
/* Which of these kinds are wanted of a peer that was just met. */
void mr_budget_first(struct mr_peer *p, uint8_t kinds);
/* A peer that has no connection asks for one. needed: large messages that were promised wait for it. */
bool mr_budget_grants(struct mr_peer *p, bool needed);
/* The peer has refused one. */
void mr_budget_refused(struct mr_peer *p);

/* ---- epoch.c, recovery.c ----------------------------------------------------------------------------------------- */

/* Do what is due. True: more later. */
bool mr_epoch_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin);
/* The handshake for the epoch to come has failed. */
void mr_epoch_failed(struct mr_peer *p);
/* A handshake has opened subchannels of this epoch: if it is a later one it is the present one now. */
void mr_epoch_opened(struct mr_peer *p, uint8_t epoch);

extern struct mr_link_events mr_recovery_events; /* of the links of every subchannel */
/* Send and do what is due. True: more later. */
bool mr_recovery_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin);
/* It is about to break since its way loses packets. */
void mr_recovery_loses(struct mr_sub *sub);
/* Nothing uses it any more: it is closed without telling the peer. */
void mr_sub_close(struct mr_sub *sub);
/* The handshake that it was opened for has failed, or is not about it any more. */
void mr_recovery_unopen(struct mr_sub *sub);
/* A subchannel that is closed, or could not be opened: it is tried again after a pause. */
void mr_recovery_later(struct mr_sub *sub);
/* A way that answered was not opened, and none is open: another attempt follows when it answers once more. */
void mr_recovery_ask_again(struct mr_peer *p);
/* The peer's end of it is gone and has drained, in this generation and those before. */
void mr_sub_gone(struct mr_sub *sub, uint8_t generation);
void mr_recovery_opened(struct mr_sub *sub);
/* The first handshake has ended: tell the peer what broke while it lasted, and open it again. */
void mr_recovery_connected(struct mr_peer *p);

/* ---- paths.c ----------------------------------------------------------------------------------------------------- */

/* The peer has opened a further path: large messages use the path at this end, too. */
void mr_path_opened(struct mr_sub *sub);

/* ---- silence.c --------------------------------------------------------------------------------------------------- */

/* No subchannel to the peer is open, or a port has come back: its process is asked at once over every pair of rails. */
void mr_silence_ask(struct mr_peer *p, uint64_t now_ns);
/* The way of the subchannel has brought an answer to the present questions. */
bool mr_silence_answered(const struct mr_sub *sub);
/* Some way has, and all have, or the others have had time enough. */
bool mr_silence_heard(const struct mr_peer *p, uint64_t now_ns);

/* ---- keepalive.c ------------------------------------------------------------------------------------------------- */

/* Ask the adapter over all links to this peer, at once. */
void mr_keepalive_all(struct mr_peer *p);
/* A question of the peer's process, or its answer. */
void mr_keepalive_datagram(struct mr_peer *p, const struct mr_cm_msg *msg);

#endif
