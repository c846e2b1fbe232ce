/* SPDX-License-Identifier: BSD-3-Clause */
/* Control verbs of memory. */
#ifndef SIMFAB_REQUEST_MEM_H
#define SIMFAB_REQUEST_MEM_H

struct call;

int call_alloc_pd(struct call *c);
int call_reg_mr(struct call *c);
int call_rereg_mr(struct call *c);
int call_null_mr(struct call *c);
int call_dereg_mr(struct call *c);
int call_alloc_mw(struct call *c);
int call_dealloc_mw(struct call *c);

#endif
