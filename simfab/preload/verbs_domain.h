/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, thread domains, in the tables of operations. */
#ifndef SIMFAB_PRELOAD_VERBS_DOMAIN_H
#define SIMFAB_PRELOAD_VERBS_DOMAIN_H

#include "simfab/preload/verbs.h"

struct ibv_td *sfp_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr);
int sfp_dealloc_td(struct ibv_td *td);
struct ibv_pd *sfp_alloc_parent_domain(struct ibv_context *c, struct ibv_parent_domain_init_attr *attr);

#endif
