/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends of connections between the HCAs of one simulated host, through the switch: one program with one thread sees both
 * sides, and measures adapters, buses and links alone. Any failing call ends the program with a message.
 */
#ifndef TESTS_SIMFAB_HOST_ENDS_H
#define TESTS_SIMFAB_HOST_ENDS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct hca_end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;
    struct ibv_mr *mr;
    uint8_t *buf;
    uint16_t lid;
    enum ibv_mtu mtu;
    uint64_t rate_bps;
};

#define DEPTH        4096u /* of every queue */
#define SHARED_DEPTH 64u   /* except send queues of ends with a shared receive queue, because there are many */

__attribute__((format(printf, 1, 2), noreturn)) void die(const char *fmt, ...);

/* Open the host's HCA number device, with a buffer of so many bytes. */
void end_open(struct hca_end *e, int device, size_t bytes);

/* A queue pair on the end: ready to receive into the end's shared receive queue or its own. */
struct ibv_qp *end_qp(struct hca_end *e, enum ibv_qp_type type, bool shared);
/* Connect the two, up to RTS; or to one of another process. */
void end_connect(struct hca_end *a, struct ibv_qp *qa, struct hca_end *b, struct ibv_qp *qb);
void end_connect_to(struct hca_end *e, struct ibv_qp *qp, uint16_t lid, uint32_t remote_qpn);

void end_post_recv(struct hca_end *e, struct ibv_qp *qp, unsigned n, uint32_t bytes);
/* A send, a write, a read or a fetch and add of the first bytes of the buffers. */
void end_post(struct hca_end *from, struct ibv_qp *qp, const struct hca_end *to, enum ibv_wr_opcode op, uint32_t bytes,
              unsigned flags);
/* A datagram. */
void end_post_ud(struct hca_end *from, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t bytes);
/* Wait for n completions, all of them successful. */
void end_wait(struct ibv_cq *cq, unsigned n);
/* Takes up to n present completions, at least one. */
unsigned end_take(struct ibv_cq *cq, unsigned n);

/* The virtual clock, in picoseconds. */
uint64_t clock_ps(void);

#endif
