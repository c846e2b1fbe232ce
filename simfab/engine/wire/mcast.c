/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast packets in switches. */
#include "simfab/engine/wire/mcast.h"

#include <stdlib.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"
#include "simfab/engine/wire/switch.h"
#include "simfab/engine/wire/trace_log.h"

/* By the group's entry; what the table has no entry for goes to the default port. *known: somebody is in the group. */
static uint32_t output_ports(const struct port *in, uint16_t lid, uint8_t ports[FABRIC_PORTS_MAX], bool *known)
{
    const struct node *sw = in->node;
    uint32_t index = lid - MCAST_LID_FIRST, n = 0;

    *known = false;
    if (index >= sw->mft_cap) {
        uint8_t primary = sw->default_mcast_primary;
        uint8_t out = in->num == primary ? sw->default_mcast_not_primary : primary;

        if (out && out <= sw->num_ports && out != in->num)
            ports[n++] = out;
        *known = n > 0;
        return n;
    }
    for (unsigned position = 0; position < 16; position++)
        for (uint32_t mask = sw->mft[index * 16 + position]; mask; mask &= mask - 1) {
            unsigned num = position * 16 + (unsigned)__builtin_ctz(mask);

            *known = true;
            /* port 0 is the switch's own, which has no queue pairs */
            if (num && num <= sw->num_ports && num != in->num)
                ports[n++] = (uint8_t)num;
        }
    return n;
}

void mcast_copy_left(void *obj, uint64_t unused)
{
    struct mcast_hold *h = obj;

    if (--h->copies)
        return;
    link_release_at(h->link, h->lane_bytes);
    free(h);
}

static void discard(struct sim *s, const struct port *at, struct packet *p, const char *reason)
{
    s->packets_dropped++;
    trace_drop(s, at, p, reason);
    link_release(p);
    packet_free(p);
}

void mcast_forward(struct port *in, struct packet *p)
{
    uint8_t ports[FABRIC_PORTS_MAX];
    bool known;
    uint32_t n = output_ports(in, p->dlid, ports, &known);
    struct sim *s = p->held->sim;

    if (!n) {
        in->count.rcv_switch_relay += !known;
        in->count.rcv_no_route += !known;
        discard(s, in, p, "nobody of the group is here");
        return;
    }
    if (n > 1) {
        struct mcast_hold *hold = xcalloc(1, sizeof *hold);

        *hold = (struct mcast_hold){n, p->held, (uint64_t)p->held_vl << 32 | p->wire_bytes};
        p->hold = hold;
    }
    for (uint32_t i = 0; i < n; i++)
        switch_output(in, ports[i], i + 1 < n ? packet_copy(p) : p);
}
