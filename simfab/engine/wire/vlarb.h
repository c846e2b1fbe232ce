/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual lane arbitration as described in the InfiniBand specification (7.6.9): a high and a low priority table of
 * (lane, weight) entries served by weighted round robin, and a limit for sending from the high table while the low
 * table waits. Pure: all state is the caller's.
 *
 * Interpretation of the specification:
 *
 * - Weights count blocks of 64 bytes; a packet counts all blocks it has begun. The entry in turn may send while any of
 *   its weight is left, so the last packet of a turn may exceed the weight. The excess is forgiven, and weight left
 *   over when the lane has nothing to send (or no credits) is lost: the next turn starts with the weight of the table.
 * - Entries of weight 0, of VL 15 and of lanes with nothing to send are passed over. A lane may have several entries,
 *   in both tables; a packet is booked at the chosen entry.
 * - HighPri counter: below the limit, a packet of the high table is sent, and counted in the same blocks. Otherwise, or
 *   without such a packet, the counter restarts and the low table may send one packet. If the low table has none, the
 *   high table goes on. The limit is n * 4096 bytes; 0 lets one packet pass, 255 is no limit. The counter does not
 *   restart just because the low table is empty for a moment: a packet that arrives there waits no longer than the
 *   limit.
 * - A lane without a weight in either table is turned off: the lane never sends. Only if no lane has a weight do lanes
 *   take turns, as on an unconfigured port.
 * - VL 15 and flow control packets are not arbitrated: they go before all data.
 */
#ifndef SIMFAB_VLARB_H
#define SIMFAB_VLARB_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

struct vlarb_table {
    const struct vlarb_entry *entry;
    uint32_t entries; /* up to the last entry with a weight */
    uint32_t lanes;   /* mask of lanes with a weight */
};

struct vlarb_config {
    struct vlarb_table high, low;
    uint8_t high_limit; /* units of 4096 bytes; 255: no limit; 0: one packet */
};

struct vlarb_turn {
    uint32_t at;  /* the entry in turn */
    int32_t left; /* blocks left in this turn */
    bool begun;
};

struct vlarb_state {
    struct vlarb_turn high, low;
    bool chose_high;    /* the last choice was from the high table */
    uint32_t high_sent; /* blocks sent from the high table since the low one had its chance */
    uint8_t rr;         /* last lane when there are no tables to go by */
};

/* A table of the given entries, which must outlive the table. */
struct vlarb_table vlarb_table_of(const struct vlarb_entry *entry, uint32_t entries);

/*
 * Chooses the lane, among those in ready (bit mask), that sends its first packet, of bytes[lane] bytes; -1: none. The
 * choice is booked in the state, which belongs to one configuration: zero the state for another.
 */
int vlarb_pick(struct vlarb_state *s, const struct vlarb_config *c, uint32_t ready, const uint32_t bytes[FABRIC_VLS]);

/* The packet chosen last has other bytes than booked; 0: there is no packet. */
void vlarb_rebook(struct vlarb_state *s, uint32_t booked, uint32_t bytes);

#endif
