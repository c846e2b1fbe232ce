/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast forwarding tables of switches. */
#include "simfab/engine/wire/mcast.h"

uint32_t mcast_outputs(const struct port *in, uint16_t lid, uint8_t ports[FABRIC_PORTS_MAX], bool *known)
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
            /* port 0 is the switch's own, without queue pairs */
            if (num && num <= sw->num_ports && num != in->num)
                ports[n++] = (uint8_t)num;
        }
    return n;
}
