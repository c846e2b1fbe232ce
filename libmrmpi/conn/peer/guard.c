/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lossy links cannot report a dead peer, and a computing peer is silent, too. So there are reliable connections beside
 * them, one for each rail, to two peers of each host: the ranks with this rank's place on its own host, and with the
 * neighbouring place, in the order of the host's ranks, counted round. The neighbour is the next place on hosts behind
 * the own host, and the place before on hosts in front: between hosts with the same number of ranks, each rank has two
 * guarded peers, not more, whether the number is even or odd. Both ends know this, and a rank that connects to any peer
 * of a host connects to these two. Guards are asked only when a peer has been silent (conn/keepalive.c): a
 * write of no bytes, as in probe.c. They have no time-out: a guard with a lost question would end in error later,
 * perhaps while its process computes, and no longer answer the peer.
 *
 * A peer with guards of its own is judged by these guards. For other peers of its host, any guard of the host must
 * answer: then the host can be reached, and the peers compute. The death of one process of the host proves nothing
 * about the others, so there are two guarded peers.
 */
#include "libmrmpi/conn/peer/guard.h"
#include "libmrmpi/conn/peer/internal.h"

#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/peer/probe.h"
#include "libmrmpi/verbs/verbs.h"

#define PEERS_MOST 256 /* peers with guards; others do without: this limits the memory */

struct mr_guards {
    const struct mr_peer *peer;
    bool connected;
    uint64_t answered_ns;
    struct guard {
        struct mr_probe probe;
        struct mr_guards *all;
        unsigned remote; /* rail */
        bool made, connected;
    } rail[]; /* mr_verbs.num_rails */
};

static void guard_answered(struct mr_probe *l)
{
    container_of(l, struct guard, probe)->all->answered_ns = mr_clock_ns();
}

static void bring_up_guard(struct guard *one)
{
    mr_probe_again(&one->probe, &one->all->peer->address->rail[one->remote]);
}

/* The guard must answer the peer at once, not only after a question. Messages of the meantime count. */
static void guard_drained(struct mr_probe *l)
{
    struct guard *one = container_of(l, struct guard, probe);
    uint32_t send;

    mr_qp_psns(&l->qp, &send, &l->receive);
    if (one->connected)
        bring_up_guard(one);
}

static void free_guards(struct mr_guards *g)
{
    for (unsigned r = 0; r < mr_verbs.num_rails; r++)
        if (g->rail[r].made)
            mr_qp_destroy(&g->rail[r].probe.qp);
    free(g);
}

void mr_guard_free(struct mr_peer *p)
{
    if (p->own->guards)
        free_guards(p->own->guards);
    p->own->guards = NULL;
}

void mr_guard_rail_lost(const struct mr_peer *p, unsigned rail)
{
    struct guard *one = p->own->guards ? &p->own->guards->rail[rail] : NULL;

    if (!one || !one->made)
        return;
    mr_qp_destroy(&one->probe.qp);
    one->made = one->connected = false;
}

/* ---- peers with guards ------------------------------------------------------------------------------------------- */

static bool may_lose(unsigned kinds)
{
    return kinds != mr_kinds_that_are(kinds, MR_IS_RELIABLE);
}

static bool has_guards(const struct mr_peer *p)
{
    return p && (p->up || p->error) && p->own->guards && p->own->guards->connected;
}

/* The n-th rank of a host, counted round, and by a step more: 0, 1 or -1. */
static int nth_rank_of_host(int host, int n, int step)
{
    const struct mr_launch *launch = mr_peers.launch;
    int size = 0;

    for (int r = 0; r < launch->size; r++)
        size += launch->node_of[r] == host;
    n = (n + size + step) % size;
    for (int r = 0;; r++)
        if (launch->node_of[r] == host && !n--)
            return r;
}

/* One of the two ranks that guard the host of another rank; second: the other one. */
static int guard_of(int rank, int other, bool second)
{
    const int *node = mr_peers.launch->node_of, step = node[rank] < node[other] ? 1 : -1;

    return nth_rank_of_host(node[other], mr_peer_place(rank), second ? step : 0);
}

static bool is_guard(int rank, int other)
{
    return guard_of(rank, other, false) == other || guard_of(rank, other, true) == other;
}

static bool are_enough(void)
{
    unsigned n = 0;

    for (int r = 0; r < mr_peers_end() && n < PEERS_MOST; r++)
        n += mr_peers.peer[r] && mr_peers.peer[r]->own->guards;
    return n >= PEERS_MOST;
}

/*
 * Rails with a guard, each once at either end: both ends list pairs in the same order. Returns a subchannel of the
 * pair.
 */
static const struct mr_sub *sub_of_rail(const struct mr_peer *p, unsigned rail)
{
    unsigned ours = 0, theirs = 0;

    for (unsigned i = 0; i < p->num_now; i++) {
        const struct mr_sub *sub = &p->sub[i];

        if (sub->kind != p->sub[0].kind || ours >> sub->rail->index & 1 || theirs >> sub->remote_rail & 1)
            continue;
        if (sub->rail->index == rail)
            return sub;
        ours |= 1u << sub->rail->index;
        theirs |= 1u << sub->remote_rail;
    }
    return NULL;
}

/* ---- in a handshake ---------------------------------------------------------------------------------------------- */

/* Describes the guards in *out. */
static void open_guards(struct mr_guards *g, struct mr_cm_msg *out)
{
    for (unsigned r = 0; r < mr_verbs.num_rails; r++) {
        struct guard *one = &g->rail[r];

        if (!one->made && !mr_verbs.rail[r].down) {
            one->all = g;
            one->probe.answers = true;
            one->probe.answered = guard_answered;
            one->probe.drained = guard_drained;
            one->made = !mr_qp_create(&mr_verbs.rail[r], MR_QP_RC, 1, &one->probe.qp, &mr_probe_events, &one->probe);
            one->probe.qp.untimed = true;
        }
        out->guard[r].qpn = one->made ? one->probe.qp.qpn & 0xffffff : 0;
    }
}

static bool has_offers(const struct mr_cm_msg *m)
{
    for (unsigned r = 0; r < MR_CM_PORTS_MAX; r++)
        if (m->guard[r].qpn)
            return true;
    return false;
}

void mr_guard_make(struct mr_peer *p, const struct mr_cm_msg *req, struct mr_cm_msg *out)
{
    int self = mr_peers.launch->rank;

    if (p->up || p->guest_run || !may_lose(mr_peers.our_kinds & p->address->kinds) ||
        !(is_guard(self, p->rank) || is_guard(p->rank, self)))
        return;
    if (p->own->guards && (p->own->guards->connected || (req && !has_offers(req))))
        mr_guard_free(p); /* connected: by a handshake that failed afterwards */
    if ((req && !has_offers(req)) || (!p->own->guards && are_enough()))
        return;
    if (!p->own->guards)
        p->own->guards = calloc(1, sizeof *p->own->guards + mr_verbs.num_rails * sizeof *p->own->guards->rail);
    if (!p->own->guards)
        return;
    p->own->guards->peer = p;
    open_guards(p->own->guards, out);
}

/* The P_Key of the pair of rails: subchannels of a kind that is not opened to this peer have none. */
static uint16_t pkey_of_pair(const struct mr_peer *p, const struct mr_sub *pair)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].rail == pair->rail && p->sub[i].remote_rail == pair->remote_rail && p->sub[i].pkey)
            return p->sub[i].pkey;
    return 0;
}

static void connect_guard(struct mr_peer *p, unsigned r, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls)
{
    struct guard *one = &p->own->guards->rail[r];
    const struct mr_sub *sub = sub_of_rail(p, r);
    unsigned to = sub ? sub->remote_rail : MR_RAILS_MAX;
    uint16_t pkey = sub ? pkey_of_pair(p, sub) : 0;

    if (!one->made || to >= p->address->num_rails || !remote->guard[to].qpn || !pkey)
        return;
    one->remote = to;
    one->probe.qp.pkey = pkey;
    one->probe.psn = p->cm.local->psn;
    one->probe.receive = remote->psn;
    one->connected = !mr_qp_connect(&one->probe.qp, &p->address->rail[to], remote->guard[to].qpn, one->probe.psn,
                                    one->probe.receive, (uint8_t)sls->sub[0].level[MR_LEVEL_SMALL].sl, 0);
    p->own->guards->connected |= one->connected;
}

void mr_guard_connect(struct mr_peer *p, const struct mr_cm_msg *remote, const struct mr_cm_msg *sls)
{
    struct mr_guards *g = p->own->guards;

    if (!g || p->up || g->connected)
        return;
    for (unsigned r = 0; r < mr_verbs.num_rails; r++)
        connect_guard(p, r, remote, sls);
    for (unsigned r = 0; r < mr_verbs.num_rails; r++)
        if (g->rail[r].made && !g->rail[r].connected) {
            mr_qp_destroy(&g->rail[r].probe.qp);
            g->rail[r].made = false;
        }
    if (!g->connected)
        mr_guard_free(p);
}

static void begin_again(struct guard *one)
{
    if (one->probe.qp.state == MR_QP_DRAINED)
        bring_up_guard(one);
    else
        mr_qp_abort(&one->probe.qp);
}

void mr_guard_moved(const struct mr_peer *p, unsigned remote)
{
    for (unsigned r = 0; p->own->guards && r < mr_verbs.num_rails; r++)
        if (p->own->guards->rail[r].connected && p->own->guards->rail[r].remote == remote)
            begin_again(&p->own->guards->rail[r]);
}

void mr_guard_keys(const struct mr_peer *p, unsigned rail)
{
    if (p->own->guards && p->own->guards->rail[rail].connected)
        begin_again(&p->own->guards->rail[rail]);
}

int mr_guard_missing(const struct mr_peer *p)
{
    for (int second = 0; second < 2 && may_lose(mr_peers.our_kinds) && !p->guest_run; second++) {
        int r = guard_of(mr_peers.launch->rank, p->rank, second);

        if (!mr_peers.peer[r])
            return r;
    }
    return -1;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

static bool ask_peer(const struct mr_peer *p, uint64_t now_ns, uint64_t since_ns)
{
    for (unsigned r = 0; r < mr_verbs.num_rails; r++) {
        struct guard *one = &p->own->guards->rail[r];

        if (!one->connected || mr_verbs.rail[r].down || mr_verbs.rail[r].dev->fatal)
            continue;
        if (one->probe.qp.state == MR_QP_DRAINED) /* could not be brought up then */
            bring_up_guard(one);
        mr_probe_post(&one->probe, now_ns);
    }
    return p->own->guards->answered_ns >= since_ns;
}

bool mr_guard_ask(const struct mr_peer *p, uint64_t now_ns, uint64_t since_ns, bool *heard)
{
    bool found = has_guards(p);

    *heard = found && ask_peer(p, now_ns, since_ns);
    for (int r = 0; !has_guards(p) && r < mr_peers_end(); r++) {
        if (!mr_peers_share_host(r, p->rank) || !has_guards(mr_peers.peer[r]))
            continue;
        found = true;
        *heard |= ask_peer(mr_peers.peer[r], now_ns, since_ns);
    }
    return found;
}
