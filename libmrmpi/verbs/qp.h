/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: the interface of qp.c for the files of verbs/, beyond verbs.h. */
#ifndef MRMPI_VERBS_QP_H
#define MRMPI_VERBS_QP_H

#include "libmrmpi/verbs/verbs.h"

/* RDMA reads that a queue pair of the device answers, or has outstanding, at the same time. */
uint8_t mr_qp_reads(const struct mr_device *dev);
/* UD: ready to send. */
int mr_qp_bring_up(struct mr_qp *qp);
/* UD: after draining, works again under the same number. */
int mr_qp_revive(struct mr_qp *qp);
/*
 * Instead of mr_qp_destroy() for a queue pair that may have received, and has posted nothing: *qp is as before
 * mr_qp_create() at once, but data acknowledged to the peer is still handed up.
 */
void mr_qp_retire(struct mr_qp *qp);

#endif
