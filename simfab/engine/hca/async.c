/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events. */
#include "simfab/engine/hca/async.h"

#include <infiniband/verbs.h>
#include <stddef.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/hca/event_pipe.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/object.h"
#include "simfab/proto.h"

void async_event(struct ctx *ctx, enum ibv_event_type ev, uint32_t port, uint64_t cookie)
{
    struct sf_async_event rec = {.event = ev, .port = port, .cookie = cookie, .t_ps = sim_now(ctx->hca->sim)};

    event_pipe_put(&ctx->events, &rec, sizeof rec);
    sched_event(ctx->obj.proc);
}

void async_forget(struct ctx *ctx, uint64_t cookie)
{
    event_pipe_forget(&ctx->events, cookie, sizeof(struct sf_async_event), offsetof(struct sf_async_event, cookie));
}
