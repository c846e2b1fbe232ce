/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of programs go, by a call or with their process. */
#ifndef SIMFAB_DESTROY_H
#define SIMFAB_DESTROY_H

#include "simfab/engine/hca/object.h"

struct call;
struct ctx;
struct object;
struct proc;

void object_destroy(struct object *o); /* of any kind; no other object uses it any more */
/* All objects of a context but the context itself; ctx NULL: of all contexts. */
void objects_destroy(struct proc *p, const struct ctx *ctx);
void objects_destroy_all(struct proc *p); /* contexts, too */

/* Destroys the object of this kind named by the first word of the call: EINVAL, EBUSY. */
int call_destroy(struct call *c, enum object_kind kind);

#endif
