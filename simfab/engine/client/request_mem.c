/* SPDX-License-Identifier: BSD-3-Clause */
/* Control verbs of protection domains, memory regions and memory windows. */
#include "simfab/engine/client/request_mem.h"

#include <errno.h>
#include <infiniband/verbs.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/client/destroy.h"
#include "simfab/engine/clock/call.h"
#include "simfab/engine/hca/mem.h"
#include "simfab/engine/hca/mw.h"
#include "simfab/engine/hca/object.h"
#include "simfab/proto.h"

int call_alloc_pd(struct call *c)
{
    struct ctx *ctx = object_find(c->p, call_arg(c, 0), OBJ_CTX);
    struct pd *pd;

    if (!ctx)
        return EINVAL;
    pd = xcalloc(1, sizeof *pd);
    call_put32(c, object_add(c->p, ctx, OBJ_PD, &pd->obj));
    return 0;
}

static void put_mr(struct call *c, const struct mr *mr)
{
    call_put32(c, mr->obj.handle);
    call_put32(c, mr->key);
    call_put32(c, mr->key);
}

int call_reg_mr(struct call *c)
{
    struct sf_reg_mr r;
    struct pd *pd;
    struct mr *mr;
    int err;

    memcpy(&r, c->body, sizeof r);
    pd = object_find(c->p, r.pd, OBJ_PD);
    if (!pd)
        return EINVAL;
    mr = mr_register(pd, &r, &err);
    if (!mr)
        return err;
    c->cost_ps = mr_register_ps(mr);
    object_add(c->p, pd->obj.ctx, OBJ_MR, &mr->obj);
    put_mr(c, mr);
    return 0;
}

int call_rereg_mr(struct call *c)
{
    struct sf_rereg_mr r;
    struct mr *mr;
    struct pd *pd;
    int err;

    memcpy(&r, c->body, sizeof r);
    mr = object_find(c->p, r.mr, OBJ_MR);
    if (!mr)
        return EINVAL;
    pd = r.flags & IBV_REREG_MR_CHANGE_PD ? object_find(c->p, r.to.pd, OBJ_PD) : mr->pd;
    if (!pd || pd->obj.ctx != mr->obj.ctx)
        return EINVAL;
    err = mr_reregister(mr, pd, &r);
    if (err)
        return err;
    if (r.flags & IBV_REREG_MR_CHANGE_TRANSLATION)
        c->cost_ps = mr_register_ps(mr);
    put_mr(c, mr);
    return 0;
}

int call_null_mr(struct call *c)
{
    struct pd *pd = object_find(c->p, call_arg(c, 0), OBJ_PD);
    struct mr *mr;
    int err;

    if (!pd)
        return EINVAL;
    mr = mr_null(pd, &err);
    if (!mr)
        return err;
    object_add(c->p, pd->obj.ctx, OBJ_MR, &mr->obj);
    put_mr(c, mr);
    return 0;
}

int call_dereg_mr(struct call *c)
{
    const struct mr *mr = object_find(c->p, call_arg(c, 0), OBJ_MR);
    uint64_t cost_ps = mr ? mr_deregister_ps(mr) : 0;
    int err = call_destroy(c, OBJ_MR);

    if (!err)
        c->cost_ps = cost_ps;
    return err;
}

int call_alloc_mw(struct call *c)
{
    struct pd *pd = object_find(c->p, call_arg(c, 0), OBJ_PD);
    uint32_t type = call_arg(c, 1);
    struct mr *w;
    int err;

    if (!pd || (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2))
        return EINVAL;
    w = mw_alloc(pd, (enum ibv_mw_type)type, &err);
    if (!w)
        return err;
    call_put32(c, object_add(c->p, pd->obj.ctx, OBJ_MW, &w->obj));
    call_put32(c, w->key);
    return 0;
}

int call_dealloc_mw(struct call *c)
{
    return call_destroy(c, OBJ_MW);
}
