/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: the specification's 10.2.9 and 11.5.2.4. */
#include <errno.h>
#include <string.h>

#include "tests/verbs/suite.h"

static struct ibv_srq *make_srq(struct side *s, uint32_t wr)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = wr, .max_sge = 2}};
    struct ibv_srq *srq;

    SKIP_UNLESS(s->attr.max_srq > 0, "no shared receive queues on this device");
    srq = ibv_create_srq(s->pd, &init);
    CHECK(srq, "%s", strerror(errno));
    CHECK(init.attr.max_wr >= wr && init.attr.max_sge >= 2, "got %u of %u", init.attr.max_wr, init.attr.max_sge);
    return srq;
}

/* The first side sends to two queue pairs of the second, which take their requests from one queue in order. */
static void shared(struct side *s)
{
    struct ibv_srq *srq = s->index == SECOND ? make_srq(s, 16) : NULL;
    struct end_options o = {.srq = srq};
    struct end a, b;

    end_open(&a, s, &o);
    end_open(&b, s, &o);
    for (uint64_t i = 0; s->index == SECOND && i < 8; i++)
        CHECK(!srq_try(&a, srq, i, i * 64, 64), "post");
    sync_sides(s);
    for (uint64_t i = 0; i < 8; i++) {
        struct end *e = i % 3 == 2 ? &b : &a;
        struct ibv_wc wc;

        if (s->index == FIRST)
            send_post(e, IBV_WR_SEND, i, 0, 40);
        wc = wc_wait(e->cq, i, IBV_WC_SUCCESS, "in order");
        CHECK_IS(wc.qp_num, e->qp->qp_num, "qp_num");
        sync_sides(s);
    }
}

static void limit_event(struct side *s)
{
    struct ibv_srq *srq = s->index == SECOND ? make_srq(s, 16) : NULL;
    struct end_options o = {.srq = srq};
    struct ibv_srq_attr attr = {.srq_limit = 3};
    struct ibv_async_event ev;
    struct end e;

    end_open(&e, s, &o);
    if (s->index == SECOND) {
        for (uint64_t i = 0; i < 5; i++)
            CHECK(!srq_try(&e, srq, i, 0, 64), "post");
        CHECK(!ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), "%s", strerror(errno));
        CHECK(!ibv_query_srq(srq, &attr), "query");
        CHECK_IS(attr.srq_limit, 3, "the limit");
    }
    sync_sides(s);
    for (uint64_t i = 0; i < 5; i++) { /* 5 requests, then 4, 3, 2: below the limit */
        if (s->index == FIRST)
            send_post(&e, IBV_WR_SEND, i, 0, 64);
        wc_wait(e.cq, i, IBV_WC_SUCCESS, "a message");
        sync_sides(s);
        if (s->index == SECOND && i == 1)
            CHECK(!event_comes(s, IBV_EVENT_SRQ_LIMIT_REACHED, 10, &ev), "the event came at 3 of 3");
        if (s->index == SECOND && i == 2) {
            ev = event_wait(s, IBV_EVENT_SRQ_LIMIT_REACHED);
            CHECK(ev.element.srq == srq, "the event is about something else");
            ibv_ack_async_event(&ev);
            CHECK(!ibv_query_srq(srq, &attr), "query");
            CHECK_IS(attr.srq_limit, 0, "the limit after its event");
        }
        sync_sides(s);
    }
    if (s->index == SECOND)
        CHECK(!event_comes(s, IBV_EVENT_SRQ_LIMIT_REACHED, 10, &ev), "it came twice");
    sync_sides(s);
}

/* A queue pair in ERR takes no more of the queue, and says so; the queue's requests stay for others. */
static void last_request(struct side *s)
{
    struct ibv_srq *srq = make_srq(s, 16);
    struct end_options o = {.srq = srq};
    struct ibv_async_event ev;
    struct end a, b;

    end_make(&a, s, &o);
    end_make(&b, s, &o);
    end_loop(&a, &b);
    for (uint64_t i = 0; i < 2; i++)
        CHECK(!srq_try(&a, srq, 50 + i, 0, 64), "post");
    CHECK(!end_modify(&a, IBV_QPS_ERR), "to ERR");
    ev = event_wait(s, IBV_EVENT_QP_LAST_WQE_REACHED);
    CHECK(ev.element.qp == a.qp, "the event is about something else");
    ibv_ack_async_event(&ev);
    wc_none(a.cq, 2);
    CHECK(!end_modify(&a, IBV_QPS_RESET), "to RESET");
    end_connect(&a);
    CHECK(!end_modify(&b, IBV_QPS_RESET), "to RESET");
    end_connect(&b);
    send_post(&a, IBV_WR_SEND, 1, 0, 64);
    EXPECT(a.cq, 1, IBV_WC_SUCCESS);
    EXPECT(b.cq, 50, IBV_WC_SUCCESS);
}

static void full_and_resized(struct side *s)
{
    struct ibv_srq *srq = make_srq(s, 8);
    struct ibv_srq_attr attr;
    struct end e;
    uint32_t n;
    int err = 0;

    end_make(&e, s, NULL);
    CHECK(!ibv_query_srq(srq, &attr), "query");
    for (n = 0; n <= attr.max_wr + 1 && !(err = srq_try(&e, srq, n, 0, 64)); n++)
        ;
    CHECK(err == ENOMEM, "error %d after %u of %u", err, n, attr.max_wr);
    attr.srq_limit = attr.max_wr + 1;
    CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT) == EINVAL, "a limit above the size");
    if (!(s->attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
        return;
    attr.max_wr = 64;
    err = ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
    CHECK(!err, "to 64: %s", strerror(err));
    CHECK(!srq_try(&e, srq, 99, 0, 64), "the larger queue takes no more");
    attr.max_wr = 1;
    CHECK(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), "smaller than what is in it");
}

/* A message that does not fit fails its queue pair, not the queue. */
static void error_on_one(struct side *s)
{
    struct ibv_srq *srq = s->index == SECOND ? make_srq(s, 16) : NULL;
    struct end_options o = {.srq = srq};
    struct end a, b;

    end_open(&a, s, &o);
    end_open(&b, s, &o);
    if (s->index == SECOND) {
        CHECK(!srq_try(&a, srq, 1, 0, 10), "post");
        CHECK(!srq_try(&a, srq, 2, 0, 64), "post");
    }
    sync_sides(s);
    if (s->index == FIRST)
        send_post(&a, IBV_WR_SEND, 1, 0, 11);
    EXPECT(a.cq, 1, s->index == FIRST ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_LOC_LEN_ERR);
    sync_sides(s);
    if (s->index == FIRST)
        send_post(&b, IBV_WR_SEND, 2, 0, 64);
    EXPECT(b.cq, 2, IBV_WC_SUCCESS);
    sync_sides(s);
    if (s->index == SECOND)
        CHECK_IS(ibv_destroy_srq(srq), EBUSY, "destroying a queue with queue pairs");
}

static const struct test_case cases[] = {
    {"two queue pairs, one queue", shared, true},
    {"the limit's event comes once", limit_event, true},
    {"the last request of a queue pair", last_request, false},
    {"full, limits, larger, smaller", full_and_resized, false},
    {"an error on one queue pair", error_on_one, true},
};
const struct theme theme_srq = {"srq", cases, COUNT(cases)};
