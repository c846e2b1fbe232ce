/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PortSamplesControl and its results (specification, chapter 16.1.3): an agent counts a few quantities of a port from a
 * time on, for a duration in ticks of virtual time. An agent runs one sampling at a time; a Set meanwhile changes
 * nothing. A tick is the time of four bytes on the link, as for PortXmitWait.
 */
#include "simfab/engine/mgmt/samples.h"

#include <stdlib.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/mgmt/mad_wire.h"

#define NUM_SAMPLES   15
#define WIDTH_32_BITS 4
#define EXT_64_BITS   2

/* PortSamplesControl */
#define PSC_PORT            8, 8
#define PSC_TICK            16, 8
#define PSC_COUNTER_WIDTH   29, 3
#define PSC_COUNTER_MASK(i) ((i) < 10 ? 34 + 3 * (i) : 35 + 3 * (i)), 3 /* 1: counts a quantity common to all ports */
#define PSC_STATUS          94, 2
#define PSC_START           224, 32
#define PSC_INTERVAL        256, 32
#define PSC_TAG             288, 16
#define PSC_SELECT(i)       304 + 16 * (i), 16

enum sample_status { SAMPLES_DONE = 0, SAMPLES_WAIT = 1, SAMPLES_RUN = 2 };

/* Of an agent with at least one request for samples. */
struct samples {
    const struct port *of;
    enum sample_status status;
    uint32_t start, interval; /* ticks */
    uint16_t tag;
    uint16_t select[NUM_SAMPLES];
    uint64_t count[NUM_SAMPLES]; /* while counting: the port's counters at the beginning */
};

static uint64_t quantity(const struct port *p, uint16_t select)
{
    switch (select) {
    case 1:
        return p->count.xmit_data;
    case 2:
        return p->count.rcv_data;
    case 3:
        return p->count.xmit_pkts;
    case 4:
        return p->count.rcv_pkts;
    case 5:
        return p->count.xmit_wait;
    default:
        return 0;
    }
}

static uint64_t ticks_ps(const struct port *p, uint32_t ticks)
{
    return (uint64_t)((__uint128_t)ticks * 32 * 1000000000000ull / port_rate_bps(p));
}

/* The field's code of a tick: 10 bits on one lane of the link, times (code + 1). */
static unsigned tick_code(const struct port *p)
{
    return port_lanes(p) < 4 ? 4 / port_lanes(p) - 1 : 0;
}

void samples_due(struct port *at)
{
    struct samples *s = at->samples;
    bool begins = s->status == SAMPLES_WAIT;

    for (unsigned i = 0; i < NUM_SAMPLES; i++) {
        uint64_t now = quantity(s->of, s->select[i]);

        /* a port that lost its power meanwhile has begun at 0 again */
        s->count[i] = begins || now < s->count[i] ? now : now - s->count[i];
    }
    s->status = begins ? SAMPLES_RUN : SAMPLES_DONE;
    if (begins)
        at->node->fabric->up->samples_later(at, ticks_ps(s->of, s->interval));
}

static void begin_sampling(struct port *at, const struct port *p, const uint8_t *data)
{
    struct samples *s = at->samples;

    s->of = p;
    s->start = (uint32_t)wire_get(data, PSC_START);
    s->interval = (uint32_t)wire_get(data, PSC_INTERVAL);
    s->tag = (uint16_t)wire_get(data, PSC_TAG);
    for (unsigned i = 0; i < NUM_SAMPLES; i++)
        s->select[i] = (uint16_t)wire_get(data, PSC_SELECT(i));
    s->status = SAMPLES_WAIT;
    at->node->fabric->up->samples_later(at, ticks_ps(p, s->start));
}

static void put_control(const struct port *at, const struct port *p, uint8_t *data)
{
    static const struct samples none;
    const struct samples *s = at->samples ? at->samples : &none;

    memset(data, 0, MAD_BYTES - GMP_DATA);
    wire_put(data, PSC_PORT, p->num);
    wire_put(data, PSC_TICK, tick_code(p));
    wire_put(data, PSC_COUNTER_WIDTH, WIDTH_32_BITS);
    wire_put(data, PSC_STATUS, s->status);
    wire_put(data, PSC_START, s->start);
    wire_put(data, PSC_INTERVAL, s->interval);
    wire_put(data, PSC_TAG, s->tag);
    for (unsigned i = 0; i < NUM_SAMPLES; i++) {
        wire_put(data, PSC_COUNTER_MASK(i), 1);
        wire_put(data, PSC_SELECT(i), s->select[i]);
    }
}

uint16_t samples_control(struct port *at, const struct port *p, uint8_t *data, bool set)
{
    if (set && !at->samples) {
        at->samples = calloc(1, sizeof *at->samples);
        if (!at->samples)
            return STATUS_BUSY;
    }
    if (set && at->samples->status == SAMPLES_DONE)
        begin_sampling(at, p, data);
    put_control(at, p, data);
    return STATUS_OK;
}

uint16_t samples_result(const struct port *at, uint8_t *data, bool extended)
{
    static const struct samples none;
    const struct samples *s = at->samples ? at->samples : &none;
    unsigned width = extended ? 64 : 32, first = extended ? 64 : 32;
    uint64_t most = extended ? UINT64_MAX : UINT32_MAX;

    memset(data, 0, MAD_BYTES - GMP_DATA);
    wire_put(data, 0, 16, s->tag);
    wire_put(data, 30, 2, s->status);
    if (extended)
        wire_put(data, 32, 2, EXT_64_BITS);
    for (unsigned i = 0; i < NUM_SAMPLES && s->status == SAMPLES_DONE; i++)
        wire_put(data, first + width * i, width, s->count[i] < most ? s->count[i] : most);
    return STATUS_OK;
}
