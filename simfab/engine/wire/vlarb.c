/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual lane arbitration: see vlarb.h. */
#include "simfab/engine/wire/vlarb.h"

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/credit.h"

#define LIMIT_BLOCKS    (4096 / CREDIT_BLOCK_BYTES)
#define LIMIT_NONE      255
#define LANE_MANAGEMENT 15

struct vlarb_table vlarb_table_of(const struct vlarb_entry *entry, uint32_t entries)
{
    struct vlarb_table t = {.entry = entry};

    for (uint32_t i = 0; i < entries; i++)
        if (entry[i].weight && entry[i].vl < LANE_MANAGEMENT) {
            t.lanes |= 1u << entry[i].vl;
            t.entries = i + 1;
        }
    return t;
}

/* A step of the weighted round robin in a table where some ready lane has a weight. */
static int take_lane_turn(struct vlarb_turn *turn, const struct vlarb_table *t, uint32_t ready,
                          const uint32_t bytes[FABRIC_VLS])
{
    if (!turn->begun || turn->at >= t->entries)
        *turn = (struct vlarb_turn){.left = t->entry[0].weight, .begun = true};
    /* at most once around: the entry that has the turn may come up again with a fresh weight */
    for (uint32_t step = 0; step <= t->entries; step++) {
        uint8_t vl = t->entry[turn->at].vl;

        if (turn->left > 0 && (ready & 1u << vl)) {
            turn->left -= credit_blocks(bytes[vl]);
            return vl;
        }
        if (++turn->at >= t->entries)
            turn->at = 0;
        turn->left = t->entry[turn->at].weight;
    }
    return -1;
}

static int take_next_lane(struct vlarb_state *s, uint32_t ready)
{
    for (uint32_t i = 1; i <= FABRIC_VLS; i++) {
        uint8_t vl = (s->rr + i) % FABRIC_VLS;

        if (ready & 1u << vl) {
            s->rr = vl;
            return vl;
        }
    }
    return -1;
}

static bool high_limit_reached(const struct vlarb_state *s, uint8_t limit)
{
    return limit != LIMIT_NONE && s->high_sent > 0 && s->high_sent >= limit * LIMIT_BLOCKS;
}

static int take_high(struct vlarb_state *s, const struct vlarb_config *c, uint32_t high,
                     const uint32_t bytes[FABRIC_VLS])
{
    int vl = take_lane_turn(&s->high, &c->high, high, bytes);

    s->chose_high = true;
    if (c->high_limit != LIMIT_NONE)
        s->high_sent += credit_blocks(bytes[vl]);
    return vl;
}

int vlarb_pick(struct vlarb_state *s, const struct vlarb_config *c, uint32_t ready, const uint32_t bytes[FABRIC_VLS])
{
    uint32_t high = ready & c->high.lanes, low = ready & c->low.lanes;

    if (!(c->high.lanes | c->low.lanes))
        return take_next_lane(s, ready);
    if (high && !high_limit_reached(s, c->high_limit))
        return take_high(s, c, high, bytes);
    s->high_sent = 0;
    s->chose_high = false;
    if (low)
        return take_lane_turn(&s->low, &c->low, low, bytes);
    return high ? take_high(s, c, high, bytes) : -1;
}

void vlarb_rebook(struct vlarb_state *s, uint32_t booked, uint32_t bytes)
{
    int32_t less = (int32_t)credit_blocks(booked) - (int32_t)credit_blocks(bytes);

    if (s->chose_high) {
        s->high.left += less;
        if (s->high_sent) /* 0: there is no limit */
            s->high_sent = (int32_t)s->high_sent > less ? s->high_sent - (uint32_t)less : bytes > 0;
    } else if (s->low.begun) { /* else there are no tables */
        s->low.left += less;
    }
}
