/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues. A queue is a ring in the arena: the engine produces, we consume. Polling is where time passes: an
 * empty poll tells the engine that this thread has nothing to do, and returns when there is a reason to look again.
 */
#include "simfab/preload/verbs_cq.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/call.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/verbs.h"
#include "simfab/preload/verbs_events.h"
#include "simfab/preload/verbs_post.h"
#include "simfab/preload/verbs_registry.h"

/* The engine's answer to CREATE_CQ and RESIZE_CQ. */
struct created {
    uint32_t cq, ring, cqe;
};

static int place_ring(struct sfp_cq *cq, const struct created *rep)
{
    struct sf_cq_ring *r;

    if (rep->ring % 64 || rep->ring > sfp_proc.arena_bytes || sfp_proc.arena_bytes - rep->ring < sizeof *r)
        return EPROTO;
    r = (struct sf_cq_ring *)((char *)sfp_proc.arena + rep->ring);
    if (!r->slots || r->slots > (sfp_proc.arena_bytes - rep->ring - sizeof *r) / sizeof r->cqe[0])
        return EPROTO;
    cq->ring = r;
    cq->cq.cqe = (int)rep->cqe;
    return 0;
}

static struct sfp_cq *create_cq(struct ibv_context *context, uint32_t cqe, void *cq_context,
                                struct ibv_comp_channel *channel)
{
    struct sf_create_cq req = {.ctx = sfp_context(context)->handle, .cqe = cqe};
    struct sfp_cq *cq = calloc(1, sizeof *cq);
    struct created rep;
    int err;

    if (!cq)
        return NULL;
    cq->cookie = req.cookie = sfp_new_cookie();
    cq->generation = sfp_generation;
    cq->cq.context = context;
    cq->cq.channel = channel;
    cq->cq.cq_context = cq_context;
    if (channel)
        req.channel = sfp_channel_handle(channel);
    err = sfp_call(SF_OP_CREATE_CQ, &req, sizeof req, &rep, sizeof rep, NULL, NULL);
    if (!err) {
        cq->cq.handle = rep.cq;
        err = place_ring(cq, &rep);
    }
    if (err) {
        free(cq);
        errno = err;
        return NULL;
    }
    pthread_mutex_init(&cq->cq.mutex, NULL);
    pthread_cond_init(&cq->cq.cond, NULL);
    pthread_mutex_init(&cq->lock, NULL);
    if (channel) {
        pthread_mutex_lock(&context->mutex);
        channel->refcnt++;
        pthread_mutex_unlock(&context->mutex);
    }
    sfp_register_cq(cq);
    return cq;
}

SFP_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                                        struct ibv_comp_channel *channel, int comp_vector)
{
    struct sfp_cq *cq;

    if (cqe <= 0 || comp_vector < 0 || comp_vector >= context->num_comp_vectors) {
        errno = EINVAL;
        return NULL;
    }
    cq = create_cq(context, (uint32_t)cqe, cq_context, channel);
    return cq ? &cq->cq : NULL;
}

SFP_EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
    struct sfp_cq *cq = sfp_cq(ibcq);
    uint32_t req[2] = {ibcq->handle, (uint32_t)cqe};
    struct created rep;
    int err;

    if (cqe <= 0 || cq->generation != sfp_generation)
        return EINVAL;
    pthread_mutex_lock(&cq->lock); /* no consumer runs while the engine moves the entries */
    err = sfp_call(SF_OP_RESIZE_CQ, req, sizeof req, &rep, sizeof rep, NULL, NULL);
    if (!err)
        err = place_ring(cq, &rep);
    pthread_mutex_unlock(&cq->lock);
    return err;
}

int sfp_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
    uint32_t req[3] = {ibcq->handle, attr->moderate.cq_count, attr->moderate.cq_period};

    if (sfp_cq(ibcq)->generation != sfp_generation)
        return EIO;
    if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
        return EINVAL;
    return sfp_call(SF_OP_MODIFY_CQ, req, sizeof req, NULL, 0, NULL, NULL);
}

SFP_EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
    struct sfp_cq *cq = sfp_cq(ibcq);
    int err = 0;

    if (cq->generation == sfp_generation)
        err = sfp_call(SF_OP_DESTROY_CQ, &ibcq->handle, sizeof ibcq->handle, NULL, 0, NULL, NULL);
    if (err && err != EIO)
        return err;
    sfp_unregister_cq(cq);
    pthread_mutex_lock(&ibcq->mutex);
    while (ibcq->comp_events_completed != cq->events_reported || ibcq->async_events_completed != cq->async_reported)
        pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
    pthread_mutex_unlock(&ibcq->mutex);
    if (ibcq->channel) {
        pthread_mutex_lock(&ibcq->context->mutex);
        ibcq->channel->refcnt--;
        pthread_mutex_unlock(&ibcq->context->mutex);
    }
    pthread_mutex_destroy(&cq->lock);
    pthread_mutex_destroy(&ibcq->mutex);
    pthread_cond_destroy(&ibcq->cond);
    free(cq);
    return 0;
}

/* ---- consuming ------------------------------------------------------------------------------------------------- */

static void raise_count(uint32_t *count, uint32_t to)
{
    uint32_t was = __atomic_load_n(count, __ATOMIC_RELAXED);

    while ((int32_t)(to - was) > 0 &&
           !__atomic_compare_exchange_n(count, &was, to, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

/* A completed send frees its slot and those of preceding unsignalled sends; a receive frees one slot. */
static void free_slots(struct sfp_qp *qp, const struct sf_cqe *e)
{
    if (!e->is_recv)
        raise_count(&qp->sq_done, e->wqe_index + 1);
    else if (qp->qp.srq)
        __atomic_add_fetch(&sfp_srq(qp->qp.srq)->done, 1, __ATOMIC_RELEASE);
    else
        __atomic_add_fetch(&qp->rq_done, 1, __ATOMIC_RELEASE);
}

bool sfp_take_cqe(struct sfp_cq *cq, struct sf_actor *a, struct sf_cqe *e)
{
    struct sf_cq_ring *r = cq->ring;
    uint64_t now = sfp_now(a), at;
    bool found = false;

    pthread_mutex_lock(&cq->lock);
    at = r->consumed;
    while (!found && r->slots && at != __atomic_load_n(&r->produced, __ATOMIC_ACQUIRE)) {
        const struct sf_cqe *next = &r->cqe[at % r->slots];

        if (next->t_ps > now)
            break;
        found = !next->stale;
        if (found)
            *e = *next;
        at++;
    }
    __atomic_store_n(&r->consumed, at, __ATOMIC_RELEASE);
    if (found) {
        struct sfp_qp *qp = sfp_qp_by_handle(e->qp_handle);

        if (qp)
            free_slots(qp, e);
    }
    pthread_mutex_unlock(&cq->lock);
    return found;
}

void sfp_purge_cq(struct sfp_cq *cq, struct sfp_qp *qp)
{
    struct sf_cq_ring *r = cq->ring;

    pthread_mutex_lock(&cq->lock);
    for (uint64_t at = r->consumed; r->slots && at != __atomic_load_n(&r->produced, __ATOMIC_ACQUIRE); at++) {
        struct sf_cqe *e = &r->cqe[at % r->slots];

        if (e->qp_handle == qp->qp.handle && !e->stale) {
            e->stale = 1;
            free_slots(qp, e);
        }
    }
    pthread_mutex_unlock(&cq->lock);
}

bool sfp_idle(struct sf_actor *a)
{
    return sfp_wait(a, SF_ACTOR_IDLE, 0) >= 0;
}

/* The engine has nothing to do: this thread waits for data through memory shared with others. */
static bool free_run(void)
{
    const struct sf_arena *ar = sfp_proc.arena;

    if (!__atomic_load_n(&ar->free_run, __ATOMIC_ACQUIRE) ||
        __atomic_load_n(&ar->cmd_head, __ATOMIC_RELAXED) != __atomic_load_n(&ar->cmd_tail, __ATOMIC_RELAXED))
        return false;
    SFP_REAL(sched_yield)();
    return true;
}

/*
 * A thread that has taken a completion or returned from a wait polls once more to confirm an empty queue, and only then
 * releases the lock held while polling, or writes to a descriptor. While another thread waits for a lock or a
 * descriptor, perhaps for this thread, a few empty polls return as on hardware. They take no virtual time, because the
 * other thread's wait at that moment may be luck.
 */
#define SPARE_POLLS 4u /* a program may look at several queues */

static _Thread_local struct {
    uint32_t stops; /* the actor's count when it last had none to spare */
    uint32_t left;
    bool ready;           /* the awaited event was there; */
    uint32_t ready_stops; /* stops at the last such grant: one grant per stop, or the thread would never rest */
} spare;

void sfp_need_not_wait(void)
{
    spare.ready = true;
}

static bool poll_to_spare(const struct sf_actor *a)
{
    if (spare.stops != a->stops) {
        spare.stops = a->stops;
        spare.left = SPARE_POLLS;
    } else if (spare.ready && spare.ready_stops != a->stops) {
        spare.ready_stops = a->stops;
        spare.left = SPARE_POLLS;
    }
    spare.ready = false;
    if (!spare.left || !__atomic_load_n(&sfp_proc.waiters, __ATOMIC_RELAXED))
        return false;
    spare.left--;
    return true;
}

/* The empty poll becomes a wait: no reason to poll again by itself. */
static bool idle(struct sf_actor *a)
{
    bool ok = sfp_idle(a);

    spare.stops = a->stops;
    return ok;
}

static void fill_wc(struct ibv_wc *wc, const struct sf_cqe *e)
{
    *wc = (struct ibv_wc){
        .wr_id = e->wr_id,
        .status = (enum ibv_wc_status)e->status,
        .opcode = (enum ibv_wc_opcode)e->opcode,
        .byte_len = e->byte_len,
        .imm_data = e->imm,
        .qp_num = e->qp_num,
        .src_qp = e->src_qp,
        .wc_flags = e->wc_flags,
        .pkey_index = e->pkey_index,
        .slid = e->slid,
        .sl = e->sl,
        .dlid_path_bits = e->dlid_path_bits,
    };
}

int sfp_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
    struct sfp_cq *cq = sfp_cq(ibcq);
    struct sf_actor *a;
    struct sf_cqe e;
    int got = 0;

    if (cq->generation != sfp_generation || !(a = sfp_enter()))
        return -1;
    if (n <= 0)
        return 0;
    for (int look = 0; look < 2 && !got; look++) {
        while (got < n && sfp_take_cqe(cq, a, &e))
            fill_wc(&wc[got++], &e);
        if (got || look)
            break;
        if (sfp_news_elsewhere(cq, a))
            break;
        if (free_run() || poll_to_spare(a))
            return 0;
        if (!idle(a))
            return -1;
    }
    if (got)
        spare.left = SPARE_POLLS;
    sfp_spend(a, got ? sfp_proc.welcome.poll_ps : sfp_proc.welcome.poll_empty_ps);
    return got;
}

int sfp_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
    struct sf_actor *a;

    if (sfp_cq(ibcq)->generation != sfp_generation)
        return EIO;
    a = sfp_enter();
    return a ? sfp_post_simple(a, SF_CMD_REQ_NOTIFY, ibcq->handle, solicited_only ? 1 : 0) : errno;
}

/* ---- extended queues ------------------------------------------------------------------------------------------- */

static struct sfp_cq *cq_of_ex(struct ibv_cq_ex *ex)
{
    return sfp_container(ex, struct sfp_cq, ex);
}

static int next_poll(struct ibv_cq_ex *ex)
{
    struct sfp_cq *cq = cq_of_ex(ex);
    struct sf_actor *a = sfp_enter();

    if (!a)
        return errno;
    if (!sfp_take_cqe(cq, a, &cq->now))
        return ENOENT;
    ex->wr_id = cq->now.wr_id;
    ex->status = (enum ibv_wc_status)cq->now.status;
    sfp_spend(a, sfp_proc.welcome.poll_ps);
    return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct sfp_cq *cq = cq_of_ex(ex);
    struct sf_actor *a;
    int err;

    if (attr->comp_mask)
        return EINVAL;
    if (cq->generation != sfp_generation)
        return EIO;
    err = next_poll(ex);
    if (!err)
        spare.left = SPARE_POLLS;
    if (err != ENOENT)
        return err;
    a = sfp_enter();
    if (!a)
        return errno;
    if (!sfp_news_elsewhere(cq, a)) {
        if (free_run() || poll_to_spare(a))
            return ENOENT;
        if (!idle(a))
            return EIO;
        err = next_poll(ex);
    }
    if (err == ENOENT)
        sfp_spend(a, sfp_proc.welcome.poll_empty_ps);
    return err;
}

static void end_poll(struct ibv_cq_ex *ex)
{
}

#define READER(type, name, value)                                                                                      \
    static type read_##name(struct ibv_cq_ex *ex)                                                                      \
    {                                                                                                                  \
        const struct sf_cqe *e = &cq_of_ex(ex)->now;                                                                   \
        return value;                                                                                                  \
    }

READER(enum ibv_wc_opcode, opcode, (enum ibv_wc_opcode)e->opcode)
READER(uint32_t, byte_len, e->byte_len)
READER(__be32, imm_data, e->imm)
READER(uint32_t, qp_num, e->qp_num)
READER(uint32_t, src_qp, e->src_qp)
READER(unsigned int, wc_flags, e->wc_flags)
READER(uint32_t, slid, e->slid)
READER(uint8_t, sl, e->sl)
READER(uint8_t, dlid_path_bits, e->dlid_path_bits)

READER(uint64_t, completion_ts, e->t_ps / 1000)
READER(uint64_t, completion_wallclock_ns, sfp_proc.welcome.epoch_ns + e->t_ps / 1000)

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
    return 0;
}

struct ibv_cq_ex *sfp_create_cq_ex(struct ibv_context *c, struct ibv_cq_init_attr_ex *attr)
{
    const uint64_t readable =
        IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
    struct sfp_cq *cq;

    if ((attr->wc_flags & ~readable) ||
        (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) ||
        (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
         attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (!attr->cqe || attr->comp_vector >= (uint32_t)c->num_comp_vectors) {
        errno = EINVAL;
        return NULL;
    }
    cq = create_cq(c, attr->cqe, attr->cq_context, attr->channel);
    if (!cq)
        return NULL;
    cq->ex.start_poll = start_poll;
    cq->ex.next_poll = next_poll;
    cq->ex.end_poll = end_poll;
    cq->ex.read_opcode = read_opcode;
    cq->ex.read_vendor_err = read_vendor_err;
    cq->ex.read_byte_len = read_byte_len;
    cq->ex.read_imm_data = read_imm_data;
    cq->ex.read_qp_num = read_qp_num;
    cq->ex.read_src_qp = read_src_qp;
    cq->ex.read_wc_flags = read_wc_flags;
    cq->ex.read_slid = read_slid;
    cq->ex.read_sl = read_sl;
    cq->ex.read_dlid_path_bits = read_dlid_path_bits;
    cq->ex.read_completion_ts = read_completion_ts;
    cq->ex.read_completion_wallclock_ns = read_completion_wallclock_ns;
    return &cq->ex;
}
