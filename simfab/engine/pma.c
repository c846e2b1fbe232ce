/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The performance management agent: PortCounters and PortCountersExtended of a node's ports, fed by the data plane.
 * Counters are kept in 64 bits; PortCounters saturates what it shows, PortCountersExtended shows all.
 * A field is said once, in a table: where it is in the answer, which bit of CounterSelect sets it, which counter it is.
 */
#include "simfab/engine/agents.h"

#include <stddef.h>
#include <string.h>

#define ALL_PORTS     255
#define CAP_ALL_PORTS 0x0100
#define CAP_EXT_WIDTH 0x0200
#define CAP_XMIT_WAIT 0x1000
#define RESP_TIME     18

#define PORT_SELECT    8, 8
#define COUNTER_SELECT 16, 16

struct counter {
    uint16_t bit, width;
    uint8_t select; /* bit of CounterSelect; 16: bit 0 of CounterSelect2 */
    size_t offset;
};

#define AT(f) offsetof(struct port_count, f)

static const struct counter counters[] = {
    {32, 16, 0, AT(symbol_errors)},   {48, 8, 1, AT(link_recovers)},    {56, 8, 2, AT(link_downed)},
    {64, 16, 3, AT(rcv_errors)},      {80, 16, 4, AT(rcv_remote_phys)}, {96, 16, 5, AT(rcv_switch_relay)},
    {112, 16, 6, AT(xmit_discards)},  {128, 8, 7, AT(xmit_constraint)}, {136, 8, 8, AT(rcv_constraint)},
    {152, 4, 9, AT(local_integrity)}, {156, 4, 10, AT(excess_overrun)}, {176, 16, 11, AT(vl15_dropped)},
    {192, 32, 12, AT(xmit_data)},     {224, 32, 13, AT(rcv_data)},      {256, 32, 14, AT(xmit_pkts)},
    {288, 32, 15, AT(rcv_pkts)},      {320, 32, 16, AT(xmit_wait)},
};

static const struct counter extended[] = {
    {64, 64, 0, AT(xmit_data)},       {128, 64, 1, AT(rcv_data)},      {192, 64, 2, AT(xmit_pkts)},
    {256, 64, 3, AT(rcv_pkts)},       {320, 64, 4, AT(unicast_xmit)},  {384, 64, 5, AT(unicast_rcv)},
    {448, 64, 6, AT(multicast_xmit)}, {512, 64, 7, AT(multicast_rcv)},
};

static uint64_t *counter_of(struct port *p, const struct counter *c)
{
    return (uint64_t *)((char *)&p->count + c->offset);
}

static uint16_t class_port_info(uint8_t *data, bool set)
{
    if (set)
        return STATUS_BAD_METHOD;
    memset(data, 0, MAD_BYTES - GMP_DATA);
    wire_put(data, 0, 8, 1); /* base and class version */
    wire_put(data, 8, 8, 1);
    wire_put(data, 16, 16, CAP_ALL_PORTS | CAP_EXT_WIDTH | CAP_XMIT_WAIT);
    wire_put(data, 59, 5, RESP_TIME);
    return STATUS_OK;
}

/* Which ports a request is about; false: none of ours */
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

static uint16_t port_counters(struct port *at, uint8_t *data, bool set, const struct counter *list, size_t n)
{
    unsigned first, last, select = (unsigned)wire_get(data, COUNTER_SELECT);
    unsigned port = (unsigned)wire_get(data, PORT_SELECT);

    if (!select_ports(at, port, &first, &last))
        return STATUS_BAD_FIELD;
    if (set && list == counters && wire_get(data, 144, 8) & 1)
        select |= 1u << 16;
    for (size_t i = 0; set && i < n; i++)
        for (unsigned k = first; k <= last && (select >> list[i].select & 1); k++)
            *counter_of(&at->node->ports[k], &list[i]) = wire_get(data, list[i].bit, list[i].width);
    memset(data, 0, MAD_BYTES - GMP_DATA);
    wire_put(data, PORT_SELECT, port);
    wire_put(data, COUNTER_SELECT, select & 0xffff);
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0, max = list[i].width == 64 ? UINT64_MAX : (1ull << list[i].width) - 1;

        for (unsigned k = first; k <= last; k++)
            sum += *counter_of(&at->node->ports[k], &list[i]);
        wire_put(data, list[i].bit, list[i].width, sum < max ? sum : max);
    }
    return STATUS_OK;
}

bool pma_answer(struct port *at, uint8_t *resp)
{
    uint64_t method = wire_get(resp, MAD_METHOD);
    uint8_t *data = resp + GMP_DATA;
    bool set = method == METHOD_SET;
    uint16_t status;

    if (method != METHOD_GET && method != METHOD_SET)
        return false;
    if (wire_get(resp, MAD_BASE_VERSION) != 1 || wire_get(resp, MAD_CLASS_VERSION) != 1) {
        status = STATUS_BAD_VERSION;
    } else {
        switch (wire_get(resp, MAD_ATTR)) {
        case 0x01:
            status = class_port_info(data, set);
            break;
        case 0x12:
            status = port_counters(at, data, set, counters, sizeof counters / sizeof *counters);
            break;
        case 0x1d:
            status = port_counters(at, data, set, extended, sizeof extended / sizeof *extended);
            break;
        default:
            status = STATUS_BAD_ATTR;
        }
    }
    wire_put(resp, MAD_METHOD, METHOD_GET_RESP);
    wire_put(resp, MAD_STATUS, status);
    return true;
}
