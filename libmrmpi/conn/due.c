/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of peers with pending work: filled by the detecting code, handled in mr_peers_poll(). */
#include "libmrmpi/conn/internal.h"

struct mr_connect mr_connect;

void mr_peer_due(struct mr_peer *p)
{
    mr_peers.recovery_due = true;
    if (p->connect->recovering)
        return;
    p->connect->recovering = true;
    p->connect->next_recovering = mr_peers.recovering;
    mr_peers.recovering = p;
}
