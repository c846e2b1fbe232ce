/* SPDX-License-Identifier: BSD-3-Clause */
/* The completion rings. */
#ifndef SIMFAB_PRELOAD_VERBS_CQ_H
#define SIMFAB_PRELOAD_VERBS_CQ_H

#include "simfab/preload/verbs.h"

int sfp_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int sfp_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int sfp_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *sfp_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr);
/* Forget the completions of a queue pair that is destroyed or reset. */
void sfp_purge_cq(struct sfp_cq *cq, struct sfp_qp *qp);
/* Wait until a next empty look makes sense: the common end of empty polls. False: the engine died. */
bool sfp_idle(struct sf_actor *a);
/*
 * This thread has found the awaited event ready. Whether a wait is needed may be luck: the thread goes on as after a
 * wait.
 */
void sfp_need_not_wait(void);
/* Takes the next entry visible at the actor's clock into *e; false: none. Frees the entry's slots. */
bool sfp_take_cqe(struct sfp_cq *cq, struct sf_actor *a, struct sf_cqe *e);

#endif
