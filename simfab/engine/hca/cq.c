/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues in the arena, and the pipes for completion events. An entry is written at once, with its time of
 * visibility; an event at that time wakes the waiters.
 */
#include "simfab/engine/hca/cq.h"

#include <infiniband/verbs.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/engine/fabric/model.h"
#include "simfab/engine/hca/async.h"
#include "simfab/engine/hca/event_pipe.h"
#include "simfab/engine/hca/hca.h"
#include "simfab/engine/hca/object.h"
#include "simfab/engine/hca/qp.h"
#include "simfab/proto.h"

static struct sf_cq_ring *ring_of(const struct cq *cq)
{
    return (struct sf_cq_ring *)((uint8_t *)cq->obj.proc->arena + cq->offset);
}

static uint32_t ring_bytes(uint32_t slots)
{
    return (uint32_t)(sizeof(struct sf_cq_ring) + slots * sizeof(struct sf_cqe));
}

/* An empty ring of SLOTS entries. Entries that were not produced are never read, so their pages stay untouched. */
static void init_ring(struct sf_cq_ring *ring, uint32_t slots)
{
    memset(ring, 0, sizeof *ring);
    ring->slots = slots;
}

static uint32_t slots_for(uint32_t cqe)
{
    uint32_t slots = 16;

    while (slots < cqe + 1)
        slots *= 2;
    return slots;
}

int cq_create(struct ctx *ctx, const struct sf_create_cq *r, struct channel *ch, struct cq **out)
{
    const struct model *m = ctx->hca->sim->model;
    struct proc *p = ctx->obj.proc;
    struct cq *cq;

    if (!r->cqe || r->cqe > m->max_cqe)
        return EINVAL;
    if (ctx->hca->objects[OBJ_CQ] >= m->max_cq)
        return ENOMEM;
    cq = xcalloc(1, sizeof *cq);
    cq->slots = slots_for(r->cqe);
    cq->cqe = cq->slots - 1;
    cq->offset = arena_alloc(p, ring_bytes(cq->slots));
    if (!cq->offset) {
        free(cq);
        return ENOMEM;
    }
    cq->channel = ch;
    cq->cookie = r->cookie;
    if (ch)
        ch->obj.uses++;
    object_add(p, ctx, OBJ_CQ, &cq->obj);
    init_ring(ring_of(cq), cq->slots);
    *out = cq;
    return 0;
}

/* Move to a ring of another size. The entries that were not taken move along, and keep their numbers. */
int cq_resize(struct cq *cq, uint32_t cqe)
{
    struct proc *p = cq->obj.proc;
    struct sf_cq_ring *old = ring_of(cq), *new;
    uint64_t consumed = __atomic_load_n(&old->consumed, __ATOMIC_ACQUIRE);
    uint32_t slots = slots_for(cqe), offset;

    if (!cqe || cqe > cq->obj.ctx->hca->sim->model->max_cqe)
        return EINVAL;
    if (consumed > cq->produced || cq->produced - consumed > cqe)
        return EINVAL;
    offset = arena_alloc(p, ring_bytes(slots));
    if (!offset)
        return ENOMEM;
    new = (struct sf_cq_ring *)((uint8_t *)p->arena + offset);
    init_ring(new, slots);
    for (uint64_t i = consumed; i < cq->produced; i++)
        new->cqe[i & (slots - 1)] = old->cqe[i & (cq->slots - 1)];
    new->consumed = consumed;
    __atomic_store_n(&new->produced, cq->produced, __ATOMIC_RELEASE);
    arena_free(p, cq->offset, ring_bytes(cq->slots));
    cq->offset = offset;
    cq->slots = slots;
    cq->cqe = slots - 1;
    return 0;
}

void cq_destroy(struct cq *cq)
{
    arena_free(cq->obj.proc, cq->offset, ring_bytes(cq->slots));
    async_forget(cq->obj.ctx, cq->cookie);
    if (cq->channel) {
        event_pipe_forget(&cq->channel->events, cq->cookie, sizeof(struct sf_cq_event),
                          offsetof(struct sf_cq_event, cookie));
        cq->channel->obj.uses--;
    }
    object_remove(&cq->obj);
    free(cq);
}

/* Events name queues by process << 32 | handle. */
static uint64_t cq_name(const struct cq *cq)
{
    return (uint64_t)cq->obj.proc->id << 32 | cq->obj.handle;
}

static struct cq *find_cq(struct proc *p, uint64_t name)
{
    return p ? object_find(p, (uint32_t)name, OBJ_CQ) : NULL;
}

/* A completion event reaches the process. */
static void cq_event(void *obj, uint64_t arg)
{
    struct sim *s = obj;
    struct proc *p = proc_by_id(s, (uint32_t)(arg >> 32));
    struct cq *cq = find_cq(p, arg);
    struct sf_cq_event rec;

    if (!cq || !cq->channel)
        return;
    rec = (struct sf_cq_event){cq->cookie, sim_now(s)};
    event_pipe_put(&cq->channel->events, &rec, sizeof rec);
    sched_event(p);
}

static void notify(struct cq *cq, uint64_t t)
{
    struct sim *s = cq->obj.proc->sim;

    cq->armed = CQ_UNARMED;
    cq->pending = 0;
    cq->event_due_ps = 0;
    if (cq->channel)
        evq_push(&s->q, t + s->model->event_ps, cq_event, s, cq_name(cq));
}

/* The longest time that moderation holds an event back has gone by. */
static void moderation_over(void *obj, uint64_t arg)
{
    struct sim *s = obj;
    struct cq *cq = find_cq(proc_by_id(s, (uint32_t)(arg >> 32)), arg);

    if (cq && cq->pending && cq->event_due_ps == sim_now(s))
        notify(cq, sim_now(s));
}

/* An entry that an event is for has become visible at t. */
static void count_for_event(struct cq *cq, uint64_t t)
{
    struct sim *s = cq->obj.proc->sim;

    if ((!cq->event_count && !cq->event_period_us) || ++cq->pending == cq->event_count) {
        notify(cq, t);
    } else if (cq->event_period_us && !cq->event_due_ps) {
        cq->event_due_ps = t + cq->event_period_us * 1000000ull;
        evq_push(&s->q, cq->event_due_ps, moderation_over, s, cq_name(cq));
    }
}

void cq_moderate(struct cq *cq, uint32_t count, uint32_t period_us)
{
    cq->event_count = count;
    cq->event_period_us = period_us;
    if (cq->pending)
        notify(cq, sim_now(cq->obj.proc->sim));
}

/* The newest completions become visible. If all have been taken already, no actor waits for them. */
static void cq_visible(void *obj, uint64_t arg)
{
    struct sim *s = obj;
    struct proc *p = proc_by_id(s, (uint32_t)(arg >> 32));
    struct cq *cq = find_cq(p, arg);

    if (cq && __atomic_load_n(&ring_of(cq)->consumed, __ATOMIC_ACQUIRE) < cq->produced)
        sched_event(p);
}

/* Queue pairs with lost completions cannot go on. */
static void stop_users(void *obj, uint64_t arg)
{
    struct sim *s = obj;
    struct cq *cq = find_cq(proc_by_id(s, (uint32_t)(arg >> 32)), arg);
    const struct hca *h = cq ? cq->obj.ctx->hca : NULL;

    for (uint32_t i = 0; h && i < h->qp_table_size; i++) {
        struct qp *qp = h->qp_table[i];

        if (!qp || (qp->send_cq != cq && qp->recv_cq != cq) || qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR)
            continue;
        qp->ops->to_error(qp);
        async_event(qp->obj.ctx, IBV_EVENT_QP_FATAL, 0, qp->cookie);
    }
}

static void overrun(struct cq *cq)
{
    struct sim *s = cq->obj.proc->sim;

    cq->overrun = true;
    ring_of(cq)->overrun = 1;
    async_event(cq->obj.ctx, IBV_EVENT_CQ_ERR, 0, cq->cookie);
    evq_push(&s->q, sim_now(s), stop_users, s, cq_name(cq)); /* not from within the queue pair that is at work */
}

void cq_push(struct cq *cq, const struct sf_cqe *cqe, bool solicited)
{
    struct proc *p = cq->obj.proc;
    struct sim *s = p->sim;
    struct sf_cq_ring *ring = ring_of(cq);
    uint64_t consumed = __atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE), t = sim_now(s) + s->model->cqe_ps;
    struct sf_cqe *slot;

    if (cq->overrun)
        return;
    if (consumed > cq->produced || cq->produced - consumed >= cq->cqe) {
        overrun(cq);
        return;
    }
    slot = &ring->cqe[cq->produced & (cq->slots - 1)];
    *slot = *cqe;
    slot->t_ps = t;
    __atomic_store_n(&ring->produced, ++cq->produced, __ATOMIC_RELEASE);
    evq_push(&s->q, t, cq_visible, s, cq_name(cq));
    if (solicited || cqe->status)
        cq->solicited = cq->produced;
    if (cq->armed == CQ_ARMED_ANY || (cq->armed == CQ_ARMED_SOLICITED && cq->solicited == cq->produced))
        count_for_event(cq, t);
}

void cq_arm(struct cq *cq, bool solicited_only)
{
    struct sf_cq_ring *ring = ring_of(cq);
    uint64_t consumed = __atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE);

    if (cq->armed != CQ_ARMED_ANY)
        cq->armed = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY;
    if (consumed < (cq->armed == CQ_ARMED_ANY ? cq->produced : cq->solicited))
        notify(cq, sim_now(cq->obj.proc->sim)); /* it came before the arming: no wake-up may be lost */
}
