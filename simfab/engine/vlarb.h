/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual lane arbitration as the InfiniBand specification describes it (7.6.9): a high and a low priority table of
 * (lane, weight) entries served by weighted round robin, and a limit of how much may be sent from the high table while
 * the low one waits. Pure: the state is the caller's, nothing else is touched.
 */
#ifndef SIMFAB_VLARB_H
#define SIMFAB_VLARB_H

#include "simfab/engine/fabric.h"

struct vlarb_table {
    const struct vlarb_entry *entry;
    uint32_t entries;
};

struct vlarb_config {
    struct vlarb_table high, low;
    uint8_t high_limit; /* units of 4096 bytes; 255: no limit; 0: one packet */
};

struct vlarb_turn {
    uint32_t at;  /* the entry whose turn it is */
    int64_t left; /* bytes that it may still send in this turn */
};

struct vlarb_state {
    struct vlarb_turn high, low;
    int64_t high_sent; /* bytes sent from the high table since the low one had its chance */
    uint8_t rr;        /* last lane when there are no tables to go by */
};

/*
 * Which of the lanes in ready (bit mask) sends its first packet, of bytes[lane] bytes; -1 if none may. The choice is
 * booked in the state. If no entry of either table has a weight, the lanes take turns.
 */
int vlarb_pick(struct vlarb_state *s, const struct vlarb_config *c, uint32_t ready, const uint32_t bytes[FABRIC_VLS]);

#endif
