/* SPDX-License-Identifier: BSD-3-Clause */
/* The lists of peers for which something is to be done, from where it is noticed to whoever polls. */
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/rail/net.h"

bool mr_peer_is_remote(int rank)
{
    return mr_net.launch->node_of[rank] != mr_net.launch->node_of[mr_net.launch->rank];
}

void mr_peer_due(struct mr_peer *p)
{
    mr_net.mend_due = true;
    if (p->mending)
        return;
    p->mending = true;
    p->next_mending = mr_net.mending;
    mr_net.mending = p;
}

void mr_peer_backlog(struct mr_peer *p)
{
    if (p->backlogged || !p->up)
        return; /* who is not connected is flushed when that is done */
    p->backlogged = true;
    p->next_backlogged = mr_net.backlogged;
    mr_net.backlogged = p;
}

void mr_peer_watch(struct mr_peer *p)
{
    mr_net.untimed = true;
    if (p->relying)
        return;
    p->relying = true;
    p->next_relying = mr_net.relying;
    mr_net.relying = p;
    mr_net.num_relying++;
}
