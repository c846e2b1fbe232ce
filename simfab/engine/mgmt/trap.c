/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traps: notices that a port's agent sends to the subnet manager until the manager answers with TrapRepress. A port has
 * at most one trap of a number in flight: news of the same kind restart the trap, so the manager looks again after the
 * last news. Notices 64 to 67 are the manager's own and never sent from here.
 */
#include "simfab/engine/mgmt/trap.h"

#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/mgmt/agents.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/route.h"
#include "simfab/engine/mgmt/timer.h"

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

#define CHANGED_NODE_DESC 1u /* notice 144 */

struct trap {
    struct timer timer; /* first: the timer is the trap */
    struct trap *next;
    struct mad_port *mp;
    unsigned number;
    unsigned delay_ms;
    bool repressed; /* kept, so that news wait until quiet_ns */
    uint64_t quiet_ns;
    uint8_t mad[MAD_BYTES];
};

static void transmit_trap(struct trap *t)
{
    struct port *p = t->mp->port;
    struct mad_packet pkt = {.mad = t->mad, .bytes = MAD_BYTES, .slid = p->lid, .dlid = p->sm_lid, .sl = p->sm_sl};

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

    if (t->repressed) {
        trap_free(t);
        return;
    }
    t->delay_ms = t->delay_ms ? (unsigned)min_u64(2 * t->delay_ms, REPEAT_MAX_MS) : REPEAT_FIRST_MS;
    timer_set(timer->mad, timer, t->delay_ms);
    transmit_trap(t); /* may be repressed at once */
}

static struct trap *trap_get(struct mad_port *mp, unsigned number)
{
    struct trap *t;

    for (t = mp->traps; t && t->number != number; t = t->next)
        ;
    if (t)
        return t;
    t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->mp = mp;
    t->number = number;
    t->timer.fire = repeat;
    t->next = mp->traps;
    mp->traps = t;
    return t;
}

static void fill(struct trap *t, unsigned type, const uint8_t *details, size_t bytes)
{
    const struct port *p = t->mp->port;
    uint8_t *notice = t->mad + SMP_DATA;

    memset(t->mad, 0, sizeof t->mad);
    wire_put(t->mad, MAD_BASE_VERSION, 1);
    wire_put(t->mad, MAD_CLASS, CLASS_SMP_LID);
    wire_put(t->mad, MAD_CLASS_VERSION, 1);
    wire_put(t->mad, MAD_METHOD, METHOD_TRAP);
    wire_put(t->mad, MAD_TID, ++t->mp->mad->last_trap);
    wire_put(t->mad, MAD_ATTR, 2);
    wire_put(t->mad, SMP_MKEY, p->mkey);
    wire_put(notice, NOTICE_GENERIC, 1);
    wire_put(notice, NOTICE_TYPE, type);
    wire_put(notice, NOTICE_PRODUCER, p->node->kind);
    wire_put(notice, NOTICE_NUMBER, t->number);
    wire_put(notice, NOTICE_ISSUER, p->lid);
    memcpy(notice + NOTICE_DETAILS, details, bytes);
}

/* details: byte offset 10 of the notice, at most 54 bytes */
static void trap_send(struct port *p, unsigned number, unsigned type, const uint8_t *details, size_t bytes)
{
    struct mad_port *mp = mad_port_of(p);
    struct trap *t;

    if (!mp || !p->lid || !p->sm_lid || !(t = trap_get(mp, number)))
        return;
    fill(t, type, details, bytes);
    t->repressed = false;
    t->delay_ms = REPEAT_FIRST_MS;
    timer_set(mp->mad, &t->timer, t->delay_ms);
    transmit_trap(t);
}

/* The specification's bound on how often a port may trouble the manager: 4.096 us * 2^SubnetTimeOut. */
static uint64_t interval_ns(const struct port *p)
{
    return 4096ull << p->subnet_timeout;
}

/* The same for news as frequent as packets: one trap within the interval, the last news at its end. */
static void trap_send_slowly(struct port *p, unsigned number, unsigned type, const uint8_t *details, size_t bytes)
{
    struct mad_port *mp = mad_port_of(p);
    uint64_t now = timer_now_ns();
    struct trap *t;

    if (!mp || !p->lid || !p->sm_lid || !(t = trap_get(mp, number)))
        return;
    if (t->timer.next && !t->repressed)
        return; /* the manager has not answered the last trap */
    fill(t, type, details, bytes);
    t->repressed = false;
    if (now < t->quiet_ns) {
        t->delay_ms = 0;
        timer_set(mp->mad, &t->timer, (t->quiet_ns - now) / 1000000 + 1);
        return;
    }
    t->quiet_ns = now + interval_ns(p);
    t->delay_ms = REPEAT_FIRST_MS;
    timer_set(mp->mad, &t->timer, t->delay_ms);
    transmit_trap(t);
}

void traps_free(struct mad_port *mp)
{
    while (mp->traps)
        trap_free(mp->traps);
}

uint32_t traps_waiting(const struct mad_port *mp)
{
    uint32_t n = 0;

    for (const struct trap *t = mp->traps; t; t = t->next)
        n += !t->repressed;
    return n;
}

/* The manager has confirmed the trap. */
static void trap_end(struct trap *t)
{
    uint64_t now = timer_now_ns();

    if (t->number == TRAP_LOCAL_CHANGE)
        t->mp->changes_untold = 0;
    if (now >= t->quiet_ns) {
        trap_free(t);
        return;
    }
    t->repressed = true;
    timer_set(t->mp->mad, &t->timer, (t->quiet_ns - now) / 1000000 + 1);
}

bool trap_repress(struct port *p, const uint8_t *smp)
{
    struct mad_port *mp = mad_port_of(p);

    for (struct trap *t = mp->traps; t; t = t->next) {
        if (wire_get(t->mad, MAD_TID) == wire_get(smp, MAD_TID)) {
            trap_end(t);
            return true;
        }
    }
    return false;
}

/* A property of the port has changed, unknown to the manager; changes not confirmed yet are repeated. */
static void local_change(struct port *p, unsigned what)
{
    struct mad_port *mp = mad_port_of(p);
    uint8_t details[12] = {0};

    /* two reserved bytes, LID, a reserved byte, a bit for other changes, capability mask, bits of the changes */
    mp->changes_untold |= (uint8_t)what;
    wire_put(details, 16, 16, p->lid);
    wire_put(details, 47, 1, mp->changes_untold != 0);
    wire_put(details, 48, 32, p->cap_mask);
    wire_put(details, 80, 16, mp->changes_untold);
    trap_send(p, TRAP_LOCAL_CHANGE, TYPE_INFO, details, sizeof details);
}

#define DR_NOTICE    0x80u /* the request came by a directed route */
#define DR_TRUNCATED 0x40u
#define DR_HOPS_MAX  30u

void trap_bad_mkey(struct port *p, const uint8_t *smp, uint16_t slid)
{
    uint8_t details[54] = {0};

    /* two reserved bytes, requester, its directed source, method, a reserved byte, attribute, modifier, key, route */
    wire_put(details, 16, 16, slid);
    wire_put(details, 48, 8, wire_get(smp, MAD_METHOD));
    wire_put(details, 64, 16, wire_get(smp, MAD_ATTR));
    wire_put(details, 80, 32, wire_get(smp, MAD_MODIFIER));
    wire_put(details, 112, 64, wire_get(smp, SMP_MKEY));
    if (wire_get(smp, MAD_CLASS) == CLASS_SMP_DR) {
        unsigned hops = (unsigned)wire_get(smp, SMP_HOP_CNT), kept = hops < DR_HOPS_MAX ? hops : DR_HOPS_MAX;

        wire_put(details, 32, 16, wire_get(smp, SMP_DR_SLID));
        details[23] = (uint8_t)(DR_NOTICE | (kept < hops ? DR_TRUNCATED : 0) | kept);
        memcpy(details + 24, smp + SMP_RETURN_PATH + 1, kept);
    }
    trap_send_slowly(p, TRAP_BAD_MKEY, TYPE_SECURITY, details, sizeof details);
}

/* Source and destination, common to the traps of bad keys: LIDs, then service level and queue pairs, then GIDs. */
static void put_ends(uint8_t *lids, uint8_t *qps, const struct bad_key *b)
{
    wire_put(lids, 0, 16, b->slid);
    wire_put(lids, 16, 16, b->dlid);
    wire_put(qps, 0, 4, b->sl);
    wire_put(qps, 8, 24, b->src_qpn);
    wire_put(qps, 40, 24, b->dest_qpn);
    if (b->gids)
        memcpy(qps + 8, b->gids, 32);
}

/* the first field of trap 259 marks the valid fields */
#define VALID_LIDS 0x03u
#define VALID_KEY  0x04u
#define VALID_QPS  0x38u /* with the service level */
#define VALID_GIDS 0xc0u

static void switch_bad_pkey(struct port *p, const struct bad_key *b)
{
    struct port *p0 = &p->node->ports[0];
    uint8_t details[54] = {0};

    wire_put(details, 0, 16, VALID_LIDS | VALID_KEY | VALID_QPS | (b->gids ? VALID_GIDS : 0));
    put_ends(details + 2, details + 8, b);
    wire_put(details, 48, 16, b->key);
    wire_put(details, 384, 16, p0->lid);
    details[50] = p->num;
    trap_send_slowly(p0, TRAP_SWITCH_PKEY, TYPE_SECURITY, details, sizeof details);
}

void mad_bad_key(struct port *p, const struct bad_key *b)
{
    uint8_t details[54] = {0};

    if (p->node->kind == NODE_SWITCH && p->num) {
        switch_bad_pkey(p, b);
        return;
    }
    put_ends(details + 2, details + 10, b);
    wire_put(details, 48, 32, b->key);
    trap_send_slowly(p, b->kind == BAD_PKEY ? TRAP_BAD_PKEY : TRAP_BAD_QKEY, TYPE_SECURITY, details, sizeof details);
}

/* A link of a switch went up or down (excluded: armed or activated, the manager's own action). */
static void switch_state_changed(struct port *p)
{
    struct port *p0 = &p->node->ports[0];
    uint8_t details[2];

    p->node->state_change = true;
    wire_put(details, 0, 16, p0->lid);
    trap_send(p0, TRAP_PORT_STATE, TYPE_URGENT, details, sizeof details);
}

/* A port has trouble with its link. */
static void link_trouble(struct port *p, unsigned number)
{
    struct port *issuer = p->node->kind == NODE_SWITCH ? &p->node->ports[0] : p;
    uint8_t details[5] = {0};

    /* two reserved bytes, LID, port */
    wire_put(details, 16, 16, issuer->lid);
    wire_put(details, 32, 8, p->num);
    trap_send_slowly(issuer, number, TYPE_URGENT, details, sizeof details);
}

void mad_port_event(struct port *p, enum port_event ev)
{
    struct mad_port *mp = mad_port_of(p);
    bool was_down;

    if (!mp)
        return;
    switch (ev) {
    case PORT_EV_CAPMASK:
        local_change(p, 0);
        return;
    case PORT_EV_NODE_DESC:
        local_change(p, CHANGED_NODE_DESC);
        return;
    case PORT_EV_INTEGRITY:
        link_trouble(p, TRAP_INTEGRITY);
        return;
    case PORT_EV_OVERRUN:
        link_trouble(p, TRAP_OVERRUN);
        return;
    case PORT_EV_WATCHDOG:
        link_trouble(p, TRAP_WATCHDOG);
        return;
    case PORT_EV_STATE:
        break;
    default:
        return;
    }
    was_down = mp->last_state == PORT_DOWN;
    mp->last_state = p->state;
    if (p->node->kind == NODE_SWITCH && p->num && was_down != (p->state == PORT_DOWN))
        switch_state_changed(p);
}
