/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual lane arbitration as the InfiniBand specification describes it (7.6.9): a high and a low priority table of
 * (lane, weight) entries served by weighted round robin, and a limit of how much may be sent from the high table while
 * the low one waits. Pure: the state is the caller's, nothing else is touched.
 *
 * How the words of the specification are read here:
 * - Weights count blocks of 64 bytes, and a packet as many as it has begun. The entry whose turn it is may send as long
 *   as anything of its weight is left, so that the last packet of a turn may exceed it. What was too much is forgiven,
 *   and what is left over when the lane has nothing to send (or no credits) is lost: the next turn starts with the
 *   weight of the table.
 * - Entries of weight 0, of VL 15 and of lanes that have nothing to send are passed over. A lane may stand in several
 *   entries and in both tables; a packet is booked where it was chosen.
 * - HighPri counter: while it has not reached the limit and the high table has a packet, that is sent, and counted in
 *   the same blocks. Else the counter starts anew and the low table may send one packet. If it has none, the high table
 *   goes on. The limit is n * 4096 bytes; 0 lets one packet pass, 255 is no limit. The counter does not start anew just
 *   because the low table is empty for a moment: what comes into it waits no longer than the limit says.
 * - A lane that has no weight in either table is turned off: it never sends. Only if nothing has a weight at all do
 *   lanes take turns, as on a port that nobody has configured.
 * - VL 15 and flow control packets are not arbitrated: they go before all data.
 */
#ifndef SIMFAB_VLARB_H
#define SIMFAB_VLARB_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"

struct vlarb_table {
    const struct vlarb_entry *entry;
    uint32_t entries; /* up to the last one with a weight */
    uint32_t lanes;   /* mask of those with a weight */
};

struct vlarb_config {
    struct vlarb_table high, low;
    uint8_t high_limit; /* units of 4096 bytes; 255: no limit; 0: one packet */
};

struct vlarb_turn {
    uint32_t at;  /* the entry whose turn it is */
    int32_t left; /* blocks that it may still send in this turn */
    bool begun;
};

struct vlarb_state {
    struct vlarb_turn high, low;
    bool chose_high;    /* the table that the last choice was made from */
    uint32_t high_sent; /* blocks sent from the high table since the low one had its chance */
    uint8_t rr;         /* last lane when there are no tables to go by */
};

/* A table of so many entries, which must outlive it. */
struct vlarb_table vlarb_table_of(const struct vlarb_entry *entry, uint32_t entries);

/*
 * Which of the lanes in ready (bit mask) sends its first packet, of bytes[lane] bytes; -1 if none may. The choice is
 * booked in the state, which belongs to one configuration: start it anew (zero) for another.
 */
int vlarb_pick(struct vlarb_state *s, const struct vlarb_config *c, uint32_t ready, const uint32_t bytes[FABRIC_VLS]);

/* The packet chosen last turns out to have other bytes than those that were booked; 0: there is none after all. */
void vlarb_rebook(struct vlarb_state *s, uint32_t booked, uint32_t bytes);

#endif
