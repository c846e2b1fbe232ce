/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows (specification 10.6.7): keys that a send queue binds to part of a region and takes back, without the
 * operating system. A window of type 1 may be bound again at any time and is open to all queue pairs of its domain. A
 * window of type 2 belongs, while bound, to the binding queue pair (2B), must be invalidated before the next bind, and
 * the binder chooses the new key.
 */
#include "simfab/engine/hca/mw.h"

#include <infiniband/verbs.h>
#include <stdlib.h>

#include "simfab/engine/hca/mem.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/proto.h"

struct mr *mw_alloc(struct pd *pd, enum ibv_mw_type type, int *err)
{
    struct mr *w = mr_add_key(pd, err);

    if (w)
        w->window = type;
    return w;
}

static void unbind(struct mr *w)
{
    if (!w->region)
        return;
    w->region->obj.uses--;
    w->region = NULL;
    w->access = 0;
    for (struct mr **x = w->qp ? &w->qp->windows : NULL; x && *x; x = &(*x)->next_of_qp)
        if (*x == w) {
            *x = w->next_of_qp;
            break;
        }
    w->qp = NULL;
}

void mw_free(struct mr *w)
{
    unbind(w);
    mr_deregister(w);
}

static bool rights_granted(const struct mr *region, uint32_t access)
{
    const uint32_t known =
        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_ZERO_BASED;

    if (access & ~known || !(region->access & IBV_ACCESS_MW_BIND))
        return false;
    return !(access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) ||
           (region->access & IBV_ACCESS_LOCAL_WRITE);
}

static bool bind_allowed(const struct qp *qp, const struct mr *w, const struct mr *region, const struct sf_bind *b)
{
    uint64_t at;

    if (w->pd != qp->pd || region->pd != qp->pd || (b->rkey ^ w->key) >> 8)
        return false;
    if (w->window == IBV_MW_TYPE_2 && w->region)
        return false;
    at = b->addr - region->iova;
    return rights_granted(region, b->access) && b->addr >= region->iova && at <= region->length &&
           b->length <= region->length - at;
}

bool mw_bind(struct qp *qp, const struct sf_bind *b)
{
    struct mr *w = object_find(qp->obj.proc, b->mw, OBJ_MW);
    struct mr *region = object_find(qp->obj.proc, b->mr, OBJ_MR);

    if (!w || w->obj.ctx != qp->obj.ctx)
        return false;
    if (!b->length && w->pd == qp->pd && !((b->rkey ^ w->key) >> 8)) { /* to nothing: its key is dead */
        unbind(w);
        w->key = b->rkey;
        return true;
    }
    if (!region || region->obj.ctx != qp->obj.ctx || !bind_allowed(qp, w, region, b))
        return false;
    unbind(w);
    w->key = b->rkey;
    w->addr = region->addr + (b->addr - region->iova);
    w->length = b->length;
    w->iova = b->access & IBV_ACCESS_ZERO_BASED ? 0 : b->addr;
    w->access = b->access;
    w->region = region;
    region->obj.uses++;
    if (w->window == IBV_MW_TYPE_2) {
        w->qp = qp;
        w->next_of_qp = qp->windows;
        qp->windows = w;
    }
    return true;
}

bool mw_invalidate(struct qp *qp, uint32_t key)
{
    struct mr *w = mr_of_key(qp->hca, key);

    if (!w || w->window != IBV_MW_TYPE_2 || !w->region || w->pd != qp->pd || w->qp != qp)
        return false;
    unbind(w);
    return true;
}

void mw_forget_qp(struct qp *qp)
{
    while (qp->windows)
        unbind(qp->windows);
}
