/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual lane arbitration: see vlarb.h. */
#include "simfab/engine/vlarb.h"

static uint32_t lanes_of(const struct vlarb_table *t)
{
    uint32_t mask = 0;

    for (uint32_t i = 0; i < t->entries; i++)
        if (t->entry[i].weight)
            mask |= 1u << (t->entry[i].vl & 15);
    return mask;
}

/* One step of the weighted round robin of a table in which some ready lane has a weight. */
static int take_turn(struct vlarb_turn *turn, const struct vlarb_table *t, uint32_t ready,
                     const uint32_t bytes[FABRIC_VLS])
{
    if (turn->at >= t->entries)
        *turn = (struct vlarb_turn){0};
    /* at most once around: the entry that has the turn may come up again with a fresh weight */
    for (uint32_t step = 0; step <= t->entries; step++) {
        const struct vlarb_entry *e = &t->entry[turn->at];
        uint8_t vl = e->vl & 15;

        if (turn->left > 0 && e->weight && (ready & 1u << vl)) {
            turn->left -= bytes[vl]; /* a packet is sent whole: the last one may exceed the weight */
            return vl;
        }
        turn->at = (turn->at + 1) % t->entries;
        turn->left = 64 * (int64_t)t->entry[turn->at].weight;
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

int vlarb_pick(struct vlarb_state *s, const struct vlarb_config *c, uint32_t ready, const uint32_t bytes[FABRIC_VLS])
{
    uint32_t in_high = lanes_of(&c->high), in_low = lanes_of(&c->low);
    uint32_t high = ready & in_high, low = ready & in_low;
    bool spent;
    int vl;

    if (!ready)
        return -1;
    if (!(in_high | in_low))
        return take_next_lane(s, ready);
    if (!low)
        s->high_sent = 0; /* nobody waits: the limit starts anew */
    spent = c->high_limit != 255 && s->high_sent > 0 && s->high_sent >= (int64_t)c->high_limit * 4096;
    if (high && !(spent && low)) {
        vl = take_turn(&s->high, &c->high, high, bytes);
        if (vl >= 0)
            s->high_sent += bytes[vl];
        return vl;
    }
    if (!low)
        return -1;
    s->high_sent = 0;
    return take_turn(&s->low, &c->low, low, bytes);
}
