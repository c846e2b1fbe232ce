/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Links: one struct link_dir per direction of a cable, with its queues per virtual lane at the output, the arbiter of
 * the lanes, and the credits of the receive buffers at the far end. A packet in a switch stays in the receive buffer of
 * its incoming link until its last bit has left.
 *
 * An output lane of a switch has a queue for every input port. The queues take turns, packet by packet, so no input
 * gets more than another by sending faster. The packet in turn waits for its credits, and no packet of its lane
 * overtakes. The model's link.switch_queues decides which part of an input buffer is in these queues: all packets, or
 * only the packet at the head of the buffer of its lane (switch.c).
 */
#ifndef SIMFAB_LINK_H
#define SIMFAB_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/wire/credit.h"
#include "simfab/engine/wire/vlarb.h"

struct packet;
struct sim;

/* Packets of one input that wait for an output lane. Adapters have one such queue per lane. */
struct in_queue {
    struct packet *first, **last;
    struct in_queue *next; /* next in turn */
};

/* A flow control packet on its way: from t on the sender knows of fccl. */
struct fc_update {
    uint64_t t_ps;
    uint16_t fccl;
};

struct fc_ring {
    struct fc_update *update;
    uint32_t first, used, cap; /* cap: a power of two */
};

/* An output lane. */
struct vl_queue {
    struct link_dir *link;
    struct in_queue *in;                /* by input port; made when the first packet comes */
    struct in_queue *turn, **turn_last; /* queues with packets, in the order of their turns */
    uint32_t packets;
    struct credit credit;
    struct fc_ring fc;
    uint64_t wait_since_ps; /* blocked by credits since; 0: not blocked */
    /* lane_life.c */
    uint64_t head_since_ps, stalled_until_ps;
    uint32_t dropped_in_a_row;
    struct evtimer life;
};

/* Packets in a receive buffer of a switch behind its head (link.switch_queues: lane). */
struct rx_lane {
    struct packet *first, **last;
    bool head_out; /* its head waits at an output, or is leaving */
    bool advancing;
};

#define LINK_LOSE_MAX 8 /* packets of a direction that can be told to vanish */

struct link_dir {
    struct sim *sim;
    struct port *from, *to;
    const struct link_end *near, *far; /* the nodes of from and to */
    void (*look)(struct link_dir *l);  /* at the lanes, for a packet that may go (link.c) */
    uint64_t rate_bps;
    uint64_t fc_ps; /* time of a flow control packet, with the cable delay */
    uint32_t mtu;
    uint32_t changes_seen; /* port->changes for which the fields above and below are valid */
    struct vlarb_config arb_config;
    struct vlarb_state arb;
    uint32_t last_bytes; /* the last packet's length, and the time of such a packet */
    uint64_t last_ps;
    uint64_t busy_until_ps;
    uint64_t kick_ps;       /* when the next look at the lanes is due; 0: none */
    uint64_t wait_since_ps; /* the wire is idle though there are packets: no lane has credits */
    uint64_t wait_rest_ps;  /* waiting time of less than a tick, not counted yet */
    uint32_t occupied;      /* mask of lanes with packets */
    double loss, corrupt;   /* probabilities, of a packet to vanish and to arrive with a wrong checksum */
    double overrun;         /* probability that the receiver lacks room despite credit */
    uint64_t crossed;       /* packets that have come to the far end, or should have */
    uint64_t
        lose[LINK_LOSE_MAX]; /* packets to lose, as numbers of the count in `crossed`, ascending, 0 behind the last */
    unsigned lost;           /* packets lost of these */
    bool fc_off;             /* flow control packets that are for from do not come through */
    uint32_t fc_watch;       /* number of the present watch over them */
    uint32_t overrun_run;    /* in so many periods of flow control on end something has found no room, */
    uint64_t overrun_period; /* the period of the last overrun, counted from 1 */
    uint64_t recovered_ps;   /* when the last recovery ends */
    uint64_t random; /* state of this direction's own generator: traffic of other links does not change its faults */
    struct vl_queue vl[FABRIC_VLS];
    struct rx_lane rx[FABRIC_VLS]; /* at the far end */
};

/* Calls from a link to the node at an end. switch.c has the table of switches, events.c fills in that of adapters. */
struct link_end {
    /* At the far end: a packet has come in (adapter: its last bit; switch: its head has been looked at). */
    void (*packet_arrived)(struct link_dir *l, struct packet *p);
    /* At the far end: a place in the receive buffer of the lane is free. NULL: not wanted. */
    void (*place_left)(struct link_dir *l, unsigned vl);
    /* At the near end: a packet of so many bytes left the output queue: room for another. NULL: not wanted. */
    void (*lane_drained)(struct port *p, unsigned vl, uint32_t wire_bytes);
};

/* Why a packet does not leave by a port (PortXmitDiscardDetails). */
enum discard { DISCARD_INACTIVE, DISCARD_MTU, DISCARD_LIFETIME, DISCARD_HOQ, DISCARD_LANE };

/* Makes the two directions of every cable of the fabric, in p->out, with the functions of switches and adapters. */
void links_init(struct sim *s, const struct link_end *switches);
void links_fini(struct sim *s);

/*
 * Puts a packet at the end of its lane (p->vl). Takes the packet in every case, and drops the packet if the link cannot
 * carry it.
 */
void link_enqueue(struct link_dir *l, struct packet *p);

/* Loses the nth[i]-th packets from now on: ascending, 0 behind the last. Replaces earlier numbers. */
void link_lose(struct link_dir *l, const uint32_t nth[LINK_LOSE_MAX]);

/* The state of the port changed: drops waiting packets if the link is no longer active, else starts again. */
void link_port_changed(struct port *p);

/* The lane for a packet of service level sl that came into the node of out by port in; -1: discard. */
int link_lane(const struct port *out, uint8_t in, uint8_t sl);

/* Tables of a port as the arbiter wants them. */
struct vlarb_config link_arb_config(const struct port *p);

/* The rate, tables and limits that belong to the port's present state. */
void link_reload(struct link_dir *l);
static inline void link_refresh(struct link_dir *l)
{
    if (!l->rate_bps || l->changes_seen != l->from->changes)
        link_reload(l);
}

/* The time of a number of bytes on the wire; most packets are as long as the packet before. */
static inline uint64_t link_serialise_ps(struct link_dir *l, uint32_t bytes)
{
    if (bytes != l->last_bytes) {
        l->last_bytes = bytes;
        l->last_ps = transfer_ps(bytes, l->rate_bps);
    }
    return l->last_ps;
}

#endif
