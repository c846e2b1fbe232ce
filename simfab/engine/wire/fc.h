/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow control: credits come back to the sender by flow control packets. */
#ifndef SIMFAB_FC_H
#define SIMFAB_FC_H

#include <stdint.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/wire/credit.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/trace_log.h"

/* The time for a flow control packet to leave and arrive. */
uint64_t fc_travel_ps(const struct link_dir *l);
/* How often the receiver repeats itself at least. */
uint64_t fc_period_ps(const struct link_dir *l);
/* The packet's blocks are free again; the sender hears of it when a flow control packet arrives. */
void fc_freed(struct link_dir *l, unsigned vl, uint32_t bytes);
/* A packet was lost on the cable: its blocks come back with the next resynchronisation of the counters. */
void fc_lost(struct link_dir *l, unsigned vl, uint32_t bytes);
/* When the next update arrives; 0: none is on its way. */
static inline uint64_t fc_next(const struct vl_queue *q)
{
    return q->fc.used ? q->fc.update[q->fc.first].t_ps : 0;
}
/* Takes in all updates that have arrived. */
static inline void fc_take(struct vl_queue *q, uint64_t now_ps)
{
    struct fc_ring *r = &q->fc;

    while (r->used && r->update[r->first].t_ps <= now_ps) {
        credit_update(&q->credit, r->update[r->first].fccl);
        if (TRACED(q->link->sim))
            trace_log_credits(q->link->sim->trace, q, r->update[r->first].t_ps);
        r->first = (r->first + 1) & (r->cap - 1);
        r->used--;
    }
}

/* Takes in arrived updates at every link: a trace that begins or ends reports the credits of that time. */
void fc_take_all(struct sim *s);

#endif
