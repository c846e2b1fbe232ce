/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events of a context, by its pipe to the program. */
#ifndef SIMFAB_ASYNC_H
#define SIMFAB_ASYNC_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct ctx;

void async_event(struct ctx *ctx, enum ibv_event_type ev, uint32_t port, uint64_t cookie);
void async_forget(struct ctx *ctx, uint64_t cookie); /* its object is gone: unread events of it go, too */

#endif
