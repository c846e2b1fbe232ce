/* SPDX-License-Identifier: BSD-3-Clause */
/* Knowledge about the rails when a packet needs the next one. */
#include "libmrmpi/base/base.h"
#include "libmrmpi/net/internal.h"

/*
 * The amount under way is known for the time between the last packet and this one, if the completions were taken then.
 */
void mr_net_tell_time(struct mr_peer *p, size_t payload)
{
    uint64_t since = p->packet_turn.clock;

    mr_sched_tell_time(&p->packet_turn, mr_clock_ns());
    for (unsigned i = 0; p->packet_turn.uneven && i < p->num_now; i++) {
        struct mr_sub *sub = &p->now[i];
        const struct mr_link *l = sub->level[MR_LEVEL_SMALL];

        if (!p->load[i].up || !l || sub->emptied == sub->rail->emptied)
            continue;
        sub->emptied = sub->rail->emptied;
        mr_sched_tell_backlog(&p->packet_turn, p->load, i, payload, mr_link_under_way(l), since);
    }
}
