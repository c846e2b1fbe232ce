/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains, thread domains and parent domains. The program's promise in a thread domain is not used, since
 * posting takes one short lock anyway. A parent domain is its protection domain under another address.
 */
#include "simfab/preload/verbs_domain.h"

#include <errno.h>
#include <stdlib.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/call.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/verbs.h"

static struct sfp_pd *pd_of(struct ibv_pd *pd)
{
    return sfp_container(pd, struct sfp_pd, pd);
}

SFP_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    struct sfp_pd *p = calloc(1, sizeof *p);
    int err;

    if (!p)
        return NULL;
    p->pd.context = context;
    p->generation = sfp_generation;
    err = sfp_call(SF_OP_ALLOC_PD, &sfp_context(context)->handle, sizeof(uint32_t), &p->pd.handle, sizeof p->pd.handle,
                   NULL, NULL);
    if (err) {
        free(p);
        errno = err;
        return NULL;
    }
    return &p->pd;
}

static void dealloc_parent(struct sfp_pd *p)
{
    pthread_mutex_lock(&p->pd.context->mutex);
    p->base->parents--;
    if (p->td)
        p->td->users--;
    pthread_mutex_unlock(&p->pd.context->mutex);
    free(p);
}

SFP_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
    struct sfp_pd *p = pd_of(pd);
    bool used;
    int err = 0;

    if (p->base) {
        dealloc_parent(p);
        return 0;
    }
    pthread_mutex_lock(&pd->context->mutex);
    used = p->parents;
    pthread_mutex_unlock(&pd->context->mutex);
    if (used)
        return EBUSY;
    if (p->generation == sfp_generation) /* else inherited by fork: the engine's object is the parent's */
        err = sfp_call(SF_OP_DEALLOC_PD, &pd->handle, sizeof pd->handle, NULL, 0, NULL, NULL);
    if (!err)
        free(p);
    return err;
}

struct ibv_td *sfp_alloc_td(struct ibv_context *c, struct ibv_td_init_attr *attr)
{
    struct sfp_td *t;

    if (attr->comp_mask) {
        errno = EINVAL;
        return NULL;
    }
    t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->td.context = c;
    return &t->td;
}

int sfp_dealloc_td(struct ibv_td *td)
{
    struct sfp_td *t = sfp_container(td, struct sfp_td, td);
    bool used;

    pthread_mutex_lock(&td->context->mutex);
    used = t->users;
    pthread_mutex_unlock(&td->context->mutex);
    if (used)
        return EBUSY;
    free(t);
    return 0;
}

struct ibv_pd *sfp_alloc_parent_domain(struct ibv_context *c, struct ibv_parent_domain_init_attr *attr)
{
    struct sfp_pd *p;

    /* allocators of the program are for queue memory, which here is the engine's */
    if (!attr->pd || attr->comp_mask || attr->pd->context != c || (attr->td && attr->td->context != c)) {
        errno = attr->comp_mask ? EOPNOTSUPP : EINVAL;
        return NULL;
    }
    p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->pd = *attr->pd;
    p->generation = sfp_generation;
    p->base = pd_of(attr->pd)->base ? pd_of(attr->pd)->base : pd_of(attr->pd);
    p->td = attr->td ? sfp_container(attr->td, struct sfp_td, td) : NULL;
    pthread_mutex_lock(&c->mutex);
    p->base->parents++;
    if (p->td)
        p->td->users++;
    pthread_mutex_unlock(&c->mutex);
    return &p->pd;
}
