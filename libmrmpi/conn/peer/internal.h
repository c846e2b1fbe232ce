/* SPDX-License-Identifier: BSD-3-Clause */
/* State of peers and subchannels kept by conn/peer/, and calls between its files. Included by no other folder. */
#ifndef MRMPI_PEER_INTERNAL_H
#define MRMPI_PEER_INTERNAL_H

#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/peer/subs.h"

/* Of a peer: struct mr_peer and this are one allocation (lists.c). */
struct mr_peer_own {
    bool failing; /* in the list of that name */
    struct mr_peer *next_failing;

    uint64_t where_ns, where_pause_ns; /* where.c: time of the next question to fabricd about the peer's place, and the
                                          pause after it */
    unsigned where_asked;              /* number of questions so far */
    unsigned where_told;               /* questions and answers that carried queue pairs; wraps */

    int address_error; /* addresses.c: errno of the missing address */
    bool fetching;     /* the launcher has been asked */

    uint8_t bulk_kind;        /* of links, that carries large messages by RDMA; MR_LINK_KINDS: none does */
    struct mr_load *loads[2]; /* of the subchannels of each parity */
    unsigned num_added;       /* subs.c: spare subchannels that have come into use: the last of mr_peer.now */
    uint64_t link_ids;        /* links.c: places in the window that are given to links: set */
    uint32_t holding;         /* steer.c: rules that hold for the peer: set */
    struct mr_guards *guards; /* guard.c; NULL: no guards */
};

/* Of a subchannel: one array for all of a peer, in the allocation of mr_peer.sub. */
struct mr_sub_own {
    uint8_t lane; /* of subchannels equal but for their copy, from the peer's first lane; counted round */
    uint8_t sl[MR_LEVELS];
    uint8_t crowded;             /* levels that lack a link, for which there was no room at the opening: set */
    uint8_t extra;               /* links at the opening, beside the first */
    struct mr_kept_probe *probe; /* while closed: the kept queue pair of a link (probe.c) */
};

/* Of all peers. */
struct mr_peers_own {
    struct mr_peer *retired; /* by own->next_failing */
    unsigned num_fetching;   /* addresses that are asked for, or have come and mr_addresses_poll has not told */
    uint32_t policy_rails[MR_POLICY_CLASSES]; /* set of our rails allowed by the policies */
    unsigned distance[MR_RAILS_MAX];          /* of our rails from this process, as far as a policy asks */
    bool distances_known;
};
extern struct mr_peers_own mr_peers_own;

/* ---- addresses.c ------------------------------------------------------------------------------------------------- */

/* At the end: the peer's address, if present. */
void mr_address_drop(struct mr_peer *p);

/* ---- partitions.c ------------------------------------------------------------------------------------------------ */

/* For log messages: the P_Keys of both ends. Returns out. */
#define MR_SUB_PKEYS 512
const char *mr_sub_pkeys_text(const struct mr_sub *sub, char out[MR_SUB_PKEYS]);

/* ---- steer.c ----------------------------------------------------------------------------------------------------- */

/* Memory for the tables of a peer that was just met. 0 or -ENOMEM. */
int mr_steer_peer(struct mr_peer *p);
/*
 * Makes the tables anew. of_kind: the usable subchannels of each kind; up: the open ones. Returns the excluded set for
 * packets that do not ask the tables: all.
 */
uint32_t mr_steer_set(struct mr_peer *p, const uint32_t of_kind[MR_LINK_KINDS], uint32_t up);

/* A rank's place among the ranks of its host, from 0. Walks all ranks before: not for each message. */
static inline int mr_peer_place(int rank)
{
    const int *node_of = mr_peers.launch->node_of;
    int n = 0;

    for (int r = 0; r < rank; r++)
        n += node_of[r] == node_of[rank];
    return n;
}

/* ---- levels.c ---------------------------------------------------------------------------------------------------- */

/*
 * True if a subchannel may have a link for packets sent with the bulk, beside the link of small packets that go ahead.
 */
bool mr_levels_have_room(const struct mr_peer *p);
/* The service levels of messages on a subchannel opened now. */
void mr_levels_of(const struct mr_sub *sub, uint8_t sl[MR_LEVELS]);

/* ---- probe.c ----------------------------------------------------------------------------------------------------- */

/* At the end: at once. */
void mr_probe_free(struct mr_sub *sub);

#endif
