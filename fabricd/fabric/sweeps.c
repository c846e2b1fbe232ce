/* SPDX-License-Identifier: BSD-3-Clause */
/* Sweeps by activity counts: see sweeps.h. */
#include "fabricd/fabric/sweeps.h"

#include <endian.h>
#include <string.h>

/* Packets between two looks that light sweeps, and answers to standby subnet managers, explain. */
#define LIGHT_PER_SWITCH 2u
#define LIGHT_MORE       8u

/* SMInfoRecord: LID, reserved, then SMInfo: GUID, SM_Key, activity count, priority and state. */
#define GUID_AT  4
#define COUNT_AT 20
#define STATE_AT 24
#define MASTER   3

bool sweeps_take(struct sweeps *s, uint64_t guid, uint32_t count, unsigned switches)
{
    /* a count that went back is a new process's: the difference is large */
    bool quiet = s->known && s->guid == guid && count - s->count <= (uint64_t)LIGHT_PER_SWITCH * switches + LIGHT_MORE;
    bool moved = !quiet || s->was_busy;
    *s = (struct sweeps){.known = true, .was_busy = !quiet, .guid = guid, .count = count};
    return moved;
}

bool sweeps_master(const uint8_t *record, size_t num, size_t size, uint64_t *guid, uint32_t *count)
{
    for (size_t i = 0; size > STATE_AT && i < num; i++) {
        const uint8_t *at = record + i * size;
        if ((at[STATE_AT] & 15) != MASTER)
            continue;
        memcpy(guid, at + GUID_AT, sizeof(*guid));
        memcpy(count, at + COUNT_AT, sizeof(*count));
        *guid = be64toh(*guid);
        *count = be32toh(*count);
        return true;
    }
    return false;
}
