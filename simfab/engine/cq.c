/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues in the arena, and the pipes by which a process learns of completion and asynchronous events. An
 * entry is written at once with the time at which it becomes visible; an event at that time wakes whoever waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "simfab/engine/proc.h"
#include "simfab/engine/util.h"

static struct sf_cq_ring *ring_of(const struct cq *cq)
{
    return (struct sf_cq_ring *)((uint8_t *)cq->obj.proc->arena + cq->offset);
}

static uint32_t ring_bytes(uint32_t slots)
{
    return (uint32_t)(sizeof(struct sf_cq_ring) + slots * sizeof(struct sf_cqe));
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
    ring_of(cq)->slots = cq->slots;
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
    for (uint64_t i = consumed; i < cq->produced; i++)
        new->cqe[i & (slots - 1)] = old->cqe[i & (cq->slots - 1)];
    new->slots = slots;
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
    if (cq->channel)
        cq->channel->obj.uses--;
    object_remove(&cq->obj);
    free(cq);
}

/* A record into a pipe. A reader that lets 64 KiB of events pile up loses the next ones, never the engine's time. */
static void put_record(int fd, const void *rec, size_t bytes)
{
    if (fd >= 0 && write(fd, rec, bytes) < 0 && errno != EAGAIN && errno != EPIPE)
        engine_log("event pipe: %s", strerror(errno));
}

static struct cq *find_cq(struct proc *p, uint64_t arg)
{
    return object_find(p, (uint32_t)arg, OBJ_CQ);
}

/* A completion event reaches the process. arg: process << 32 | handle. */
static void cq_event(void *obj, uint64_t arg)
{
    struct sim *s = obj;
    struct proc *p = proc_by_id(s, (uint32_t)(arg >> 32));
    struct cq *cq = p ? find_cq(p, arg) : NULL;
    struct sf_cq_event rec;

    if (!cq || !cq->channel)
        return;
    rec = (struct sf_cq_event){cq->cookie, sim_now(s)};
    put_record(cq->channel->fd, &rec, sizeof rec);
    sched_event(p);
}

static void notify(struct cq *cq, uint64_t t)
{
    struct sim *s = cq->obj.proc->sim;

    cq->armed = CQ_UNARMED;
    if (cq->channel)
        evq_push(&s->q, t + s->model->event_ps, cq_event, s, (uint64_t)cq->obj.proc->id << 32 | cq->obj.handle);
}

/* The newest completions become visible. If all have been taken already, nobody waits for them. */
static void cq_visible(void *obj, uint64_t arg)
{
    struct sim *s = obj;
    struct proc *p = proc_by_id(s, (uint32_t)(arg >> 32));
    struct cq *cq = p ? find_cq(p, arg) : NULL;

    if (cq && __atomic_load_n(&ring_of(cq)->consumed, __ATOMIC_ACQUIRE) < cq->produced)
        sched_event(p);
}

void cq_push(struct cq *cq, const struct sf_cqe *cqe, bool solicited)
{
    struct proc *p = cq->obj.proc;
    struct sim *s = p->sim;
    struct sf_cq_ring *ring = ring_of(cq);
    uint64_t consumed = __atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE), t = sim_now(s) + s->model->cqe_ps;
    struct sf_cqe *slot;

    if (consumed > cq->produced || cq->produced - consumed >= cq->cqe) {
        if (!cq->overrun) {
            cq->overrun = true;
            ring->overrun = 1;
            async_event(cq->obj.ctx, IBV_EVENT_CQ_ERR, 0, cq->cookie);
        }
        return;
    }
    slot = &ring->cqe[cq->produced & (cq->slots - 1)];
    *slot = *cqe;
    slot->t_ps = t;
    __atomic_store_n(&ring->produced, ++cq->produced, __ATOMIC_RELEASE);
    evq_push(&s->q, t, cq_visible, s, (uint64_t)p->id << 32 | cq->obj.handle);
    if (cq->armed == CQ_ARMED_ANY || (cq->armed == CQ_ARMED_SOLICITED && (solicited || cqe->status)))
        notify(cq, t);
}

void cq_arm(struct cq *cq, bool solicited_only)
{
    struct sf_cq_ring *ring = ring_of(cq);
    uint64_t consumed = __atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE);

    if (cq->armed != CQ_ARMED_ANY)
        cq->armed = solicited_only ? CQ_ARMED_SOLICITED : CQ_ARMED_ANY;
    if (cq->armed == CQ_ARMED_ANY && consumed < cq->produced)
        notify(cq, sim_now(cq->obj.proc->sim)); /* it came before the arming: no wake-up may be lost */
}

void async_event(struct ctx *ctx, enum ibv_event_type ev, uint32_t port, uint64_t cookie)
{
    struct sf_async_event rec = {.event = ev, .port = port, .cookie = cookie, .t_ps = sim_now(ctx->hca->sim)};

    put_record(ctx->async_fd, &rec, sizeof rec);
    sched_event(ctx->obj.proc);
}
