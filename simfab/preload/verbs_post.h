/* SPDX-License-Identifier: BSD-3-Clause */
/* The command ring. */
#ifndef SIMFAB_PRELOAD_VERBS_POST_H
#define SIMFAB_PRELOAD_VERBS_POST_H

#include "simfab/preload/verbs.h"

int sfp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sfp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int sfp_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Put a command without a body into the ring. 0 or an errno. */
int sfp_post_simple(struct sf_actor *a, enum sf_cmd_op op, uint32_t object, uint32_t flags);

#endif
