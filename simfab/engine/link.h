/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links: one struct link_dir per direction of a cable, with a queue per virtual lane at its output, the arbiter that
 * chooses among them, and the credits of the receive buffers at its far end. A packet in a switch stays in the receive
 * buffer of the link it came by until its last bit has left.
 */
#ifndef SIMFAB_LINK_H
#define SIMFAB_LINK_H

#include "simfab/engine/credit.h"
#include "simfab/engine/packet.h"
#include "simfab/engine/sim.h"
#include "simfab/engine/vlarb.h"

struct vl_queue {
    struct packet *first, **last;
    uint32_t packets;
    struct credit credit;
    uint64_t wait_since_ps; /* blocked by credits since; 0: not blocked */
};

struct link_dir {
    struct sim *sim;
    struct port *from, *to;
    uint64_t rate_bps;
    uint32_t changes_seen; /* port->changes that rate_bps and the lanes belong to */
    uint64_t busy_until_ps;
    bool kick_queued;
    uint32_t occupied; /* mask of lanes with packets */
    struct vlarb_state arb;
    double loss, corrupt; /* probabilities, of a packet to vanish and to arrive with a wrong checksum */
    uint64_t random;      /* state of this direction's own generator: what others carry does not change its faults */
    struct vl_queue vl[FABRIC_VLS];
};

/* Make the two directions of every cable of the fabric, in p->out. */
void links_init(struct sim *s);
void links_fini(struct sim *s);

/* Put a packet at the end of its lane (p->vl). Takes the packet in every case; drops it if the link cannot carry it. */
void link_enqueue(struct link_dir *l, struct packet *p);

/* The receiver has freed the buffer that p occupies (if any). */
void link_release(struct packet *p);

/* The same for a buffer whose packet has gone on: arg is lane << 32 | bytes. An event function. */
void link_release_at(void *link, uint64_t arg);

/* The state of the port changed: drop what waits if the link is no longer active, start again if it is. */
void link_port_changed(struct port *p);

/* The lane for a packet of service level sl that came into the node of out by port in; -1: discard. */
int link_lane(const struct port *out, uint8_t in, uint8_t sl);

/* Tables of a port as the arbiter wants them. */
struct vlarb_config link_arb_config(const struct port *p);

/* switch.c: a packet is ready at a switch's output. fn of an event: obj the packet's link_dir it came by. */
void switch_forward(struct port *in, struct packet *p);

/* On to an output port of the same switch, or away if its service level has no lane there. */
void switch_output(struct port *in, uint8_t out_num, struct packet *p);

#endif
