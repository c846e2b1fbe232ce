/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LIDs of peers' ports, when they are no longer those of their addresses. Connection messages carry the sender's
 * LIDs; but if the LIDs of both ends have changed, no message arrives. Then fabricd is asked, which asks the subnet
 * administration: while a request to connect is not answered, less and less often. Without a daemon a peer whose LIDs
 * have changed, like ours, is not found.
 */
#include "libmrmpi/peer/guard.h"
#include "libmrmpi/peer/internal.h"

#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/rail.h"

#define FIRST_NS 50000000ull /* without an answer, before the daemon is asked; doubles */
#define MOST_NS  10000000000ull

static bool has_moved(struct mr_peer *p, unsigned rail, uint16_t lid, uint8_t lmc)
{
    struct mr_rail_addr *to = &p->address->rail[rail];

    if (to->global || !lid || (to->lid == lid && to->lmc == lmc))
        return false;
    mr_log(MR_LOG_INFO, "rank %d on %s: %s port %u has LID %u LMC %u now", p->rank, p->address->host, to->device,
           to->port, lid, lmc);
    to->lid = lid;
    to->lmc = lmc;
    mr_guard_moved(p, rail);
    return true;
}

void mr_where_learn(struct mr_peer *p, const struct mr_cm_msg *m)
{
    bool any = false;

    for (unsigned i = 0; i < p->address->num_rails; i++)
        any |= has_moved(p, i, m->port[i].lid, m->port[i].lmc);
    if (any)
        mr_cm_repeat(&p->cm); /* a request of ours went astray */
}

/* ---- the daemon -------------------------------------------------------------------------------------------------- */

/* The second half of a GID (IBTA volume 1, 4.1.1). */
static uint64_t guid_of(const struct mr_rail_addr *a)
{
    uint64_t guid = 0;

    for (unsigned i = 8; i < 16; i++)
        guid = guid << 8 | a->gid[i];
    return guid;
}

/* A port here that leads to this one of the peer's, another one each time; NULL: there is none. */
static const struct mr_rail *rail_to(const struct mr_peer *p, unsigned remote)
{
    const struct mr_rail *found[MR_SUBS_MAX];
    unsigned num = 0;

    for (unsigned i = 0; i < p->num_now; i++) {
        const struct mr_rail *r = p->sub[i].rail;

        if (p->sub[i].remote_rail == remote && !r->down && !r->dev->fatal)
            found[num++] = r;
    }
    return num ? found[p->own->where_asked % num] : NULL;
}

static void ask_fabric(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->address->num_rails; i++) {
        const struct mr_rail *r = p->address->rail[i].global ? NULL : rail_to(p, i);

        if (r)
            mr_fabric_ask_place(r->dev->name, r->port, guid_of(&p->address->rail[i]));
    }
}

void mr_where_ask(struct mr_peer *p, uint64_t now_ns)
{
    if (!p->own->where_pause_ns) {
        p->own->where_pause_ns = FIRST_NS;
        p->own->where_ns = now_ns + FIRST_NS;
    }
    if (now_ns < p->own->where_ns || !p->num_subs)
        return;
    ask_fabric(p);
    p->own->where_asked++;
    p->own->where_pause_ns = 2 * p->own->where_pause_ns < MOST_NS ? 2 * p->own->where_pause_ns : MOST_NS;
    p->own->where_ns = now_ns + p->own->where_pause_ns;
}

void mr_where_answered(struct mr_peer *p)
{
    p->own->where_pause_ns = 0;
}

static void take_place(struct mr_peer *p, const struct mr_fabric_place *place)
{
    bool any = false;

    for (unsigned i = 0; i < p->address->num_rails; i++)
        if (guid_of(&p->address->rail[i]) == place->guid)
            any |= has_moved(p, i, place->lid, place->lmc);
    if (any)
        mr_cm_repeat(&p->cm);
}

void mr_where_news(void)
{
    struct mr_fabric_place place;

    while (mr_fabric_place(&place))
        for (int r = 0; r < mr_peers.launch->size; r++)
            if (mr_peers.peer[r] && !mr_peers.peer[r]->error)
                take_place(mr_peers.peer[r], &place);
}
