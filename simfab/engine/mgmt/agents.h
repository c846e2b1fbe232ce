/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of the management plane, shared by its files. Every struct port has a struct mad_port. Agents (each a
 * registration of an open umad) belong to the port of their umad.
 */
#ifndef SIMFAB_AGENTS_H
#define SIMFAB_AGENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/mgmt/timer.h"

struct agent;
struct mad_packet;
struct trap;
struct umad_file;
struct umad_in;

struct mad {
    struct fabric *f;
    /* A datagram has come to the end of its route, by the port ingress (mad.c). False: no agent takes it. */
    bool (*deliver)(struct port *at, const struct port *ingress, const struct mad_packet *pkt);
    int epfd, timerfd;
    struct timer timers; /* list head */
    uint64_t armed_ns;   /* when timerfd expires; 0: never */
    struct umad_in *in;  /* data sent by programs, while being served */
    struct mad_port *ports;
    struct umad_file *files;
    uint32_t last_agent;     /* the number given last: upper half of transaction ids */
    struct port *going_down; /* set to this physical state by a Set whose answer leaves first */
    enum phys_state going_to;
    uint32_t last_trap; /* the same for traps */
};

struct mad_port {
    struct mad *mad;
    struct port *port;
    struct agent *agents;
    struct umad_file *issm, *issm_waiting;
    struct trap *traps;
    struct timer lease;
    uint8_t last_state;
    uint8_t changes_untold; /* of notice 144, beside the capability mask */
};

static inline struct mad_port *mad_port_of(const struct port *p)
{
    return p->mad;
}

#endif
