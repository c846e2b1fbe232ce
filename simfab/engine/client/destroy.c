/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of programs go, by a call or with their process. */
#include "simfab/engine/client/destroy.h"

#include <errno.h>
#include <stdlib.h>

#include "simfab/engine/clock/call.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/cq.h"
#include "simfab/engine/hca/event_pipe.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/mem.h"
#include "simfab/engine/hca/mw.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/engine/hca/qp_make.h"
#include "simfab/engine/hca/rq.h"

static void destroy_ctx(struct ctx *ctx)
{
    for (struct ctx **x = &ctx->hca->contexts; *x; x = &(*x)->next)
        if (*x == ctx) {
            *x = ctx->next;
            break;
        }
    event_pipe_close(&ctx->events);
    ctx->obj.ctx = NULL;
    object_remove(&ctx->obj);
    free(ctx);
}

void object_destroy(struct object *o)
{
    switch (o->kind) {
    case OBJ_CTX:
        destroy_ctx((struct ctx *)o);
        return;
    case OBJ_CQ:
        cq_destroy((struct cq *)o);
        return;
    case OBJ_QP:
        qp_destroy((struct qp *)o);
        return;
    case OBJ_MR:
        object_remove(o);
        mr_deregister((struct mr *)o);
        return;
    case OBJ_MW:
        object_remove(o);
        mw_free((struct mr *)o);
        return;
    case OBJ_CHANNEL:
        event_pipe_close(&((struct channel *)o)->events);
        break;
    case OBJ_SRQ:
        async_forget(o->ctx, ((struct srq *)o)->cookie);
        ((struct srq *)o)->pd->obj.uses--;
        rq_fini(&((struct srq *)o)->rq);
        break;
    case OBJ_AH:
        ((struct ah *)o)->pd->obj.uses--;
        break;
    case OBJ_PD:
        break;
    }
    object_remove(o);
    free(o);
}

static void destroy_kind(struct proc *p, enum object_kind kind, const struct ctx *ctx)
{
    for (uint32_t i = 0; i < p->num_objects; i++)
        if (p->objects[i] && p->objects[i]->kind == kind && (!ctx || p->objects[i]->ctx == ctx))
            object_destroy(p->objects[i]);
}

void objects_destroy(struct proc *p, const struct ctx *ctx)
{
    static const enum object_kind order[] = {OBJ_QP, OBJ_AH, OBJ_MW, OBJ_SRQ, OBJ_CQ, OBJ_CHANNEL, OBJ_MR, OBJ_PD};

    for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
        destroy_kind(p, order[i], ctx);
}

void objects_destroy_all(struct proc *p)
{
    objects_destroy(p, NULL);
    destroy_kind(p, OBJ_CTX, NULL);
}

int call_destroy(struct call *c, enum object_kind kind)
{
    struct object *o = object_find(c->p, call_arg(c, 0), kind);

    if (!o)
        return EINVAL;
    if (o->uses)
        return EBUSY;
    object_destroy(o);
    return 0;
}
