/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traps: notices that a port's agent sends to the subnet manager until it answers with TrapRepress. A port has at most
 * one trap of a number in the air: news of the same kind start it afresh, so the manager looks again after the last.
 * Notices 64 to 67 are the manager's own and never sent from here.
 */
#include "simfab/engine/agents.h"

#include <stdlib.h>
#include <string.h>

#define REPEAT_FIRST_MS 200
#define REPEAT_MAX_MS   5000

/* Notice, bit offsets in the SMP's data */
#define NOTICE_GENERIC  0, 1
#define NOTICE_TYPE     1, 7
#define NOTICE_PRODUCER 8, 24
#define NOTICE_NUMBER   32, 16
#define NOTICE_ISSUER   48, 16
#define NOTICE_DETAILS  10 /* bytes */

#define TYPE_URGENT   1
#define TYPE_SECURITY 2
#define TYPE_INFO     4

struct trap {
    struct timer timer; /* first: the timer is the trap */
    struct trap *next;
    struct mad_port *mp;
    unsigned number;
    unsigned delay_ms;
    uint8_t mad[MAD_BYTES];
};

static void transmit(struct trap *t)
{
    struct port *p = t->mp->port;
    struct packet pkt = {.mad = t->mad, .bytes = MAD_BYTES, .slid = p->lid, .dlid = p->sm_lid, .sl = p->sm_sl};

    mad_send(p, &pkt);
}

static void trap_free(struct trap *t)
{
    struct trap **at = &t->mp->traps;

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    timer_cancel(&t->timer);
    free(t);
}

static void repeat(struct timer *timer)
{
    struct trap *t = (struct trap *)timer;

    t->delay_ms = t->delay_ms * 2 < REPEAT_MAX_MS ? t->delay_ms * 2 : REPEAT_MAX_MS;
    timer_set(timer->mad, timer, t->delay_ms);
    transmit(t); /* may be repressed at once */
}

/* details: byte offset 10 of the notice, at most 54 bytes */
static void trap_send(struct port *p, unsigned number, unsigned type, const uint8_t *details, size_t bytes)
{
    struct mad_port *mp = mad_port_of(p);
    uint8_t *notice;
    struct trap *t;

    if (!mp || !p->lid || !p->sm_lid)
        return;
    for (t = mp->traps; t && t->number != number; t = t->next)
        ;
    if (!t) {
        t = calloc(1, sizeof *t);
        if (!t)
            return;
        t->mp = mp;
        t->number = number;
        t->timer.fire = repeat;
        t->next = mp->traps;
        mp->traps = t;
    }
    memset(t->mad, 0, sizeof t->mad);
    wire_put(t->mad, MAD_BASE_VERSION, 1);
    wire_put(t->mad, MAD_CLASS, CLASS_SMP_LID);
    wire_put(t->mad, MAD_CLASS_VERSION, 1);
    wire_put(t->mad, MAD_METHOD, METHOD_TRAP);
    wire_put(t->mad, MAD_TID, ++mp->mad->last_trap);
    wire_put(t->mad, MAD_ATTR, 2);
    wire_put(t->mad, SMP_MKEY, p->mkey);
    notice = t->mad + SMP_DATA;
    wire_put(notice, NOTICE_GENERIC, 1);
    wire_put(notice, NOTICE_TYPE, type);
    wire_put(notice, NOTICE_PRODUCER, p->node->kind);
    wire_put(notice, NOTICE_NUMBER, number);
    wire_put(notice, NOTICE_ISSUER, p->lid);
    memcpy(notice + NOTICE_DETAILS, details, bytes);
    t->delay_ms = REPEAT_FIRST_MS;
    timer_set(mp->mad, &t->timer, t->delay_ms);
    transmit(t);
}

void traps_free(struct mad_port *mp)
{
    while (mp->traps)
        trap_free(mp->traps);
}

bool trap_repress(struct port *p, const uint8_t *smp)
{
    struct mad_port *mp = mad_port_of(p);

    for (struct trap *t = mp->traps; t; t = t->next) {
        if (wire_get(t->mad, MAD_TID) == wire_get(smp, MAD_TID)) {
            trap_free(t);
            return true;
        }
    }
    return false;
}

void trap_cap_mask(struct port *p)
{
    uint8_t details[10] = {0};

    /* two reserved bytes, LID, a reserved byte, flags, capability mask */
    wire_put(details, 16, 16, p->lid);
    wire_put(details, 48, 32, p->cap_mask);
    trap_send(p, TRAP_CAP_MASK, TYPE_INFO, details, sizeof details);
}

void trap_bad_mkey(struct port *p, const uint8_t *smp, uint16_t slid)
{
    uint8_t details[54] = {0};

    /* two reserved bytes, LID, the request's source, its directed source, method, attribute, modifier, key */
    wire_put(details, 16, 16, p->lid);
    wire_put(details, 32, 16, slid);
    wire_put(details, 48, 16, wire_get(smp, SMP_DR_SLID));
    wire_put(details, 64, 8, wire_get(smp, MAD_METHOD));
    wire_put(details, 80, 16, wire_get(smp, MAD_ATTR));
    wire_put(details, 96, 32, wire_get(smp, MAD_MODIFIER));
    wire_put(details, 128, 64, wire_get(smp, SMP_MKEY));
    trap_send(p, TRAP_BAD_MKEY, TYPE_SECURITY, details, sizeof details);
}

/* A link of a switch went up or down (not: was armed or activated, which the manager itself does). */
static void switch_state_changed(struct port *p)
{
    struct port *p0 = &p->node->ports[0];
    uint8_t details[2];

    p->node->state_change = true;
    wire_put(details, 0, 16, p0->lid);
    trap_send(p0, TRAP_PORT_STATE, TYPE_URGENT, details, sizeof details);
}

static void link_integrity(struct port *p)
{
    struct port *issuer = p->node->kind == NODE_SWITCH ? &p->node->ports[0] : p;
    uint8_t details[5] = {0};

    /* two reserved bytes, LID, port */
    wire_put(details, 16, 16, issuer->lid);
    wire_put(details, 32, 8, p->num);
    trap_send(issuer, TRAP_INTEGRITY, TYPE_URGENT, details, sizeof details);
}

void mad_port_event(struct port *p, enum port_event ev)
{
    struct mad_port *mp = mad_port_of(p);
    bool was_down;

    if (!mp)
        return;
    if (ev == PORT_EV_CAPMASK) {
        trap_cap_mask(p);
        return;
    }
    if (ev == PORT_EV_INTEGRITY)
        link_integrity(p);
    if (ev != PORT_EV_STATE)
        return;
    was_down = mp->last_state == PORT_DOWN;
    mp->last_state = p->state;
    if (p->node->kind == NODE_SWITCH && p->num && was_down != (p->state == PORT_DOWN))
        switch_state_changed(p);
}
