/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host channel adapters: their ports, the turns of queue pairs, packets in and out. Memory regions, queues and queue
 * pairs have headers of their own.
 */
#ifndef SIMFAB_HCA_H
#define SIMFAB_HCA_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/hca/bus.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp_cache.h"
#include "simfab/engine/wire/vlarb.h"

struct link_dir;
struct mcast_group;
struct mr;
struct packet;
struct qp;
struct sim;

struct ready_list {
    struct qp *first, **last;
};

/* The cost of sending a packet. */
struct tx_cost {
    bool first;      /* a request had to be fetched */
    bool inlined;    /* its data came with the doorbell */
    uint32_t memory; /* bytes read from memory */
};

struct hca_port {
    struct hca *hca;
    struct port *port;
    bool was_active;
    uint64_t tx_busy_ps, rx_busy_ps, last_landed_ps;
    bool tx_reading;        /* the packet in hand waits for its request or its data: no other is begun */
    struct tx_cost tx_cost; /* of that packet */
    uint64_t tx_behind_ps;  /* time of its request beyond the engine's time */
    uint64_t tx_owed_ps;    /* for acknowledges received meanwhile */
    uint64_t last_wire_ps[FABRIC_VLS];
    uint32_t rx_waiting; /* packets whose turn at the receive engine is an event */
    struct evtimer tx;
    struct ready_list ready[FABRIC_VLS];
    uint32_t ready_mask;
    struct {
        uint32_t packets, bytes; /* made and not yet on the wire */
    } pipe[FABRIC_VLS];
    struct vlarb_state arb;
};

struct hca {
    struct sim *sim;
    struct node *node;
    uint32_t slow_milli;               /* by a fault: duration of receive work, in thousandths of the normal time */
    struct bus *bus, own_bus;          /* bus: its own, or that of the first adapter on the bus */
    struct memory *memory, own_memory; /* the same for the host's memory */
    struct dma reader, writer;
    struct qp_cache contexts_held;
    struct hca_port *ports; /* num_ports + 1 */
    struct qp **qp_table;   /* by number - HCA_FIRST_QPN */
    uint32_t qp_table_size, next_qpn;
    struct mr **mr_table; /* by key >> 8 */
    uint32_t mr_table_size, mr_hint;
    uint8_t mr_tag;
    struct qp *free_qps;
    struct ctx *contexts;
    uint32_t objects[OBJECT_KINDS];   /* how many of each, of all processes */
    struct mcast_group *mcast_groups; /* mcast.c */
    uint32_t num_mcast_groups;
};

#define HCA_FIRST_QPN 64u

/* The type of the queue pair that a flow is to its adapter. */
#define QPT_FLOW IBV_QPT_DRIVER

/* Calls from adapters to traffic without a process (flow.c); events.c fills the table in. */
struct hca_upcalls {
    void (*flow_landed)(struct sim *s, const struct packet *p);
};

void hcas_init(struct sim *s);
void hcas_fini(struct sim *s);
/* A packet of so many bytes left the output queue: room for another. */
void hca_lane_drained(struct port *p, unsigned vl, uint32_t wire_bytes);
/* A packet's last bit has come in by the link. */
void hca_packet_arrived(struct link_dir *l, struct packet *p);
void hca_port_changed(struct port *p);
void hca_slow(struct hca *h, uint32_t factor_milli); /* 1000: as the model says */
/* The queue pair has something to send: it takes its turn in its lane. */
void hca_qp_ready(struct qp *qp);
void hca_qp_forget(struct qp *qp); /* removes the queue pair from the ready lists */
/* Send a packet that costs no memory access (an acknowledge) at once. */
void hca_send_control(struct qp *qp, struct packet *p);
bool hca_owns_lid(const struct port *p, uint16_t lid);
struct qp *hca_find_qp(struct hca *h, uint32_t qpn);

#endif
