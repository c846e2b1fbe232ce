/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subchannels of a peer (subs.c), their links (links.c), and the service levels of these (levels.c): what handshakes,
 * recovery and epochs do with them.
 */
#ifndef MRMPI_SUBS_H
#define MRMPI_SUBS_H

#include "libmrmpi/peer/internal.h"
#include "libmrmpi/verbs/rail.h"

_Static_assert(MR_RAILS_MAX == MR_CM_PORTS_MAX, "one place for each rail");
_Static_assert(MR_RAILS_MAX <= MR_POLICY_RAILS, "a policy can name all rails");
_Static_assert(MR_LEVELS == MR_CM_LEVELS, "one place for each level");
_Static_assert(MR_SUBS_MAX == MR_CM_SUBS_MAX, "one place for each subchannel");

/* ---- levels.c ---------------------------------------------------------------------------------------------------- */

/* May a subchannel have a link for packets that go with the bulk, beside that of small ones that go ahead? */
bool mr_levels_have_room(const struct mr_peer *p);
/*
 * Places in the window for links, beyond those that are kept for the first link of every closed subchannel except this
 * one (NULL: of all).
 */
unsigned mr_levels_spare_links(const struct mr_peer *p, const struct mr_sub *except);
/* The service levels that messages have on a subchannel that is opened now. */
void mr_levels_of(const struct mr_sub *sub, uint8_t sl[MR_LEVELS]);

/* ---- links.c ----------------------------------------------------------------------------------------------------- */

/* Make queue pairs for one that is closed: MR_SUB_OPENING. 0 or a negative errno: it is still closed. */
int mr_sub_open(struct mr_sub *sub, const struct mr_link_events *events);
/* What a message of a handshake says of one that is being opened. */
struct mr_cm_sub mr_sub_describe(const struct mr_sub *sub);
/*
 * Connect its links to the peer's, which are in remote. sls: the description whose service levels count. 0 or a
 * negative errno.
 */
int mr_sub_connect(struct mr_sub *sub, const struct mr_rail_addr *to, const struct mr_cm_sub *remote,
                   const struct mr_cm_sub *sls, uint32_t local_psn, uint32_t remote_psn);
/* The handshake has failed: it is closed. */
void mr_sub_unopen(struct mr_sub *sub);
/* Its links are closed: their places in the window can be given to others. */
void mr_sub_forget_links(struct mr_sub *sub);

/* ---- subs.c ------------------------------------------------------------------------------------------------------ */

/* List all pairs of rails, their paths and kinds of links, whether their ports are up or not. 0 or a negative errno. */
int mr_subs_make(struct mr_peer *p);
/* The one between these rails, ours and the peer's; kind: mr_sub_kind(). NULL: there is none. */
struct mr_sub *mr_sub_find(struct mr_peer *p, unsigned rail, unsigned remote, unsigned path, unsigned kind);
/* One of the spare ones was opened: from now on they are looked at as the others. */
void mr_subs_use_spares(struct mr_peer *p);
/* Choose the subchannels that carry packets: those of the preferred kind, of those that are open. */
void mr_sub_prefer(struct mr_peer *p);
void mr_sub_renew_plain(struct mr_peer *p); /* mr_peer.plain and .straight; mr_sub_prefer does that, too */

/* Kind, parity and copy in one byte, as messages name them. */
static inline uint8_t mr_sub_kind(const struct mr_sub *sub)
{
    _Static_assert(MR_LINK_KINDS <= 8 && MR_LANES_MAX <= 16, "three bits, one and four");
    return (uint8_t)(sub->kind | sub->parity << 3 | sub->own->copy << 4);
}
static inline bool mr_sub_is_wanted(const struct mr_sub *sub)
{
    return mr_sub_is_current(sub) && !sub->own->absent && sub->peer->own->wanted >> sub->kind & 1 &&
           (!sub->own->spare || sub->peer->own->isolated_ns);
}

#endif
