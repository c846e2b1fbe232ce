/* SPDX-License-Identifier: BSD-3-Clause */
/* Places in receive buffers become free. */
#include "simfab/engine/wire/rx_buffer.h"

#include <stdlib.h>

#include "simfab/engine/wire/fc.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"

void link_release_at(void *link, uint64_t arg)
{
    struct link_dir *l = link;
    unsigned vl = arg >> 32 & 15;

    fc_freed(l, vl, (uint32_t)arg);
    if (l->far->place_left)
        l->far->place_left(l, vl);
}

void mcast_copy_left(void *obj, uint64_t unused)
{
    struct mcast_hold *h = obj;

    if (--h->copies)
        return;
    link_release_at(h->link, h->lane_bytes);
    free(h);
}

void link_release(struct packet *p)
{
    if (p->hold)
        mcast_copy_left(p->hold, 0);
    else if (p->held)
        link_release_at(p->held, (uint64_t)p->held_vl << 32 | p->wire_bytes);
    p->hold = NULL;
    p->held = NULL;
}
