/* SPDX-License-Identifier: BSD-3-Clause */
/* Making, using and destroying queue pairs, as programs ask for it. */
#ifndef SIMFAB_QP_MAKE_H
#define SIMFAB_QP_MAKE_H

struct ah;
struct cq;
struct ctx;
struct pd;
struct qp;
struct sf_cmd;
struct sf_create_qp;
struct sf_send;
struct srq;

/* Both return 0 or an errno. */
int qp_create(struct ctx *ctx, const struct sf_create_qp *r, struct pd *pd, struct cq *scq, struct cq *rcq,
              struct srq *srq, struct qp **out);
int qp_post_send(struct qp *qp, const struct sf_cmd *cmd, const struct sf_send *s, const void *data, struct ah *ah);
void qp_clear(struct qp *qp); /* frees all posted requests and all state of transfers under way */
void qp_destroy(struct qp *qp);

#endif
