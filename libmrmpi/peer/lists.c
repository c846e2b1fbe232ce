/* SPDX-License-Identifier: BSD-3-Clause */
/* The lists of peers for which something is to be done, filled where it is noticed, emptied by poll. */
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/peer/internal.h"

struct mr_peers mr_peers;
struct mr_peers_own mr_peers_own;

bool mr_peer_is_remote(int rank)
{
    return mr_peers.launch->node_of[rank] != mr_peers.launch->node_of[mr_peers.launch->rank];
}

void mr_peer_due(struct mr_peer *p)
{
    mr_peers.recovery_due = true;
    if (p->own->recovering)
        return;
    p->own->recovering = true;
    p->own->next_recovering = mr_peers.recovering;
    mr_peers.recovering = p;
}

void mr_peer_backlog(struct mr_peer *p)
{
    if (p->backlogged || !p->up)
        return; /* who is not connected is flushed when that is done */
    p->backlogged = true;
    p->next_backlogged = mr_peers.backlogged;
    mr_peers.backlogged = p;
}

void mr_peer_watch(struct mr_peer *p)
{
    mr_peers.untimed = true;
    if (p->relying)
        return;
    p->relying = true;
    p->next_relying = mr_peers.relying;
    mr_peers.relying = p;
    mr_peers.num_relying++;
}
