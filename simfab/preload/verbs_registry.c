/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The live verbs objects of the process. Completions name queue pairs by handle, events name objects by cookie; both
 * may arrive after the program has destroyed the object, so neither is ever used as a pointer.
 */
#include "simfab/preload/verbs_registry.h"

#include <errno.h>
#include <stdlib.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/verbs.h"

#define PAGE_BITS 10
#define PAGE_SIZE (1u << PAGE_BITS)
#define PAGES     4096u
#define NOTICES   4u /* a completion elsewhere keeps so many empty polls from waiting */

pthread_mutex_t sfp_registry_lock = PTHREAD_MUTEX_INITIALIZER;

static struct sfp_qp **qp_pages[PAGES];
static struct sfp_cq *cqs;
static struct sfp_qp *qps;
static struct sfp_srq *srqs;
static uint64_t last_cookie;

uint64_t sfp_new_cookie(void)
{
    return __atomic_add_fetch(&last_cookie, 1, __ATOMIC_RELAXED);
}

#define LIST_ADD(list, object)                                                                                         \
    do {                                                                                                               \
        pthread_mutex_lock(&sfp_registry_lock);                                                                        \
        (object)->next = (list);                                                                                       \
        (list) = (object);                                                                                             \
        pthread_mutex_unlock(&sfp_registry_lock);                                                                      \
    } while (0)

#define LIST_REMOVE(list, object)                                                                                      \
    do {                                                                                                               \
        pthread_mutex_lock(&sfp_registry_lock);                                                                        \
        for (__typeof__(&(list)) p_ = &(list); *p_; p_ = &(*p_)->next)                                                 \
            if (*p_ == (object)) {                                                                                     \
                *p_ = (object)->next;                                                                                  \
                break;                                                                                                 \
            }                                                                                                          \
        pthread_mutex_unlock(&sfp_registry_lock);                                                                      \
    } while (0)

int sfp_register_qp(struct sfp_qp *qp)
{
    uint32_t page = qp->qp.handle >> PAGE_BITS;
    int err = 0;

    if (page >= PAGES)
        return ENOMEM;
    pthread_mutex_lock(&sfp_registry_lock);
    if (!qp_pages[page]) {
        struct sfp_qp **fresh = calloc(PAGE_SIZE, sizeof *fresh);

        if (fresh)
            __atomic_store_n(&qp_pages[page], fresh, __ATOMIC_RELEASE);
        else
            err = ENOMEM;
    }
    if (!err)
        __atomic_store_n(&qp_pages[page][qp->qp.handle % PAGE_SIZE], qp, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&sfp_registry_lock);
    if (!err)
        LIST_ADD(qps, qp);
    return err;
}

void sfp_unregister_qp(struct sfp_qp *qp)
{
    struct sfp_qp **slot = &qp_pages[qp->qp.handle >> PAGE_BITS][qp->qp.handle % PAGE_SIZE];

    if (*slot == qp) /* a forked child may have given the number away */
        __atomic_store_n(slot, NULL, __ATOMIC_RELEASE);
    LIST_REMOVE(qps, qp);
}

struct sfp_qp *sfp_qp_by_handle(uint32_t handle)
{
    struct sfp_qp **page;

    if (handle >> PAGE_BITS >= PAGES)
        return NULL;
    page = __atomic_load_n(&qp_pages[handle >> PAGE_BITS], __ATOMIC_ACQUIRE);
    return page ? __atomic_load_n(&page[handle % PAGE_SIZE], __ATOMIC_ACQUIRE) : NULL;
}

void sfp_register_cq(struct sfp_cq *cq)
{
    LIST_ADD(cqs, cq);
}

void sfp_unregister_cq(struct sfp_cq *cq)
{
    LIST_REMOVE(cqs, cq);
}

void sfp_register_srq(struct sfp_srq *srq)
{
    LIST_ADD(srqs, srq);
}

void sfp_unregister_srq(struct sfp_srq *srq)
{
    LIST_REMOVE(srqs, srq);
}

struct sfp_cq *sfp_cq_of_event(uint64_t cookie, bool async)
{
    struct sfp_cq *cq;

    pthread_mutex_lock(&sfp_registry_lock);
    for (cq = cqs; cq && cq->cookie != cookie; cq = cq->next)
        ;
    if (cq) {
        pthread_mutex_lock(&cq->cq.mutex);
        async ? cq->async_reported++ : cq->events_reported++;
        pthread_mutex_unlock(&cq->cq.mutex);
    }
    pthread_mutex_unlock(&sfp_registry_lock);
    return cq;
}

struct sfp_qp *sfp_qp_of_event(uint64_t cookie)
{
    struct sfp_qp *qp;

    pthread_mutex_lock(&sfp_registry_lock);
    for (qp = qps; qp && qp->cookie != cookie; qp = qp->next)
        ;
    if (qp) {
        pthread_mutex_lock(&qp->qp.mutex);
        qp->async_reported++;
        pthread_mutex_unlock(&qp->qp.mutex);
    }
    pthread_mutex_unlock(&sfp_registry_lock);
    return qp;
}

struct sfp_srq *sfp_srq_of_event(uint64_t cookie)
{
    struct sfp_srq *srq;

    pthread_mutex_lock(&sfp_registry_lock);
    for (srq = srqs; srq && srq->cookie != cookie; srq = srq->next)
        ;
    if (srq) {
        pthread_mutex_lock(&srq->srq.mutex);
        srq->async_reported++;
        pthread_mutex_unlock(&srq->srq.mutex);
    }
    pthread_mutex_unlock(&sfp_registry_lock);
    return srq;
}

/* How many completions of cq, counted from the beginning, are visible at now; the consumed ones included. */
static uint64_t visible(const struct sfp_cq *cq, uint64_t now)
{
    const struct sf_cq_ring *r = cq->ring;
    uint64_t produced = __atomic_load_n(&r->produced, __ATOMIC_ACQUIRE);
    uint64_t consumed = __atomic_load_n(&r->consumed, __ATOMIC_ACQUIRE);

    if (!r->slots || produced == consumed)
        return consumed;
    if (r->cqe[(produced - 1) % r->slots].t_ps <= now)
        return produced;
    return r->cqe[consumed % r->slots].t_ps <= now ? consumed + 1 : consumed;
}

bool sfp_news_elsewhere(const struct sfp_cq *cq, const struct sf_actor *a)
{
    uint64_t now = sfp_now(a);
    bool news = false;

    pthread_mutex_lock(&sfp_registry_lock);
    for (struct sfp_cq *c = cqs; c; c = c->next) {
        uint64_t seen;

        if (c == cq || c->generation != sfp_generation)
            continue;
        seen = visible(c, now);
        if (seen == __atomic_load_n(&c->ring->consumed, __ATOMIC_RELAXED))
            continue;
        if (seen != c->noticed) {
            c->noticed = seen;
            c->notices = 0;
        }
        if (c->notices < NOTICES) {
            c->notices++;
            news = true;
        }
    }
    pthread_mutex_unlock(&sfp_registry_lock);
    return news;
}
