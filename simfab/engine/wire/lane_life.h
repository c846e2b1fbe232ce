/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that wait too long in a switch. */
#ifndef SIMFAB_LANE_LIFE_H
#define SIMFAB_LANE_LIFE_H

#include <stdbool.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/wire/link.h"

struct vl_queue;

/* due: an event function that calls lane_life_look; obj is the lane. */
void lane_life_init(struct vl_queue *q, event_fn due);
/* Discards packets whose time is over. */
void lane_life_look(struct vl_queue *q);
/* Packets wait in the lane: limits their wait. */
void lane_life_watch(struct vl_queue *q);
/* The same after the limits have changed. */
void lane_life_watch_anew(struct vl_queue *q);
/* A packet has left the lane by the wire. */
static inline void lane_life_sent(struct vl_queue *q)
{
    q->dropped_in_a_row = 0;
}
/* True if the lane takes packets, false if stalled. */
static inline bool lane_life_takes(const struct vl_queue *q)
{
    return q->stalled_until_ps <= sim_now(q->link->sim);
}

#endif
