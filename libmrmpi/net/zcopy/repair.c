/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each place gets one datagram at most, and each datagram comes from one place: so the moves are chains, which begin
 * with a place that is free, and rings, for which one datagram is laid aside.
 */
#include "libmrmpi/net/zcopy/repair.h"

#include <stdbool.h>

/* Where each datagram lies. What counts for nothing is taken out of lies. */
static void locate_datagrams(uint16_t *lies, unsigned n, uint16_t *at)
{
    for (unsigned i = 0; i < n; i++)
        at[i] = MR_REPAIR_NONE;
    for (unsigned i = 0; i < n; i++)
        if (lies[i] < n && (at[lies[i]] == MR_REPAIR_NONE || lies[i] == i))
            at[lies[i]] = (uint16_t)i;
    for (unsigned i = 0; i < n; i++)
        if (lies[i] >= n || at[lies[i]] != i)
            lies[i] = MR_REPAIR_NONE;
}

/* The place is free: its datagram comes there, then that which belongs to where it lay, and so on. first was laid
 * aside: MR_REPAIR_NONE, or what it was. */
static unsigned fill_place(uint16_t *lies, const uint16_t *at, uint16_t place, uint16_t aside, struct mr_move *out)
{
    unsigned moves = 0;

    while (at[place] != MR_REPAIR_NONE) {
        uint16_t from = place == aside ? (uint16_t)MR_REPAIR_ASIDE : at[place];

        out[moves++] = (struct mr_move){.from = from, .to = place};
        lies[place] = place;
        if (from == MR_REPAIR_ASIDE)
            break;
        lies[from] = MR_REPAIR_NONE;
        place = from;
    }
    return moves;
}

unsigned mr_repair_plan(uint16_t *lies, unsigned n, uint16_t *work, struct mr_move *out)
{
    unsigned moves = 0;

    locate_datagrams(lies, n, work);
    for (unsigned i = 0; i < n; i++)
        if (lies[i] == MR_REPAIR_NONE)
            moves += fill_place(lies, work, (uint16_t)i, MR_REPAIR_NONE, out + moves);
    for (unsigned i = 0; i < n; i++) {
        uint16_t aside = lies[i];

        if (aside == MR_REPAIR_NONE || aside == i)
            continue;
        out[moves++] = (struct mr_move){.from = (uint16_t)i, .to = MR_REPAIR_ASIDE};
        lies[i] = MR_REPAIR_NONE;
        moves += fill_place(lies, work, (uint16_t)i, aside, out + moves);
    }
    return moves;
}
