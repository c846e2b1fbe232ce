/* SPDX-License-Identifier: BSD-3-Clause */
/* The live objects, by handle and by cookie. */
#ifndef SIMFAB_PRELOAD_VERBS_REGISTRY_H
#define SIMFAB_PRELOAD_VERBS_REGISTRY_H

#include "simfab/preload/verbs.h"

/* The live objects, for events and completions. Cookies are never used twice. */
extern pthread_mutex_t sfp_registry_lock;
uint64_t sfp_new_cookie(void);
int sfp_register_qp(struct sfp_qp *qp); /* ENOMEM */
void sfp_unregister_qp(struct sfp_qp *qp);
struct sfp_qp *sfp_qp_by_handle(uint32_t handle); /* NULL if there is none; lock-free */
void sfp_register_cq(struct sfp_cq *cq);
void sfp_unregister_cq(struct sfp_cq *cq);
void sfp_register_srq(struct sfp_srq *srq);
void sfp_unregister_srq(struct sfp_srq *srq);
/* The object of an event, with its count of reported events raised under the lock; NULL if it is gone. */
struct sfp_cq *sfp_cq_of_event(uint64_t cookie, bool async);
struct sfp_qp *sfp_qp_of_event(uint64_t cookie);
struct sfp_srq *sfp_srq_of_event(uint64_t cookie);
/* True if a queue other than cq has a completion that a is able to see and nobody was told of yet. */
bool sfp_news_elsewhere(const struct sfp_cq *cq, const struct sf_actor *a);

#endif
