/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Health of rails, as fabricd judges it: our rails' is fabricd's on this host, a peer's rails' is in a message of the
 * peer. Small messages leave a rail that is not healthy, large ones use it by its weight, or not at all; its links stay
 * open, so the rail is back as soon as it is well. A rail that is the only one to lead to a peer is used as it is.
 *
 * The library sends fabricd a hint about a rail whose connections break, or whose ways lose too many packets to be
 * used, if the rail is worse than another rail of this process and no peer says that the peer's own rail fails.
 */
#include "libmrmpi/conn/conn.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/verbs/verbs.h"

_Static_assert(MR_HEALTH_BITS *MR_RAILS_MAX <= 32, "the health of all rails fits into a word");
_Static_assert(MR_WEIGHT_MAX == MR_FABRIC_HEALTHY, "the same unit");

#define WAIT_NS  1000000000ull  /* after the first break: a peer may report that its own rail fails */
#define PAUSE_NS 10000000000ull /* FD_SEEN_S */
#define REPEATED 2u             /* breaks; a way that is left for its losses weighs as much */

static uint32_t our_word(void)
{
    uint32_t word = 0;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        word = mr_health_put(word, i, mr_verbs.rail[i].sick);
    return word;
}

/* Of the ways from each of our rails to the peer the least doubt. */
static uint32_t doubt_word(const struct mr_peer *p)
{
    uint32_t least[MR_RAILS_MAX], word = 0, known = 0;

    for (unsigned i = 0; i < p->num_now; i++) {
        unsigned r = p->now[i].rail->index;

        least[r] = known >> r & 1 && least[r] < p->now[i].doubt ? least[r] : p->now[i].doubt;
        known |= 1u << r;
    }
    for (unsigned r = 0; r < mr_verbs.num_rails; r++)
        if (known >> r & 1)
            word = mr_health_put(word, r, least[r]);
    return word;
}

void mr_net_tell_health(struct mr_peer *p)
{
    struct mr_hdr hdr = {.kind = MR_CONTROL_HEALTH, .tag = (int32_t)doubt_word(p), .ctx = our_word()};

    if (p->error || !p->up || (hdr.ctx == p->sick_told && (uint32_t)hdr.tag == p->doubts_told) ||
        mr_vc_send_control(p->vc, &hdr, NULL, 0))
        return;
    p->sick_told = hdr.ctx;
    p->doubts_told = (uint32_t)hdr.tag;
}

void mr_net_take_health(void)
{
    bool changed = false;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        struct mr_rail *r = &mr_verbs.rail[i];
        const char *state;
        uint32_t sick = MR_WEIGHT_MAX - mr_fabric_health(r->dev->name, r->port, &state);

        if (sick != r->sick && mr_log_for_host())
            mr_log(MR_LOG_INFO, "fabricd: rail %s port %u is %s: %u percent of its weight are left", r->dev->name,
                   r->port, state, (MR_WEIGHT_MAX - sick) * 100 / MR_WEIGHT_MAX);
        mr_rail_add(r, MR_RAIL_AILED, sick > r->sick);
        changed |= sick != r->sick;
        mr_peers.unwell |= sick != 0;
        r->sick = sick;
    }
    for (int i = 0; changed && i < mr_peers_end(); i++) {
        struct mr_peer *p = mr_peers.peer[i];

        if (!p || p->error || !p->num_subs)
            continue;
        mr_peer_take_health(p);
        mr_net_tell_health(p);
    }
}

bool mr_net_health_control(struct mr_peer *p, const struct mr_hdr *hdr)
{
    if (hdr->kind != MR_CONTROL_HEALTH)
        return false;
    p->sick = hdr->ctx;
    p->doubts = (uint32_t)hdr->tag;
    mr_peer_take_health(p);
    return true;
}

/* ---- reports to fabricd ------------------------------------------------------------------------------------------ */

static void note_event(struct mr_rail_breaks *b, const struct mr_sub *sub)
{
    if (!b->broken && !b->left) {
        b->since_ns = mr_clock_ns();
        b->rank = sub->peer->rank;
        b->remote = sub->remote_rail;
        b->several = false;
    }
    b->several |= b->rank != sub->peer->rank || b->remote != sub->remote_rail;
}

void mr_net_note_break(struct mr_sub *sub)
{
    struct mr_rail_breaks *b = &mr_net.breaks[sub->rail->index];

    if (sub->rail->down || sub->rail->dev->fatal || sub->peer->error)
        return; /* the port says so itself, or the peer is gone */
    note_event(b, sub);
    b->broken++;
}

void mr_net_note_doubt(struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_sub *sub = &p->sub[i];
        struct mr_rail_breaks *b = &mr_net.breaks[sub->rail->index];

        if (sub->doubt < MR_WEIGHT_MAX || sub->rail->down || sub->rail->dev->fatal || p->error)
            continue;
        note_event(b, sub);
        b->left = true;
    }
    mr_net_tell_health(p);
}

/* The rail at the other end of all of them is known to fail. */
static bool is_peers_fault(const struct mr_rail_breaks *b)
{
    const struct mr_peer *p = mr_peers.peer[b->rank];

    return !b->several && p && mr_health_of(p->sick, b->remote);
}

static uint32_t evidence(const struct mr_rail_breaks *b)
{
    return b->broken + (b->left ? REPEATED : 0);
}

/* Where all rails break alike it is the peers, or this process was away. */
static bool is_worse_than_others(unsigned rail)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (i != rail && !mr_verbs.rail[i].down && 2 * evidence(&mr_net.breaks[i]) < evidence(&mr_net.breaks[rail]))
            return true;
    return false;
}

void mr_net_tell_breaks(uint64_t now_ns, bool ends)
{
    bool worse[MR_RAILS_MAX];

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        worse[i] = is_worse_than_others(i);
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail *r = &mr_verbs.rail[i];
        struct mr_rail_breaks *b = &mr_net.breaks[i];
        uint32_t resent = (uint32_t)r->count[MR_RAIL_RESENT];

        if (!evidence(b) || (now_ns - b->since_ns < WAIT_NS && !ends) || (b->told_ns && now_ns - b->told_ns < PAUSE_NS))
            continue;
        if (evidence(b) >= REPEATED && worse[i] && !is_peers_fault(b) &&
            mr_fabric_tell_seen(r->dev->name, r->port, b->broken + b->left, resent - b->resent))
            b->told_ns = now_ns;
        b->resent = resent;
        b->broken = 0;
        b->left = false;
    }
}
