/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events: the specification's 11.6.3; how they are read and acknowledged: ibv_get_async_event(3). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "tests/verbs/suite.h"

static void *destroy(void *arg)
{
    struct end *e = arg;
    int err = ibv_destroy_qp(e->qp);

    __atomic_store_n(&e->qp, NULL, __ATOMIC_RELEASE);
    return (void *)(intptr_t)err;
}

/* Destroying a queue pair waits until its events have been acknowledged. */
static void destroy_waits_for_acks(struct side *s)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct end_options o = {0};
    struct ibv_async_event ev;
    pthread_t thread;
    struct end e;
    void *rc;

    SKIP_UNLESS(s->attr.max_srq > 0 && (o.srq = ibv_create_srq(s->pd, &init)),
                "no shared receive queues on this device");
    end_make(&e, s, &o);
    e.remote = e.local;
    end_connect(&e);
    CHECK(!end_modify(&e, IBV_QPS_ERR), "to ERR");
    ev = event_wait(s, IBV_EVENT_QP_LAST_WQE_REACHED);
    CHECK(!pthread_create(&thread, NULL, destroy, &e), "thread");
    sleep_ms(50);
    CHECK(__atomic_load_n(&e.qp, __ATOMIC_ACQUIRE), "destroyed before its event was acknowledged");
    ibv_ack_async_event(&ev);
    CHECK(!pthread_join(thread, &rc) && !rc, "%s", strerror((int)(intptr_t)rc));
}

/* An event that nobody read goes with its queue pair. */
static void unread_events_go(struct side *s)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct end_options o = {0};
    struct ibv_async_event ev;
    struct end e;

    SKIP_UNLESS(s->attr.max_srq > 0 && (o.srq = ibv_create_srq(s->pd, &init)),
                "no shared receive queues on this device");
    end_make(&e, s, &o);
    e.remote = e.local;
    end_connect(&e);
    CHECK(!end_modify(&e, IBV_QPS_ERR), "to ERR");
    sleep_ms(20);
    CHECK(!ibv_destroy_qp(e.qp), "destroy");
    CHECK(!event_comes(s, IBV_EVENT_QP_LAST_WQE_REACHED, 20, &ev), "an event of a queue pair that is gone");
}

static void nothing_to_read(struct side *s)
{
    struct pollfd p = {.fd = s->ctx->async_fd, .events = POLLIN};
    struct ibv_async_event ev;

    CHECK(!fcntl(s->ctx->async_fd, F_SETFL, fcntl(s->ctx->async_fd, F_GETFL) | O_NONBLOCK), "fcntl");
    while (poll(&p, 1, 10) == 1) { /* pending events of the port */
        CHECK(!ibv_get_async_event(s->ctx, &ev), "%s", strerror(errno));
        ibv_ack_async_event(&ev);
    }
    CHECK(ibv_get_async_event(s->ctx, &ev) == -1 && errno == EAGAIN, "errno %d", errno);
}

/*
 * The first packet in RTR reports that communication is established (11.6.3.1); a device without this event is skipped.
 */
static void communication_established(struct side *s)
{
    struct ibv_async_event ev;
    struct end e;

    end_make(&e, s, NULL);
    end_exchange(&e);
    for (enum ibv_qp_state to = IBV_QPS_INIT; to <= (s->index == FIRST ? IBV_QPS_RTS : IBV_QPS_RTR); to++)
        CHECK(!end_modify(&e, to), "to %d", (int)to);
    if (s->index == SECOND)
        recv_post(&e, 1, 0, 64);
    sync_sides(s);
    if (s->index == FIRST)
        send_post(&e, IBV_WR_SEND, 1, 0, 64);
    EXPECT(e.cq, 1, IBV_WC_SUCCESS);
    sync_sides(s);
    if (s->index == SECOND) {
        CHECK(event_comes(s, IBV_EVENT_COMM_EST, 500, &ev), "no event");
        CHECK(ev.element.qp == e.qp, "the event is about something else");
        ibv_ack_async_event(&ev);
    }
    sync_sides(s);
}

static const struct test_case cases[] = {
    {"destroying waits for acknowledgements", destroy_waits_for_acks, false},
    {"unread events go with their object", unread_events_go, false},
    {"nothing to read", nothing_to_read, false},
    {"communication established", communication_established, true},
};
const struct theme theme_events = {"events", cases, COUNT(cases)};
