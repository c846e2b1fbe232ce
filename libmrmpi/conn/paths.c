/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Further LID paths for large messages. After enough bytes of large messages to a peer, or from the peer by this rank's
 * RDMA, fabricd is asked for paths without a common cable. Each gets a connection, and the stripes of large messages go
 * over all. If fabricd knows no such path, no queue pair is made. A path that breaks is left and opened again like any
 * subchannel. The end that does the RDMA asks; the other end uses the paths that it opens.
 * After each FD_STATE, also one that tells of changed forwarding, the next large message to a peer asks again.
 */
#include "libmrmpi/conn/internal.h"

#include <stdio.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/route/pair.h"
#include "libmrmpi/verbs/verbs.h"

/* Only pairs of ports that have several LIDs each. False: no daemon could be asked. */
static bool ask_fabric_paths(const struct mr_peer *p)
{
    uint64_t asked = 0;

    for (unsigned i = 0; i < p->num_subs; i++) {
        const struct mr_sub *sub = &p->sub[i];
        const struct mr_rail *r = sub->rail;
        const struct mr_rail_addr *to = &p->address->rail[sub->remote_rail];
        uint64_t pair = 1ull << (r->index * MR_RAILS_MAX + sub->remote_rail);
        _Static_assert(MR_RAILS_MAX * MR_RAILS_MAX <= 64, "a bit for each pair");

        if (!mr_sub_is_path(sub) || asked & pair || r->down || to->global)
            continue;
        asked |= pair;
        if (mr_fabric_ask_paths(r->dev->name, r->port, to->lid, to->lmc))
            return false;
    }
    return true;
}

void mr_paths_note(struct mr_peer *p, uint64_t len)
{
    if (len < p->until_paths) {
        p->until_paths -= (uint32_t)len;
        return;
    }
    p->until_paths = ask_fabric_paths(p) ? 0 : MR_PATHS_AFTER;
}

static void log_paths(const struct mr_peer *p, const struct mr_rail *r, uint32_t set)
{
    char list[4 * MR_FABRIC_PATHS_MAX] = "";
    size_t len = 0;

    for (unsigned i = 0; i < MR_FABRIC_PATHS_MAX; i++)
        if (set >> i & 1)
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%u", len ? ", " : "", i);
    mr_log(MR_LOG_INFO, "rank %d on %s, %s port %u: large messages use paths %s now", p->rank, p->address->host,
           r->dev->name, r->port, list);
}

/* All paths for large messages from now on: the answer may have fewer than the one before. */
static void take_answer(struct mr_peer *p, const struct mr_fabric_paths *a)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        const struct mr_rail *r = &mr_verbs.rail[i];

        if (r->port != a->port || strcmp(r->dev->name, a->device) != 0)
            continue;
        for (unsigned k = 0; k < p->address->num_rails; k++) {
            if (p->address->rail[k].global || p->address->rail[k].lid != a->lid)
                continue;
            if (a->status)
                p->until_paths = MR_PATHS_AFTER;
            else if (mr_subs_use_paths(p, i, k, a->set)) {
                log_paths(p, r, a->set);
                mr_peer_due(p);
            }
        }
    }
}

void mr_paths_news(bool state)
{
    struct mr_fabric_paths a;

    while (mr_fabric_paths(&a))
        for (int r = 0; r < mr_peers_end(); r++)
            if (mr_peers.peer[r] && mr_peers.peer[r]->num_paths && !mr_peers.peer[r]->error)
                take_answer(mr_peers.peer[r], &a);
    for (int r = 0; state && r < mr_peers_end(); r++)
        if (mr_peers.peer[r] && mr_peers.peer[r]->num_paths && !mr_peers.peer[r]->until_paths)
            mr_peers.peer[r]->until_paths = 1;
}

void mr_path_opened(struct mr_sub *sub)
{
    struct mr_peer *p = sub->peer;
    uint32_t set = 1u << sub->path;

    for (unsigned i = 0; i < p->num_subs; i++)
        if (p->sub[i].chosen && p->sub[i].rail == sub->rail && p->sub[i].remote_rail == sub->remote_rail)
            set |= 1u << p->sub[i].path;
    mr_subs_use_paths(p, sub->rail->index, sub->remote_rail, set);
}
