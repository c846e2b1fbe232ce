/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of peers, and lists of peers with pending work, filled by the detecting code. */
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/conn/peer/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 4096 /* most packets under way to a peer */

struct mr_peers mr_peers;
struct mr_peers_own mr_peers_own;

bool mr_peer_is_remote(int rank)
{
    if (rank >= mr_peers.launch->size)
        return rank < mr_peers_end() && mr_peers.peer[rank];
    return mr_peers.launch->node_of[rank] != mr_peers.launch->node_of[mr_peers.launch->rank];
}

int mr_peers_reach(int number)
{
    int end = mr_peers_end();
    struct mr_peer **more;

    if (number < end)
        return 0;
    more = realloc(mr_peers.peer, ((size_t)number + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    memset(more + end, 0, (size_t)(number + 1 - end) * sizeof *more);
    mr_peers.peer = more;
    mr_peers.num_more = number + 1 - mr_peers.launch->size;
    return 0;
}

struct mr_peer *mr_peer_make(int rank, size_t bytes)
{
    struct mr_peer *p = calloc(1, mr_peers.peer_size + sizeof *p->own + bytes);

    if (!p)
        return NULL;
    p->own = (void *)((char *)p + mr_peers.peer_size);
    p->connect = (void *)(p->own + 1);
    p->rank = rank;
    p->address = &mr_address_none;
    p->vc = mr_vc_make(rank);
    mr_window_init(&p->out, WINDOW);
    mr_peers.peer[rank] = p;
    p->vc->data = p;
    return p;
}

void mr_peer_backlog(struct mr_peer *p)
{
    if (p->backlogged || !p->up)
        return; /* an unconnected peer is flushed once connected */
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
