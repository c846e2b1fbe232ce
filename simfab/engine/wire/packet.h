/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of the data plane and their chunks of data. A packet has one owner: the sending HCA, a link's queue, the
 * event of its arrival, the receiving HCA. A chunk is a reference-counted piece of a message, as read from memory by
 * the sender's HCA; many packets share a chunk.
 */
#ifndef SIMFAB_PACKET_H
#define SIMFAB_PACKET_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/wire/mcast.h"

#define CHUNK_MAX 65536u

struct chunk {
    uint32_t refs, cap, len;
    struct chunk *next_free;
    uint8_t data[];
};

struct chunk *chunk_new(uint32_t len);
static inline struct chunk *chunk_get(struct chunk *c)
{
    if (c)
        c->refs++;
    return c;
}
void chunk_put(struct chunk *c);

/* A packet's operation; the transport is that of the destination queue pair. */
enum packet_op {
    PKT_SEND,
    PKT_WRITE,
    PKT_READ_REQUEST,
    PKT_READ_RESPONSE,
    PKT_ATOMIC,
    PKT_ATOMIC_ACK,
    PKT_ACK,
    PKT_NAK,
    PKT_RNR_NAK,
};

enum packet_flags {
    PKT_FIRST = 1,
    PKT_LAST = 2,
    PKT_IMM = 4,
    PKT_SOLICITED = 8,
    PKT_ACK_REQ = 16,
    PKT_GRH = 32,
    PKT_MULTICAST = 64,
    PKT_DATAGRAM = 128,
    PKT_MIGREQ = 256,     /* BTH's MigReq bit: the sender's path state is migrated */
    PKT_INVALIDATE = 512, /* a send that invalidates the memory window rkey */
};

enum nak_code { NAK_SEQUENCE = 0, NAK_INVALID_REQUEST = 1, NAK_REMOTE_ACCESS = 2, NAK_REMOTE_OPERATION = 3 };

struct link_dir;

struct packet {
    struct packet *next;
    struct link_dir *held;   /* the link of the occupied receive buffer, on lane held_vl */
    struct mcast_hold *hold; /* shared with other copies; or NULL */
    uint16_t slid, dlid;
    uint8_t sl, vl, held_vl;
    uint8_t op, transport; /* enum packet_op, enum ibv_qp_type */
    uint8_t nak, rnr_timer;
    uint8_t in_port; /* of the present switch */
    uint32_t flags;
    uint32_t dest_qpn, src_qpn, qkey, psn;
    uint32_t payload, wire_bytes;
    uint32_t imm, msn;
    uint16_t pkey;
    /* RDMA and atomics */
    uint32_t rkey, dma_len, atomic_op;
    uint64_t raddr, compare_add, swap;
    /* payload = chunk->data[offset .. offset + payload) */
    struct chunk *chunk;
    uint32_t chunk_off;
    uint64_t arrived_ps;  /* arrival of the first bit at the present switch */
    uint64_t tail_ps;     /* when its last bit reached (or will reach) the node it is in */
    uint32_t *background; /* of a flow without a process: counts that flow's packets; else NULL */
    uint8_t grh[40];      /* if PKT_GRH */
};

struct packet *packet_new(void);
struct packet *packet_copy(const struct packet *p); /* shares the data */
void packet_free(struct packet *p);                 /* also drops its chunk */
/* Makes the packet background traffic: counted in *count, which must outlive the packet, until freed. */
void packet_is_background(struct packet *p, uint32_t *count);
/* Number of packets that a program waits for. */
uint64_t packets_foreground(void);

#endif
