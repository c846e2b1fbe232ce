/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels and asynchronous events. Both are pipes written by the engine, so programs may poll them together
 * with other descriptors. Every record carries the virtual time of its event, and the reader's clock catches up with
 * this time. A blocking read waits as an idle actor, so the engine resumes the reader at the event's time.
 */
#include "simfab/preload/verbs_events.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/call.h"
#include "simfab/preload/marks.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/verbs.h"
#include "simfab/preload/verbs_registry.h"

struct channel {
    struct ibv_comp_channel chan;
    uint32_t handle;
    unsigned generation;
};

uint32_t sfp_channel_handle(const struct ibv_comp_channel *chan)
{
    return sfp_container(chan, const struct channel, chan)->handle;
}

SFP_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
    struct channel *ch = calloc(1, sizeof *ch);
    int fd = -1, err;

    if (!ch)
        return NULL;
    err = sfp_call(SF_OP_CREATE_CHANNEL, &sfp_context(context)->handle, sizeof(uint32_t), &ch->handle,
                   sizeof ch->handle, NULL, &fd);
    if (!err && fd < 0)
        err = EPROTO;
    if (err) {
        free(ch);
        errno = err;
        return NULL;
    }
    ch->generation = sfp_generation;
    ch->chan.context = context;
    ch->chan.fd = fd;
    sfp_mark_fd(fd, true);
    return &ch->chan;
}

SFP_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *chan)
{
    struct channel *ch = sfp_container(chan, struct channel, chan);
    bool busy;

    pthread_mutex_lock(&chan->context->mutex);
    busy = chan->refcnt > 0;
    pthread_mutex_unlock(&chan->context->mutex);
    if (busy)
        return EBUSY;
    if (ch->generation == sfp_generation)
        sfp_call(SF_OP_DESTROY_CHANNEL, &ch->handle, sizeof ch->handle, NULL, 0, NULL, NULL);
    sfp_mark_fd(chan->fd, false);
    sfp_sys_close(chan->fd);
    free(ch);
    return 0;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/*
 * True if a read continues after a signal: all handlers have SA_RESTART. The signal's number is unknown here. Signals
 * of faults do not count, because a waiting thread has none.
 */
bool sfp_calls_go_on(void)
{
    for (int sig = 1; sig <= SIGRTMAX; sig++) {
        struct sigaction act;

        if (sig == SIGSEGV || sig == SIGBUS || sig == SIGFPE || sig == SIGILL || sig == SIGTRAP || sig == SIGABRT)
            continue;
        if (!sigaction(sig, NULL, &act) && act.sa_handler != SIG_DFL && act.sa_handler != SIG_IGN &&
            !(act.sa_flags & SA_RESTART))
            return false;
    }
    return true;
}

/* Wait until fd has something, or until a signal ends the wait. A closed pipe counts as something. */
static int await(struct sf_actor *a, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    for (;;) {
        int n = sfp_sys_poll(&p, 1, 0), reason;

        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -1;
        reason = sfp_wait(a, SF_ACTOR_IDLE, 0);
        if (reason < 0) /* the pipe's other end is closed too: the next look sees it */
            return sfp_sys_poll(&p, 1, 1000) > 0 ? 0 : -1;
        if (reason == SFP_WAKE_SIGNAL && sfp_sys_poll(&p, 1, 0) <= 0 && !sfp_calls_go_on()) {
            errno = EINTR;
            return -1;
        }
    }
}

int sfp_read_record(int fd, void *record, size_t bytes)
{
    struct sf_actor *a = sfp_enter();
    int flags = (int)sfp_syscall(SYS_fcntl, fd, F_GETFL);
    ssize_t n;

    if (flags < 0 || (a && !(flags & O_NONBLOCK) && await(a, fd)))
        return -1;
    do
        n = sfp_sys_read(fd, record, bytes); /* pipes keep records whole: the engine writes less than PIPE_BUF */
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)bytes)
        return 0;
    if (n >= 0)
        errno = n ? EPROTO : EIO;
    return -1;
}

static void catch_up_to(uint64_t t_ps)
{
    struct sf_actor *a = sfp_enter();

    if (a && sfp_now(a) < t_ps)
        sfp_spend(a, t_ps - sfp_now(a));
}

SFP_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct sf_cq_event ev;
    struct sfp_cq *c;

    do { /* an event of a queue that was destroyed meanwhile has no receiver */
        if (sfp_read_record(channel->fd, &ev, sizeof ev))
            return -1;
        catch_up_to(ev.t_ps);
        c = sfp_cq_of_event(ev.cookie, false);
    } while (!c);
    *cq = &c->cq;
    *cq_context = c->cq.cq_context;
    return 0;
}

SFP_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += nevents;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

/* Finds the object of an event; false if the object no longer exists. */
static bool resolve(const struct sf_async_event *ev, struct ibv_async_event *out)
{
    struct sfp_qp *qp;
    struct sfp_cq *cq;
    struct sfp_srq *srq;

    switch (ev->event) {
    case IBV_EVENT_CQ_ERR:
        if ((cq = sfp_cq_of_event(ev->cookie, true)))
            out->element.cq = &cq->cq;
        return cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        if ((qp = sfp_qp_of_event(ev->cookie)))
            out->element.qp = &qp->qp;
        return qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        if ((srq = sfp_srq_of_event(ev->cookie)))
            out->element.srq = &srq->srq;
        return srq;
    default:
        out->element.port_num = (int)ev->port;
        return true;
    }
}

SFP_EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct sfp_context *c = sfp_context(context);
    struct sf_async_event ev;

    do {
        if (sfp_read_record(context->async_fd, &ev, sizeof ev)) {
            if (errno != EIO || c->fatal_told)
                return -1;
            c->fatal_told = true; /* the engine is gone: for the program its HCA died */
            ev = (struct sf_async_event){.event = IBV_EVENT_DEVICE_FATAL};
        }
        catch_up_to(ev.t_ps);
        event->event_type = (enum ibv_event_type)ev.event;
    } while (!resolve(&ev, event));
    return 0;
}

SFP_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR: {
        struct ibv_cq *cq = event->element.cq;

        pthread_mutex_lock(&cq->mutex);
        cq->async_events_completed++;
        pthread_cond_signal(&cq->cond);
        pthread_mutex_unlock(&cq->mutex);
        return;
    }
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: {
        struct ibv_qp *qp = event->element.qp;

        pthread_mutex_lock(&qp->mutex);
        qp->events_completed++;
        pthread_cond_signal(&qp->cond);
        pthread_mutex_unlock(&qp->mutex);
        return;
    }
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: {
        struct ibv_srq *srq = event->element.srq;

        pthread_mutex_lock(&srq->mutex);
        srq->events_completed++;
        pthread_cond_signal(&srq->cond);
        pthread_mutex_unlock(&srq->mutex);
        return;
    }
    default:
        return;
    }
}
