/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time limits of packets in a switch (specification 18.2.5.4): at the head of an output lane the port's HOQLife, in
 * the switch its LifeTimeValue; both 4.096 us * 2^n, unlimited from 20 on. A packet that has not begun to leave in time
 * is discarded. After VLStallCount discards in a row at the head of a lane, the lane is stalled for 8 times HOQLife and
 * discards all its packets, old and new (a count of 0 never stalls: the specification leaves 0 open). The head of a
 * lane is the packet whose turn it is, since the previous packet began to leave.
 *
 * Only waiting packets are watched, by one timer per lane. The timer is set when the first packet waits, and checks
 * again when the oldest of the packets then waiting could be due, so a flowing lane costs next to nothing.
 */
#include "simfab/engine/wire/lane_life.h"

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/lane.h"
#include "simfab/engine/wire/link.h"
#include "simfab/engine/wire/packet.h"

#define LIFE_UNIT_PS  4096000ull
#define LIFE_FOR_EVER 20
#define STALL_LIVES   8

/* 0: for ever */
static uint64_t life_ps(uint8_t code)
{
    return code < LIFE_FOR_EVER ? LIFE_UNIT_PS << code : 0;
}

static uint64_t head_life(const struct vl_queue *q)
{
    return life_ps(q->link->from->hoq_life);
}

static uint64_t switch_life(const struct vl_queue *q)
{
    return life_ps(q->link->from->node->life_time);
}

/* When the next packet of the lane is due to be discarded; 0: never. */
static uint64_t next_due(const struct vl_queue *q)
{
    uint64_t head = head_life(q), life = switch_life(q), due = head ? q->head_since_ps + head : UINT64_MAX;

    for (const struct in_queue *in = q->turn; in && life; in = in->next)
        due = min_u64(due, in->first->arrived_ps + life);
    return due == UINT64_MAX ? 0 : due;
}

void lane_life_watch(struct vl_queue *q)
{
    struct link_dir *l = q->link;
    uint64_t due;

    if (evtimer_is_set(&q->life) || l->from->node->kind != NODE_SWITCH)
        return;
    due = next_due(q);
    if (due)
        evtimer_set(&l->sim->q, &q->life, due);
}

void lane_life_watch_anew(struct vl_queue *q)
{
    evtimer_stop(&q->life);
    lane_life_watch(q);
}

static void discard_all(struct vl_queue *q)
{
    while (q->packets)
        link_drop(q->link, lane_pop(q), DISCARD_HOQ);
}

static void discard_head(struct vl_queue *q, uint64_t now)
{
    link_drop(q->link, lane_pop(q), DISCARD_HOQ);
    if (++q->dropped_in_a_row != q->link->from->vl_stall)
        return;
    q->dropped_in_a_row = 0;
    q->stalled_until_ps = now + STALL_LIVES * head_life(q);
    discard_all(q);
}

/* Discards packets of any input whose time in the switch is over; each input's packets are in the order of arrival. */
static void discard_old(struct vl_queue *q, uint64_t now, uint64_t life)
{
    bool found = true;

    while (found) {
        found = false;
        for (struct in_queue *in = q->turn; in && !found; in = in->next)
            if (in->first->arrived_ps + life <= now) {
                link_drop(q->link, lane_pop_from(q, in), DISCARD_LIFETIME);
                found = true;
            }
    }
}

void lane_life_look(struct vl_queue *q)
{
    uint64_t now = sim_now(q->link->sim), head = head_life(q), life = switch_life(q);

    if (q->packets && head && q->head_since_ps + head <= now)
        discard_head(q, now);
    if (q->packets && life)
        discard_old(q, now, life);
    if (q->packets)
        lane_life_watch(q);
}

void lane_life_init(struct vl_queue *q, event_fn due)
{
    evtimer_init(&q->life, due, q);
    q->life.quiet = true; /* the packets are counted */
}
