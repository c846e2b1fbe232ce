/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bench for links and switches: the engine's data plane without processes, on topologies given in the test. A
 * topology is a list of cables, "sw1.1-h1 sw1.2-h2 sw1.3-sw2.3": names that begin with "sw" are switches, others hosts
 * with one port. The engine configures the subnet; the test may change tables.
 */
#ifndef TESTS_SIMFAB_LINK_LAB_H
#define TESTS_SIMFAB_LINK_LAB_H

#include "simfab/engine/base/sim.h"
#include "simfab/engine/fabric/fabric.h"

/* Receivers that take 1 us for a packet and no longer, a bus without limits: only links and switches are narrow. */
#define LAB_MODEL                                                                                                      \
    "hca: {rx_packet_ns: 1000, dma_write_ns: 0, dma_latency_ns: 0, bus_mbytes_per_s: 0}\n"                             \
    "link: {width: 4, speed: SDR, mtu: 2048, vls: 8, propagation_ns: 10, switch_delay_ns: 200, "

extern struct sim lab;

/* model: YAML. Ends the test on a mistake. */
void lab_up(const char *cables, const char *model);
void lab_down(void);

struct port *lab_port(const char *node, unsigned num);
static inline struct port *lab_host(const char *name)
{
    return lab_port(name, 1);
}

/* Sends a number of packets of wire_bytes into the lane of the host's port for sl. */
void lab_send(const char *from, const char *to, uint8_t sl, uint32_t wire_bytes, unsigned packets);

/* Run until the host's port has received so many packets (all, if 0), or nothing happens any more: false. */
bool lab_run_until(const char *host, uint64_t packets);
void lab_run(void);
/* Events up to a time, and the time moves there. */
void lab_run_to(uint64_t t_ps);

/* Arbitration tables: pairs of lane and weight, the last one {0, 0}. */
void lab_arbitrate(struct port *p, const struct vlarb_entry *high, const struct vlarb_entry *low, uint8_t limit);

/* The host's adapter takes us microseconds per packet. */
void lab_slow_receiver(const char *host, uint64_t us);

/* Checks the credits of every lane of every link; empty: all credits are back. */
void lab_check_credits(bool empty);

#endif
