/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The performance management agent: the counters of a node's ports, fed by the data plane. The ports count without end,
 * in 64 bits. An attribute shows the count since its last setting (port->pma_base), so each attribute is cleared by
 * itself. Fields of 32 bits and less stay at their maximum, fields of 64 bits wrap. A table describes each field once:
 * the attribute, the place, the bit of CounterSelect, the counter.
 */
#include "simfab/engine/mgmt/pma.h"

#include <stddef.h>
#include <string.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/mgmt/mad_wire.h"
#include "simfab/engine/mgmt/samples.h"

#define ALL_PORTS     255
#define CAP_ALL_PORTS 0x0100
#define CAP_EXT_WIDTH 0x0200
#define CAP_XMIT_WAIT 0x1000
#define CAP2_MORE_EXT 2 /* PortCountersExtended has errors, too */
#define RESP_TIME     18

#define PORT_SELECT    8, 8
#define COUNTER_SELECT 16, 16
#define EXT_SELECT2    32, 32

enum {
    ATTR_CLASS_PORT_INFO = 0x01,
    ATTR_SAMPLES_CONTROL = 0x10,
    ATTR_SAMPLES_RESULT = 0x11,
    ATTR_COUNTERS = 0x12,
    ATTR_RCV_ERROR_DETAILS = 0x15,
    ATTR_XMIT_DISCARD_DETAILS = 0x16,
    ATTR_COUNTERS_EXTENDED = 0x1d,
    ATTR_SAMPLES_RESULT_EXTENDED = 0x1e,
    ATTR_XMIT_DATA_SL = 0x36,
    ATTR_RCV_DATA_SL = 0x37,
};

struct counter {
    uint8_t attr;
    uint16_t bit, width;
    /* bit of CounterSelect; 16: bit 0 of PortCounters' CounterSelect2; from 32 on that of PortCountersExtended */
    uint8_t select;
    size_t offset;
};

#define AT(f) offsetof(struct port_count, f)
#define EXT   ATTR_COUNTERS_EXTENDED
#define PC    ATTR_COUNTERS
#define DISC  ATTR_XMIT_DISCARD_DETAILS
#define RCV   ATTR_RCV_ERROR_DETAILS

#define SL(attr, field, n)                                                                                             \
    {                                                                                                                  \
        attr, 32 + 32 * (n), 32, n, AT(field) + (n) * sizeof(uint64_t)                                                 \
    }
#define FOUR_SLS(attr, field, n)                                                                                       \
    SL(attr, field, n), SL(attr, field, n + 1), SL(attr, field, n + 2), SL(attr, field, n + 3)
#define ALL_SLS(attr, field)                                                                                           \
    FOUR_SLS(attr, field, 0), FOUR_SLS(attr, field, 4), FOUR_SLS(attr, field, 8), FOUR_SLS(attr, field, 12)

/* PortCountersExtended comes first: pma_shown takes the widest. */
static const struct counter counters[] = {
    {EXT, 64, 64, 0, AT(xmit_data)},         {EXT, 128, 64, 1, AT(rcv_data)},
    {EXT, 192, 64, 2, AT(xmit_pkts)},        {EXT, 256, 64, 3, AT(rcv_pkts)},
    {EXT, 320, 64, 4, AT(unicast_xmit)},     {EXT, 384, 64, 5, AT(unicast_rcv)},
    {EXT, 448, 64, 6, AT(multicast_xmit)},   {EXT, 512, 64, 7, AT(multicast_rcv)},
    {PC, 32, 16, 0, AT(symbol_errors)},      {PC, 48, 8, 1, AT(link_recovers)},
    {PC, 56, 8, 2, AT(link_downed)},         {PC, 64, 16, 3, AT(rcv_errors)},
    {PC, 80, 16, 4, AT(rcv_remote_phys)},    {PC, 96, 16, 5, AT(rcv_switch_relay)},
    {PC, 112, 16, 6, AT(xmit_discards)},     {PC, 128, 8, 7, AT(xmit_constraint)},
    {PC, 136, 8, 8, AT(rcv_constraint)},     {PC, 152, 4, 9, AT(local_integrity)},
    {PC, 156, 4, 10, AT(excess_overrun)},    {PC, 176, 16, 11, AT(vl15_dropped)},
    {PC, 192, 32, 12, AT(xmit_data)},        {PC, 224, 32, 13, AT(rcv_data)},
    {PC, 256, 32, 14, AT(xmit_pkts)},        {PC, 288, 32, 15, AT(rcv_pkts)},
    {PC, 320, 32, 16, AT(xmit_wait)},        {DISC, 32, 16, 0, AT(discard_inactive)},
    {DISC, 48, 16, 1, AT(discard_mtu)},      {DISC, 64, 16, 2, AT(discard_sw_lifetime)},
    {DISC, 80, 16, 3, AT(discard_sw_hoq)},   {RCV, 32, 16, 0, AT(rcv_physical)},
    {RCV, 48, 16, 1, AT(rcv_malformed)},     {RCV, 64, 16, 2, AT(rcv_overrun)},
    {RCV, 80, 16, 3, AT(rcv_no_route)},      ALL_SLS(ATTR_XMIT_DATA_SL, xmit_data_sl),
    ALL_SLS(ATTR_RCV_DATA_SL, rcv_data_sl), /* errors last: sysfs shows those of PortCounters, like the kernel */
    {EXT, 576, 64, 32, AT(symbol_errors)},   {EXT, 640, 64, 33, AT(link_recovers)},
    {EXT, 704, 64, 34, AT(link_downed)},     {EXT, 768, 64, 35, AT(rcv_errors)},
    {EXT, 832, 64, 36, AT(rcv_remote_phys)}, {EXT, 896, 64, 37, AT(rcv_switch_relay)},
    {EXT, 960, 64, 38, AT(xmit_discards)},   {EXT, 1024, 64, 39, AT(xmit_constraint)},
    {EXT, 1088, 64, 40, AT(rcv_constraint)}, {EXT, 1152, 64, 41, AT(local_integrity)},
    {EXT, 1216, 64, 42, AT(excess_overrun)}, {EXT, 1280, 64, 43, AT(vl15_dropped)},
    {EXT, 1344, 64, 44, AT(xmit_wait)},
};

#define NUM_COUNTERS (sizeof counters / sizeof *counters)
_Static_assert(NUM_COUNTERS <= FABRIC_PMA_COUNTERS, "a base for each counter");

static uint64_t total(const struct port *p, size_t i)
{
    uint64_t v;

    memcpy(&v, (const char *)&p->count + counters[i].offset, sizeof v);
    return v;
}

static uint64_t maximum(size_t i)
{
    return counters[i].width == 64 ? UINT64_MAX : (1ull << counters[i].width) - 1;
}

static uint64_t shown(const struct port *p, size_t i)
{
    uint64_t v = total(p, i) - p->pma_base[i];

    return v < maximum(i) ? v : maximum(i);
}

uint64_t pma_shown(const struct port *p, size_t offset)
{
    for (size_t i = 0; i < NUM_COUNTERS; i++)
        if (counters[i].offset == offset)
            return shown(p, i);
    return 0;
}

static uint16_t class_port_info(uint8_t *data, bool set)
{
    if (set)
        return STATUS_BAD_METHOD;
    memset(data, 0, MAD_BYTES - GMP_DATA);
    wire_put(data, 0, 8, 1); /* base and class version */
    wire_put(data, 8, 8, 1);
    wire_put(data, 16, 16, CAP_ALL_PORTS | CAP_EXT_WIDTH | CAP_XMIT_WAIT);
    wire_put(data, 32, 27, CAP2_MORE_EXT);
    wire_put(data, 59, 5, RESP_TIME);
    return STATUS_OK;
}

/* Finds the ports of a request; false: none of this node */
static bool select_ports(struct port *at, unsigned select, unsigned *first, unsigned *last)
{
    bool sw = at->node->kind == NODE_SWITCH;

    if (select == ALL_PORTS) {
        *first = sw ? 1 : at->num;
        *last = sw ? at->node->num_ports : at->num;
        return true;
    }
    *first = *last = select;
    return sw ? select <= at->node->num_ports : select == at->num;
}

/* From now on the port shows value plus later counts. */
static void set_counter(struct port *p, size_t i, uint64_t value)
{
    p->pma_base[i] = total(p, i) - value;
}

static uint16_t port_counters(struct port *at, uint8_t *data, bool set, unsigned attr)
{
    uint64_t select = wire_get(data, COUNTER_SELECT);
    unsigned first, last, port = (unsigned)wire_get(data, PORT_SELECT);

    if (!select_ports(at, port, &first, &last))
        return STATUS_BAD_FIELD;
    if (attr == ATTR_COUNTERS_EXTENDED)
        select |= wire_get(data, EXT_SELECT2) << 32;
    if (set && attr == ATTR_COUNTERS && wire_get(data, 144, 8) & 1)
        select |= 1u << 16;
    for (size_t i = 0; set && i < NUM_COUNTERS; i++)
        for (unsigned k = first; k <= last && counters[i].attr == attr && (select >> counters[i].select & 1); k++)
            set_counter(&at->node->ports[k], i, wire_get(data, counters[i].bit, counters[i].width));
    memset(data, 0, MAD_BYTES - GMP_DATA);
    wire_put(data, PORT_SELECT, port);
    wire_put(data, COUNTER_SELECT, select & 0xffff);
    if (attr == ATTR_COUNTERS_EXTENDED)
        wire_put(data, EXT_SELECT2, select >> 32);
    for (size_t i = 0; i < NUM_COUNTERS; i++) {
        uint64_t sum = 0;

        if (counters[i].attr != attr)
            continue;
        for (unsigned k = first; k <= last; k++)
            sum += shown(&at->node->ports[k], i);
        wire_put(data, counters[i].bit, counters[i].width, sum < maximum(i) ? sum : maximum(i));
    }
    return STATUS_OK;
}

static uint16_t samples(struct port *at, uint8_t *data, bool set, unsigned attr)
{
    unsigned first, last, select = (unsigned)wire_get(data, PORT_SELECT);

    if (attr != ATTR_SAMPLES_CONTROL)
        return set ? STATUS_BAD_METHOD : samples_result(at, data, attr == ATTR_SAMPLES_RESULT_EXTENDED);
    if (select == ALL_PORTS || !select_ports(at, select, &first, &last))
        return STATUS_BAD_FIELD;
    return samples_control(at, &at->node->ports[first], data, set);
}

bool pma_answer(struct port *at, uint8_t *resp)
{
    uint64_t method = wire_get(resp, MAD_METHOD), attr = wire_get(resp, MAD_ATTR);
    uint8_t *data = resp + GMP_DATA;
    bool set = method == METHOD_SET;
    uint16_t status;

    if (method != METHOD_GET && method != METHOD_SET)
        return false;
    if (wire_get(resp, MAD_BASE_VERSION) != 1 || wire_get(resp, MAD_CLASS_VERSION) != 1) {
        status = STATUS_BAD_VERSION;
    } else {
        switch (attr) {
        case ATTR_CLASS_PORT_INFO:
            status = class_port_info(data, set);
            break;
        case ATTR_SAMPLES_CONTROL:
        case ATTR_SAMPLES_RESULT:
        case ATTR_SAMPLES_RESULT_EXTENDED:
            status = samples(at, data, set, (unsigned)attr);
            break;
        case ATTR_COUNTERS:
        case ATTR_COUNTERS_EXTENDED:
        case ATTR_RCV_ERROR_DETAILS:
        case ATTR_XMIT_DISCARD_DETAILS:
        case ATTR_XMIT_DATA_SL:
        case ATTR_RCV_DATA_SL:
            status = port_counters(at, data, set, (unsigned)attr);
            break;
        default:
            status = STATUS_BAD_ATTR;
        }
    }
    wire_put(resp, MAD_METHOD, METHOD_GET_RESP);
    wire_put(resp, MAD_STATUS, status);
    return true;
}
