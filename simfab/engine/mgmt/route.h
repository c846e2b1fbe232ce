/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The routes of datagrams. A datagram in flight is a struct mad_packet on the sender's stack; receivers copy. The
 * sending call carries the datagram to the end of its route, through forwarding tables and port states, and delivers
 * the datagram there (struct mad.deliver).
 */
#ifndef SIMFAB_ROUTE_H
#define SIMFAB_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct port;

#define MAD_QKEY 0x80010000u /* of every queue pair 1 */

/* A datagram with the fields of its packet's headers that a receiver gets. */
struct mad_packet {
    const uint8_t *mad;
    size_t bytes; /* 256, or more for a multi-segment message carried as a whole */
    uint8_t qpn;  /* 0 or 1, of both ends */
    uint16_t slid, dlid;
    uint8_t sl;
    uint16_t pkey; /* of datagrams to queue pair 1 */
    uint32_t qkey;
    bool grh;
    uint8_t sgid[16];
    uint32_t flow_label;
    uint8_t traffic_class, hop_limit;
};

enum mad_result { MAD_SENT, MAD_LOST, MAD_BAD_ROUTE };

/*
 * Carries a datagram from a port to its destination, delivers the datagram there and carries back the hardware's
 * answer. MAD_LOST: not delivered. MAD_BAD_ROUTE: a directed route that does not begin (or return) at this port.
 */
enum mad_result mad_send(struct port *from, const struct mad_packet *pkt);

/* May a datagram with these keys come in at the port? A wrong key is counted, and goes to fabric_upcalls.bad_key. */
bool route_keys_accept(struct port *at, const struct mad_packet *pkt);

#endif
