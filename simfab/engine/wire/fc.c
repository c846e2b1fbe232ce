/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow control packets. The receiver of a lane announces the sender's limit as soon as a buffer is free. The packet
 * waits for the wire in its direction (flow control goes before data, but interrupts nothing), and takes 8 symbols and
 * the cable delay. Updates that wait for the same wire become one. The specification wants an update of every lane at
 * least each 65536 symbol times, even without news. This repetition matters only after the loss of a data packet: the
 * sender's counter in the update tells the receiver of lost blocks.
 *
 * Updates make no events: the sender checks for arrived updates when needing credits. Their share of the other
 * direction's bandwidth is not charged (link.packet_overhead_bytes may stand for it).
 */
#include "simfab/engine/wire/fc.h"

#include <stdlib.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/wire/credit.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/look.h"

#define FC_PACKET_BYTES 8      /* 6 bytes and the symbols at both ends */
#define RESYNC_SYMBOLS  65536u /* a symbol is a byte on one lane of the cable */

static void ring_grow(struct fc_ring *r)
{
    uint32_t cap = r->cap ? 2 * r->cap : 8;
    struct fc_update *update = xcalloc(cap, sizeof *update);

    for (uint32_t i = 0; i < r->used; i++)
        update[i] = r->update[(r->first + i) & (r->cap - 1)];
    free(r->update);
    *r = (struct fc_ring){.update = update, .used = r->used, .cap = cap};
}

static void ring_put(struct fc_ring *r, uint64_t t, uint16_t fccl)
{
    if (r->used) {
        struct fc_update *last = &r->update[(r->first + r->used - 1) & (r->cap - 1)];

        if (last->t_ps >= t) { /* has not left yet: says the newer count */
            last->fccl = fccl;
            return;
        }
    }
    if (r->used == r->cap)
        ring_grow(r);
    r->update[(r->first + r->used++) & (r->cap - 1)] = (struct fc_update){t, fccl};
}

uint64_t fc_travel_ps(const struct link_dir *l)
{
    return transfer_ps(FC_PACKET_BYTES, l->rate_bps) + l->sim->model->propagation_ps;
}

void fc_freed(struct link_dir *l, unsigned vl, uint32_t bytes)
{
    struct vl_queue *q = &l->vl[vl];
    const struct link_dir *back = l->to->out;
    uint64_t now = sim_now(l->sim), t = max_u64(now, back->busy_until_ps);

    credit_freed(&q->credit, bytes);
    if (l->fc_off)
        return;
    fc_take(q, now);
    ring_put(&q->fc, t + l->fc_ps, q->credit.freed);
    if (q->wait_since_ps)
        link_look_at(l, max_u64(fc_next(q), l->busy_until_ps));
}

uint64_t fc_period_ps(const struct link_dir *l)
{
    return transfer_ps((uint64_t)RESYNC_SYMBOLS * port_lanes(l->from), l->rate_bps);
}

static void resync(void *link, uint64_t arg)
{
    fc_freed(link, arg >> 32 & 15, (uint32_t)arg);
}

void fc_lost(struct link_dir *l, unsigned vl, uint32_t bytes)
{
    uint64_t period = fc_period_ps(l);
    uint64_t next = (sim_now(l->sim) / period + 1) * period;

    evq_push_quiet(&l->sim->q, next + l->sim->model->propagation_ps, resync, l, (uint64_t)vl << 32 | bytes);
}

void fc_take_all(struct sim *s)
{
    for (uint32_t i = 0; i < s->fabric->num_nodes; i++)
        for (uint32_t k = 1; k <= s->fabric->nodes[i]->num_ports; k++)
            for (unsigned vl = 0; s->fabric->nodes[i]->ports[k].out && vl < FABRIC_VLS; vl++)
                fc_take(&s->fabric->nodes[i]->ports[k].out->vl[vl], sim_now(s));
}
