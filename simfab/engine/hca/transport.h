/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns and packets of queue pairs: struct qp_ops of programs' queue pairs. */
#ifndef SIMFAB_TRANSPORT_H
#define SIMFAB_TRANSPORT_H

struct qp;
struct qp_ops;

extern const struct qp_ops transport_ops;

/* The lane of the next packet. */
int transport_lane(struct qp *qp);

#endif
