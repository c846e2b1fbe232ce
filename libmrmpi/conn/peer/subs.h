/* SPDX-License-Identifier: BSD-3-Clause */
/* Interface for conn/, which opens and closes peers' subchannels. Included by no other folder. */
#ifndef MRMPI_SUBS_H
#define MRMPI_SUBS_H

#include "libmrmpi/conn/conn.h"
#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/conn/peer/events.h"

_Static_assert(MR_RAILS_MAX == MR_CM_PORTS_MAX, "one place for each rail");
_Static_assert(MR_RAILS_MAX <= MR_POLICY_RAILS, "a policy can name all rails");
_Static_assert(MR_LEVELS == MR_CM_LEVELS, "one place for each level");
_Static_assert(MR_SUBS_MAX == MR_CM_SUBS_MAX, "one place for each subchannel");

/* ---- lists.c, lost.c --------------------------------------------------------------------------------------------- */

/* A peer not in the table yet, with bytes of the caller's (mr_peer.connect). NULL: no memory. */
struct mr_peer *mr_peer_make(int rank, size_t bytes);
/* The peer is lost after MRMPI_PATIENCE, for a reason that is logged with all ways to the peer. */
void mr_peer_give_up(struct mr_peer *p, const char *why);

/* ---- lists.c ----------------------------------------------------------------------------------------------------- */

int mr_peers_reach(int number); /* makes the table of peers that long. 0 or -ENOMEM */

/* ---- addresses.c, where.c ---------------------------------------------------------------------------------------- */

/* Take addresses that have come, go on connecting. Not while a connection is prepared. */
void mr_addresses_poll(void);
int mr_peer_keep_address(struct mr_peer *p, const struct mr_address *address); /* as the peer's. 0 or -ENOMEM */
/* The peer's ports are where its message says, not where its address said. */
void mr_where_learn(struct mr_peer *p, const struct mr_cm_msg *m);
/*
 * Writes into a message of ours the place of our rails, and its way, in the partition of this P_Key of ours. Handshakes
 * carry the queue pairs for that partition; questions, every other time, those for the partition of another way, so
 * that rails are found over each other.
 */
void mr_where_say(struct mr_cm_msg *m, const struct mr_sub *way, uint16_t pkey);
/* A request to connect is not answered: ask fabricd where the peer is. */
void mr_where_ask(struct mr_peer *p, uint64_t now_ns);
void mr_where_answered(struct mr_peer *p);

/* ---- levels.c ---------------------------------------------------------------------------------------------------- */

/*
 * Places in the window for links, beyond those reserved for the first link of every closed subchannel except this one
 * (NULL: of all).
 */
unsigned mr_levels_spare_links(const struct mr_peer *p, const struct mr_sub *except);
/* True if open on the present service levels of messages, as far as it has links. */
bool mr_levels_hold(const struct mr_sub *sub);
/* True if levels lack a link for which there was no room at the opening. */
bool mr_levels_crowd(const struct mr_sub *sub);
/* Links at the opening, beside the first. */
unsigned mr_levels_extra_links(const struct mr_sub *sub);

/* ---- links.c ----------------------------------------------------------------------------------------------------- */

/* Makes queue pairs for a closed subchannel: MR_SUB_OPENING. 0 or a negative errno: still closed. */
int mr_sub_open(struct mr_sub *sub, const struct mr_link_events *events);
/* The description of a subchannel being opened, for a handshake. */
struct mr_cm_sub mr_sub_describe(const struct mr_sub *sub);
/*
 * Connects its links to the peer's in remote. sls: the description whose service levels count. 0 or a negative errno.
 */
int mr_sub_connect(struct mr_sub *sub, const struct mr_rail_addr *to, const struct mr_cm_sub *remote,
                   const struct mr_cm_sub *sls, uint32_t local_psn, uint32_t remote_psn);
/* The handshake has failed: closes the subchannel. True: it was connected, and a generation of it is over. */
bool mr_sub_unopen(struct mr_sub *sub);
/* Its links are closed: their places in the window can be given to others. */
void mr_sub_forget_links(struct mr_sub *sub);

/* ---- subs.c ------------------------------------------------------------------------------------------------------ */

/* List all pairs of rails, their paths and kinds of links, whether their ports are up or not. 0 or a negative errno. */
int mr_subs_make(struct mr_peer *p);
/* The one between these rails, ours and the peer's; kind: mr_sub_kind(). NULL: there is none. */
struct mr_sub *mr_sub_find(struct mr_peer *p, unsigned rail, unsigned remote, unsigned path, unsigned kind);
/* A spare subchannel was opened: from now on spare ones are handled like the others. */
void mr_subs_use_spares(struct mr_peer *p);
/* Large messages use these further paths of a pair of rails, and no others: set, by number. False: they did before. */
bool mr_subs_use_paths(struct mr_peer *p, unsigned rail, unsigned remote, uint32_t set);
/* True for a further path: spare, or chosen for large messages. */
static inline bool mr_sub_is_path(const struct mr_sub *sub)
{
    return sub->spare && sub->path;
}
/* Sets whether the subchannel's own state allows traffic. mr_sub_prefer() chooses among such subchannels. */
void mr_sub_set_up(struct mr_sub *sub, bool up);
/* Sets the peer's epoch: the set of that parity is in use. Its weights are those of the other set. */
void mr_subs_change_epoch(struct mr_peer *p, uint8_t epoch);
/* Chooses the subchannels for packets: those of the preferred kind among the open ones. */
void mr_sub_prefer(struct mr_peer *p);
void mr_sub_renew_fast(struct mr_peer *p); /* mr_peer.fast and .fast_link; mr_sub_prefer does that, too */

/* Kind, parity and copy in one byte, as messages name them. */
static inline uint8_t mr_sub_kind(const struct mr_sub *sub)
{
    _Static_assert(MR_LINK_KINDS <= 8 && MR_LANES_MAX <= 16, "three bits, one and four");
    return (uint8_t)(sub->kind | sub->parity << 3 | sub->copy << 4);
}

/* ---- partitions.c ------------------------------------------------------------------------------------------------ */

/* Our P_Key for its next queue pairs: the turn-th of the partitions that both rails can talk in; 0: there is none. */
uint16_t mr_sub_pkey(const struct mr_sub *sub, unsigned turn);
unsigned mr_sub_num_pkeys(const struct mr_sub *sub); /* how many there are */
/* No pair of rails has a partition, but spare pairs may: these are used as if they had precedence. */
bool mr_peer_lacks_pkeys(const struct mr_peer *p);
/* The same, if the peer's queue pairs have this one. */
uint16_t mr_sub_answer_pkey(const struct mr_sub *sub, uint16_t theirs);
/* After a change of our rail's P_Keys: its queue pairs still have the right one. moved: of mr_verbs_handlers. */
bool mr_sub_keeps_pkey(const struct mr_sub *sub, uint32_t moved);
/* Our P_Key for a datagram: that of its queue pairs if open, or the turn-th; 0: none. */
uint16_t mr_sub_datagram_pkey(const struct mr_sub *sub, unsigned turn);
/* A datagram for connecting, in that partition. -ENOKEY: there is none. */
int mr_sub_datagram(const struct mr_sub *sub, unsigned turn, uint8_t sl, const void *data, size_t len);
/* Logs that the subchannel has no partition. */
void mr_sub_tell_keyless(const struct mr_sub *sub);

/* ---- spread.c ---------------------------------------------------------------------------------------------------- */

/* True if this rail of ours is farther from the process than another, under a policy of small messages that cares. */
bool mr_spread_is_far(unsigned rail);

/* ---- steer.c ----------------------------------------------------------------------------------------------------- */

/* Other rules hold for the peer's counts than when its tables were made. */
bool mr_steer_is_stale(const struct mr_peer *p);
/* True if some packet to this peer would go over one of these kinds, with all links open that both ranks may use. */
bool mr_steer_wants(const struct mr_peer *p, uint8_t set);

/* ---- lost.c ------------------------------------------------------------------------------------------------------ */

/* Frees the closed peers of a guest that no list has; listed: says so of the lists of conn/. False: some are left. */
bool mr_retired_free(int number, bool (*listed)(const struct mr_peer *p));

/* ---- probe.c ----------------------------------------------------------------------------------------------------- */

/* A link of the subchannel has drained: keeps its queue pair. False: one is kept already, or this one is of no use. */
bool mr_probe_keep(struct mr_sub *sub, struct mr_qp *qp);
/* Ask the adapter at its other end, once a second at most; its answer is told (mr_peer_events.answered). */
void mr_probe_ask(struct mr_sub *sub, uint64_t now_ns);
void mr_probe_drop(struct mr_sub *sub);

#endif
