/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The LIDs of peers' ports, when different from those in their addresses. Connection messages carry the sender's LIDs;
 * but if the LIDs of both ends have changed, no message arrives. Then fabricd is asked, which asks the subnet
 * administration: while a request to connect is unanswered, less and less often. Without a daemon, a peer whose LIDs
 * have changed, like ours, is not found.
 */
#include "libmrmpi/conn/peer/guard.h"
#include "libmrmpi/conn/peer/internal.h"

#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

#define FIRST_NS 50000000ull /* without an answer, before the daemon is asked; doubles */
#define MOST_NS  10000000000ull

static uint16_t partition_to_tell(const struct mr_cm_msg *m, struct mr_peer *p, uint16_t pkey)
{
    unsigned turn = p->own->where_told;

    if (m->type == MR_CM_ASK || m->type == MR_CM_HERE) {
        p->own->where_told++;
        if (turn % 2)
            pkey = mr_sub_datagram_pkey(&p->sub[turn / 2 % p->num_subs], turn / 2 / p->num_subs);
    }
    return mr_pkey_partition(pkey);
}

void mr_where_say(struct mr_cm_msg *m, const struct mr_sub *way, uint16_t pkey)
{
    m->partition = partition_to_tell(m, way->peer, pkey);
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail *r = &mr_verbs.rail[i];
        const struct mr_rail_partition *in = m->partition ? mr_rail_partition(r, m->partition) : NULL;

        m->port[i] = (struct mr_cm_port){
            .lid = r->addr.lid, .lmc = r->addr.lmc & MR_CM_LMC_MAX, .life = r->life & (MR_RAIL_LIVES - 1)};
        for (unsigned b = 0; in && b < 3; b++)
            m->port[i].ud_qpn[b] = (uint8_t)(in->ud_qpn >> 8 * b);
    }
    m->moves = mr_verbs.moves;
    m->rail = way->rail->index & 15;
    m->remote = way->remote_rail & 15;
    m->path = way->path;
}

/*
 * Its adapter was opened anew: datagrams for connecting have another queue pair in each partition, and keys of before
 * are worth nothing.
 */
static void learn_life(struct mr_peer *p, unsigned rail, uint16_t partition, const struct mr_cm_port *port)
{
    unsigned shift = rail * MR_RAIL_LIFE_BITS;
    uint32_t qpn = (uint32_t)port->ud_qpn[0] | (uint32_t)port->ud_qpn[1] << 8 | (uint32_t)port->ud_qpn[2] << 16;
    struct mr_partition *to = mr_address_partition(p->address, rail, partition);

    if (!to)
        to = mr_address_partition(p->address, rail, 0);
    if (qpn && to)
        to->ud_qpn = qpn;
    p->lives = (p->lives & ~((MR_RAIL_LIVES - 1) << shift)) | (uint32_t)port->life << shift;
}

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

    if ((int16_t)(m->moves - p->moves) < 0) /* waited in the queue of another rail */
        return;
    p->moves = m->moves;
    for (unsigned i = 0; i < p->address->num_rails; i++) {
        learn_life(p, i, m->partition, &m->port[i]);
        any |= has_moved(p, i, m->port[i].lid, m->port[i].lmc);
    }
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

/* A local port that leads to this port of the peer, another each time; NULL: none. */
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

static void ask_fabric_places(const struct mr_peer *p)
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
    ask_fabric_places(p);
    p->own->where_asked++;
    p->own->where_pause_ns = 2 * p->own->where_pause_ns < MOST_NS ? 2 * p->own->where_pause_ns : MOST_NS;
    p->own->where_ns = now_ns + p->own->where_pause_ns;
}

void mr_where_answered(struct mr_peer *p)
{
    p->own->where_pause_ns = 0;
}

static void update_place(struct mr_peer *p, const struct mr_fabric_place *place)
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
        for (int r = 0; r < mr_peers_end(); r++)
            if (mr_peers.peer[r] && !mr_peers.peer[r]->error)
                update_place(mr_peers.peer[r], &place);
}
