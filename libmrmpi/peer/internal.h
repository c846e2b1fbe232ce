/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of peer/ keep of peers and subchannels, and call of each other. No other room includes this. */
#ifndef MRMPI_PEER_INTERNAL_H
#define MRMPI_PEER_INTERNAL_H

#include "libmrmpi/peer/peer.h"
#include "libmrmpi/verbs/qp.h"

/* Of a peer: struct mr_peer and this are one allocation (connect.c). */
struct mr_peer_own {
    bool queued;         /* its handshake waits for its turn (connect.c) */
    bool connecting, recovering, failing; /* is in the list of that name */
    struct mr_peer *next_recovering, *next_failing;
    uint64_t silence_ns; /* it had not answered the request to connect for so long when that was last logged */

    uint64_t where_ns, where_pause_ns; /* where.c: when fabricd is asked where it is, and the pause after that */
    unsigned where_asked;              /* how often it was */

    int address_error; /* addresses.c: it has no address, and why */
    bool fetching;     /* the launcher is asked for it */

    struct mr_sub *handshake_sub; /* handshake.c: the subchannel that our handshake is about; NULL: all of an epoch */
    struct mr_sub *datagram_sub;  /* that the last datagram went over */
    uint8_t bulk_kind;            /* of links, that carries large messages by RDMA; MR_LINK_KINDS: none does */
    struct mr_load *loads[2];     /* of the subchannels of each parity */
    unsigned num_added;           /* subs.c: spare subchannels that have come into use: the last of mr_peer.now */
    bool news_of_port;            /* recovery.c: a handshake is given up, since a port is up: another one begins */
    bool rescue;                  /* handshake.c: our handshake is about all that may lead there: nothing does now */
    uint64_t link_ids;            /* links.c: places in the window that are given to links: set */

    bool change;        /* epoch.c: service levels have changed, another epoch is to begin */
    uint64_t change_ns; /* not before */

    uint8_t wanted;        /* ration.c: kinds of links that shall be open: set, as mr_address.kinds */
    bool holds;            /* it has connections, or shall have: it counts */
    uint8_t refusals;      /* budget.c: how often in a row it had no room for a connection */
    uint64_t ask_ns;       /* it is not asked again before */
    uint32_t use, counted; /* what its connections are worth, packets that were counted for that */
    uint32_t rate;         /* packets per second, lately */
    uint32_t holding;      /* steer.c: rules that hold for it: set */

    uint64_t isolated_ns;                     /* recovery.c: since when no subchannel is open; 0: one is */
    uint64_t waited_ns, looked_ns;            /* so long without a sign of life; when it was counted last; 0: never */
    uint32_t heard_received, heard_confirmed; /* keepalive.c: packets of the peer, and ours that it has, last time */
    unsigned keepalive_next;                  /* the link that is asked next */
    uint64_t round_ns, round_pause_ns;        /* silence.c: when all ways were asked; 0: none was; the next one */
    struct mr_guards *guards;                 /* guard.c; NULL: it has none */
    uint64_t guarded_ns;                      /* recovery.c: when guards were asked while it is isolated */
    struct mr_questions *questions;           /* questions.h: of each subchannel; NULL: none was ever asked */
};

/* What a peer has yet to hear about a subchannel (recovery.c). */
struct mr_sub_news {
    bool broken, gone;
    uint8_t broken_generation, gone_generation;
};

/* Of a subchannel: one array for all of a peer, in the allocation of mr_peer.sub. */
struct mr_sub_own {
    uint8_t epoch; /* in which it is in use: of two that differ in parity the peer changes from one to the other */
    uint8_t copy;  /* of those alike in all else, for classes of several lanes */
    uint8_t lane;  /* which of them it has, from the first that the peer uses; counted round */
    bool spare;    /* of a pair of rails that is used only while no other leads there */
    bool absent;   /* the peer has none such: it met us in a class of fewer lanes */
    bool told;     /* of one that retires: nothing from here is under way on it, and the peer was told so */
    bool heard;    /* the same of the peer */
    uint8_t looks; /* silence.c: in a row at which nothing had moved of what is under way */
    uint8_t sl[MR_LEVELS];
    uint8_t crowded;         /* levels that want a link, for which there was no room when it was opened: set */
    uint8_t extra;           /* links that it was opened with, beside the first */
    struct mr_sub_news news; /* for the peer */
    struct mr_kept_probe *probe; /* while it is closed: the queue pair that is kept of a link (probe.c) */
    uint64_t opened_ns, closed_ns, retry_ns;
    unsigned failures; /* in a row */
    uint32_t question; /* the last that the peer was asked over this path (keepalive.c), */
    uint64_t asked_ns; /* and when; 0: it has answered */
};

/* Of all peers. */
struct mr_peers_own {
    uint32_t next_id; /* of a handshake */
    struct mr_peer **connecting_end;
    struct mr_rtt connect_rtt; /* of requests to connect */
    unsigned num_fetching;     /* addresses that are asked for, or have come and mr_addresses_poll has not told */
    unsigned num_rationed;     /* peers that shall have links of the kinds mr_peers.rationed */
    unsigned num_held;         /* and those whose are not closed yet */
    bool suffices;             /* no rank ever has to refuse one */
    uint64_t budget_ns;        /* time of the last tick */
    uint32_t policy_rails[MR_POLICY_CLASSES]; /* set of our rails that the policies allow */
    unsigned distance[MR_RAILS_MAX];          /* of our rails from this process, as far as a policy asks */
    bool distances_known;
    uint64_t keepalive_ns; /* when silent peers were asked */
    uint64_t silence_ns;   /* silence.c: the last look, */
    unsigned silence_next; /* and the rank with which the next one begins */
};
extern struct mr_peers_own mr_peers_own;

/* ---- lists.c, addresses.c ---------------------------------------------------------------------------------------- */

/* Something of it is to be sent or done: look after it in mr_peers_poll(). */
void mr_peer_due(struct mr_peer *p);
/* At the end: that of the peer, if it has come. */
void mr_address_drop(struct mr_peer *p);
/* While num_fetching: take those that have come, go on connecting. Not while a connection is prepared. */
void mr_addresses_poll(void);

/* ---- handshake.c, connect.c, where.c ----------------------------------------------------------------------------- */

#define MR_REOPEN_ATTEMPTS 4 /* of one handshake; another begins after a pause (recovery.c) */
extern const struct mr_cm_ops mr_handshake_ops;
/* Begin a handshake for a closed subchannel; NULL: for all of the epoch to come. False: one is under way. */
typedef bool mr_begin_fn(struct mr_peer *p, struct mr_sub *sub);
bool mr_handshake_begin(struct mr_peer *p, struct mr_sub *sub);
/* The peer's ports are where its message says, not where its address said. */
void mr_where_learn(struct mr_peer *p, const struct mr_cm_msg *m);
/* A request to connect is not answered: ask fabricd where the peer is. */
void mr_where_ask(struct mr_peer *p, uint64_t now_ns);
void mr_where_answered(struct mr_peer *p);

/* ---- steer.c ----------------------------------------------------------------------------------------------------- */

/* Memory for the tables of a peer that was just met. 0 or -ENOMEM. */
int mr_steer_peer(struct mr_peer *p);
/*
 * Make the tables anew. of_kind: the subchannels of each kind that may be taken; up: those that are up. Returns the
 * excluded set for packets that do not ask the tables: all.
 */
uint32_t mr_steer_set(struct mr_peer *p, const uint32_t of_kind[MR_LINK_KINDS], uint32_t up);
/* Other rules hold for the peer's counts than when its tables were made. */
bool mr_steer_is_stale(const struct mr_peer *p);
/* If all links that both ranks may use were open, some packet to this peer would go over one of these kinds. */
bool mr_steer_wants(const struct mr_peer *p, uint8_t set);

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

extern const struct mr_link_events mr_recovery_events; /* of the links of every subchannel */
/* Send and do what is due. True: more later. */
bool mr_recovery_poll(struct mr_peer *p, uint64_t now_ns, mr_begin_fn *begin);
/* Nothing uses it any more: it is closed without telling the peer. */
void mr_sub_close(struct mr_sub *sub);
/* A subchannel that is closed, or could not be opened: it is tried again after a pause. */
void mr_recovery_later(struct mr_sub *sub);
/* No way was found to a peer to which none is open: the next attempt follows soon. */
void mr_recovery_pause(struct mr_peer *p);
/* The peer's end of it is gone and has drained, in this generation and those before. */
void mr_sub_gone(struct mr_sub *sub, uint8_t generation);
void mr_recovery_opened(struct mr_sub *sub);
/* The first handshake has ended: tell the peer what broke while it lasted, and open it again. */
void mr_recovery_connected(struct mr_peer *p);

/* ---- keepalive.c, probe.c ---------------------------------------------------------------------------------------- */

/* It is lost after MRMPI_PATIENCE, for a reason that is logged with all ways to it (lost.c). */
void mr_peer_give_up(struct mr_peer *p, const char *why);
/* Ask the adapter over all links to this peer, at once. */
void mr_keepalive_all(struct mr_peer *p);
/* A question of the peer's process, or its answer. */
void mr_keepalive_datagram(struct mr_peer *p, const struct mr_cm_msg *msg);
/* A link of the subchannel has drained: keep its queue pair. False: there is one already, or it is of no use. */
bool mr_probe_keep(struct mr_sub *sub, struct mr_qp *qp);
/* Ask the adapter at its other end, once a second at most; its answer ends mr_peer_own.waited_ns. */
void mr_probe_ask(struct mr_sub *sub, uint64_t now_ns);
void mr_probe_drop(struct mr_sub *sub);
/* At the end: at once. */
void mr_probe_free(struct mr_sub *sub);

#endif
