/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: the specification's 10.2.6 and 11.4.2; extended ones as ibv_create_cq_ex(3) has them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "tests/verbs/suite.h"

static bool readable(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static void take_event(struct ibv_comp_channel *ch, struct ibv_cq *wanted)
{
    struct ibv_cq *cq;
    void *context;

    CHECK(readable(ch->fd, 5000), "no completion event");
    CHECK(!ibv_get_cq_event(ch, &cq, &context), "%s", strerror(errno));
    CHECK(cq == wanted, "of another queue");
    ibv_ack_cq_events(cq, 1);
}

static struct ibv_comp_channel *channel(struct side *s)
{
    struct ibv_comp_channel *ch = ibv_create_comp_channel(s->ctx);

    CHECK(ch, "%s", strerror(errno));
    return ch;
}

/* Two ends of this process. */
static void pair(struct side *s, struct end *a, struct end *b, const struct end_options *o)
{
    end_make(a, s, o);
    end_make(b, s, o);
    end_loop(a, b);
}

static void overrun(struct side *s)
{
    struct end_options o = {.cqe = 4, .send_wr = 200};
    struct ibv_async_event ev;
    struct end a, b;
    struct ibv_wc wc[256];
    int n;

    pair(s, &a, &b, &o);
    n = a.cq->cqe + 8;
    SKIP_UNLESS(n < 190, "the smallest queue has %d entries", a.cq->cqe);
    for (int i = 0; i < n; i++)
        send_post(&a, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 8);
    ev = event_wait(s, IBV_EVENT_CQ_ERR);
    CHECK(ev.element.cq == a.cq, "the event is about something else");
    ibv_ack_async_event(&ev);
    n = ibv_poll_cq(a.cq, 256, wc);
    CHECK(n <= a.cq->cqe, "%d completions in a queue of %d", n, a.cq->cqe);
    for (int i = 0; i < n; i++)
        CHECK(wc[i].wr_id == (uint64_t)i && !wc[i].status, "completion %d: request %d, %s", i, (int)wc[i].wr_id,
              ibv_wc_status_str(wc[i].status));
}

/* As many as fit are not too many. */
static void just_full(struct side *s)
{
    struct end_options o = {.cqe = 4, .send_wr = 200};
    struct ibv_async_event ev;
    struct end a, b;

    pair(s, &a, &b, &o);
    SKIP_UNLESS(a.cq->cqe < 190, "the smallest queue has %d entries", a.cq->cqe);
    CHECK(a.cq->cqe >= 4, "%d entries", a.cq->cqe);
    for (int i = 0; i < a.cq->cqe; i++)
        send_post(&a, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 8);
    CHECK(!event_comes(s, IBV_EVENT_CQ_ERR, 50, &ev), "a queue that is just full is not overrun");
    for (int i = 0; i < a.cq->cqe; i++)
        wc_wait(a.cq, (uint64_t)i, IBV_WC_SUCCESS, "one of the full queue");
}

static void resized(struct side *s)
{
    struct end_options o = {.cqe = 16};
    struct end a, b;
    int err;

    pair(s, &a, &b, &o);
    for (uint64_t i = 0; i < 10; i++)
        send_post(&a, IBV_WR_RDMA_WRITE, i, 0, 8);
    sleep_ms(20);
    err = ibv_resize_cq(a.cq, 200);
    SKIP_IF_UNSUPPORTED(err, "resizing");
    CHECK(!err, "to 200: %s", strerror(err));
    CHECK(a.cq->cqe >= 200, "now %d", a.cq->cqe);
    CHECK(ibv_resize_cq(a.cq, 2), "smaller than what is in it");
    CHECK(ibv_resize_cq(a.cq, s->attr.max_cqe + 1), "larger than the device's limit");
    for (uint64_t i = 0; i < 10; i++)
        wc_wait(a.cq, i, IBV_WC_SUCCESS, "kept through the change");
    CHECK(!ibv_create_cq(s->ctx, s->attr.max_cqe + 1, NULL, NULL, 0), "too large");
    CHECK(!ibv_create_cq(s->ctx, 0, NULL, NULL, 0), "with no entry");
    CHECK(!ibv_create_cq(s->ctx, 1, NULL, NULL, s->ctx->num_comp_vectors), "with a vector that is not there");
}

/* Armed once: one event; not armed: none; completions already present do not count. */
static void arming(struct side *s)
{
    struct end_options o = {.channel = channel(s)};
    struct end a, b;

    pair(s, &a, &b, &o);
    send_post(&a, IBV_WR_RDMA_WRITE, 1, 0, 8);
    EXPECT(a.cq, 1, IBV_WC_SUCCESS);
    CHECK(!readable(o.channel->fd, 10), "an event without arming");
    CHECK(!ibv_req_notify_cq(a.cq, 0), "arm");
    CHECK(!readable(o.channel->fd, 10), "an event for what was there before");
    send_post(&a, IBV_WR_RDMA_WRITE, 2, 0, 8);
    take_event(o.channel, a.cq);
    EXPECT(a.cq, 2, IBV_WC_SUCCESS);
    send_post(&a, IBV_WR_RDMA_WRITE, 3, 0, 8);
    EXPECT(a.cq, 3, IBV_WC_SUCCESS);
    CHECK(!readable(o.channel->fd, 10), "a second event");
}

/* Armed for solicited completions only: messages so marked, and errors. */
static void solicited(struct side *s)
{
    struct end_options o = {.channel = channel(s)};
    struct request r;
    struct end a, b;

    pair(s, &a, &b, &o);
    for (uint64_t i = 0; i < 3; i++)
        recv_post(&b, i, 0, 64);
    CHECK(!ibv_req_notify_cq(b.cq, 1), "arm");
    send_post(&a, IBV_WR_SEND, 0, 0, 8);
    EXPECT(b.cq, 0, IBV_WC_SUCCESS);
    CHECK(!readable(o.channel->fd, 10), "an event for a message that is not solicited");
    request_make(&r, &a, IBV_WR_SEND, 1, 0, 8);
    r.wr.send_flags = IBV_SEND_SOLICITED;
    CHECK(!request_post(&a, &r), "post");
    take_event(o.channel, b.cq);
    EXPECT(b.cq, 1, IBV_WC_SUCCESS);
    CHECK(!ibv_req_notify_cq(b.cq, 1), "arm");
    CHECK(!end_modify(&b, IBV_QPS_ERR), "to ERR");
    take_event(o.channel, b.cq);
    EXPECT(b.cq, 2, IBV_WC_WR_FLUSH_ERR);
}

/* Two queues of one channel, without blocking. */
static void one_channel(struct side *s)
{
    struct ibv_comp_channel *ch = channel(s);
    struct end_options o = {.channel = ch};
    struct ibv_cq *cq;
    struct end a, b;
    void *context;

    pair(s, &a, &b, &o);
    CHECK(!fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK), "fcntl");
    CHECK(ibv_get_cq_event(ch, &cq, &context) == -1 && errno == EAGAIN, "an empty channel: errno %d", errno);
    CHECK(!ibv_req_notify_cq(a.cq, 0) && !ibv_req_notify_cq(b.cq, 0), "arm");
    recv_post(&b, 1, 0, 64);
    send_post(&a, IBV_WR_SEND, 1, 0, 8);
    for (int seen = 0, got = 0; got < 2; got++) {
        CHECK(readable(ch->fd, 5000), "event %d", got);
        CHECK(!ibv_get_cq_event(ch, &cq, &context), "event %d: %s", got, strerror(errno));
        CHECK(cq == a.cq || cq == b.cq, "of another queue");
        CHECK(!(seen & (cq == a.cq ? 1 : 2)), "the same twice");
        seen |= cq == a.cq ? 1 : 2;
        ibv_ack_cq_events(cq, 1);
    }
    CHECK_IS(ibv_destroy_comp_channel(ch), EBUSY, "a channel with queues");
    CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp) && !ibv_destroy_cq(a.cq) && !ibv_destroy_cq(b.cq), "destroy");
    CHECK(!ibv_destroy_comp_channel(ch), "%s", strerror(errno));
}

/* There are no more events than completions. */
static void polling_limits(struct side *s)
{
    struct end a, b;
    struct ibv_wc wc[8];

    pair(s, &a, &b, NULL);
    CHECK_IS(ibv_poll_cq(a.cq, 8, wc), 0, "of an empty queue");
    for (uint64_t i = 0; i < 6; i++)
        send_post(&a, IBV_WR_RDMA_WRITE, i, 0, 8);
    sleep_ms(20);
    CHECK_IS(ibv_poll_cq(a.cq, 0, wc), 0, "of no completion");
    CHECK_IS(ibv_poll_cq(a.cq, 4, wc), 4, "of four");
    CHECK_IS(ibv_poll_cq(a.cq, 8, wc), 2, "of what is left");
    CHECK_IS(wc[1].wr_id, 5, "the last");
    CHECK_IS(ibv_poll_cq(a.cq, 8, wc), 0, "of nothing");
}

/* A new queue is empty, also in the memory of a destroyed queue with completions left. */
static void former_place(struct side *s)
{
    struct end a, b;

    for (unsigned round = 0; round < 3; round++) {
        pair(s, &a, &b, NULL);
        wc_none(a.cq, 1);
        for (uint64_t i = 0; i < 6; i++)
            send_post(&a, IBV_WR_RDMA_WRITE, i, 0, 8);
        EXPECT(a.cq, 0, IBV_WC_SUCCESS);
        EXPECT(a.cq, 1, IBV_WC_SUCCESS);
        sleep_ms(20);
        CHECK(!ibv_destroy_qp(a.qp) && !ibv_destroy_qp(b.qp) && !ibv_destroy_cq(a.cq) && !ibv_destroy_cq(b.cq),
              "destroy");
    }
}

/* ---- extended queues ------------------------------------------------------------------------------------------- */

static struct ibv_cq_ex *make_ex(struct side *s, uint64_t flags, uint32_t create)
{
    struct ibv_cq_init_attr_ex init = {
        .cqe = 64, .wc_flags = flags, .comp_mask = create ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0, .flags = create};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(s->ctx, &init);

    if (!cq)
        SKIP_IF_UNSUPPORTED(errno, "extended queue");
    CHECK(cq, "%s", strerror(errno));
    return cq;
}

/* The first completion. */
static void start(struct ibv_cq_ex *cq)
{
    struct ibv_poll_cq_attr attr = {0};
    int err = ENOENT;

    for (int i = 0; i < 50000 && (err = ibv_start_poll(cq, &attr)) == ENOENT; i++)
        if (i % 16 == 15)
            sleep_ms(1);
    CHECK(!err, "ibv_start_poll: %d", err);
}

static void extended(struct side *s)
{
    struct ibv_poll_cq_attr none = {0}, bad = {.comp_mask = 1u << 31};
    struct ibv_cq_ex *cq = make_ex(s, IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
    struct end_options o = {.cq = ibv_cq_ex_to_cq(cq)};
    struct request r;
    struct end a, b;

    end_make(&a, s, NULL);
    end_make(&b, s, &o);
    end_loop(&a, &b);
    CHECK_IS(ibv_start_poll(cq, &none), ENOENT, "an empty queue");
    CHECK_IS(ibv_start_poll(cq, &bad), EINVAL, "an unknown option");
    for (uint64_t i = 0; i < 3; i++)
        recv_post(&b, 30 + i, 0, 64);
    for (uint64_t i = 0; i < 2; i++) {
        request_make(&r, &a, i ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM, i, 0, 16 + (uint32_t)i);
        r.wr.imm_data = htobe32(0x1234);
        CHECK(!request_post(&a, &r), "post");
        wc_wait(a.cq, i, IBV_WC_SUCCESS, "a send");
    }
    sleep_ms(5);
    start(cq);
    CHECK_IS(cq->wr_id, 30, "wr_id");
    CHECK_IS(cq->status, IBV_WC_SUCCESS, "status");
    CHECK_IS(ibv_wc_read_opcode(cq), IBV_WC_RECV, "opcode");
    CHECK_IS(ibv_wc_read_byte_len(cq), 16, "byte_len");
    CHECK_IS(ibv_wc_read_qp_num(cq), b.qp->qp_num, "qp_num");
    CHECK(ibv_wc_read_wc_flags(cq) & IBV_WC_WITH_IMM, "flags");
    CHECK_IS(be32toh(ibv_wc_read_imm_data(cq)), 0x1234, "immediate");
    CHECK_IS(ibv_next_poll(cq), 0, "the next");
    CHECK_IS(cq->wr_id, 31, "wr_id");
    CHECK_IS(ibv_wc_read_byte_len(cq), 17, "byte_len");
    CHECK_IS(ibv_next_poll(cq), ENOENT, "a third");
    ibv_end_poll(cq);
    CHECK(!end_modify(&b, IBV_QPS_ERR), "to ERR");
    start(cq);
    CHECK_IS(cq->wr_id, 32, "wr_id");
    CHECK_IS(cq->status, IBV_WC_WR_FLUSH_ERR, "status");
    ibv_wc_read_vendor_err(cq);
    ibv_end_poll(cq);
}

/* Time stamps of the device's clock: in order, and between two looks at that clock. */
static void timestamps(struct side *s)
{
    struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;
    struct ibv_device_attr_ex ex;
    struct end_options o = {0};
    struct ibv_cq_ex *cq;
    struct end a, b;
    uint64_t last = 0;

    SKIP_UNLESS(!ibv_query_device_ex(s->ctx, NULL, &ex) && ex.completion_timestamp_mask,
                "no time stamps on this device");
    cq = make_ex(s, IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, 0);
    o.cq = ibv_cq_ex_to_cq(cq);
    pair(s, &a, &b, &o);
    CHECK(!ibv_query_rt_values_ex(s->ctx, &before), "clock");
    for (uint64_t i = 0; i < 4; i++) {
        send_post(&a, IBV_WR_RDMA_WRITE, i, 0, 2048);
        start(cq);
        CHECK_IS(cq->wr_id, i, "wr_id");
        CHECK(ibv_wc_read_completion_ts(cq) > last, "not later than the one before");
        last = ibv_wc_read_completion_ts(cq);
        ibv_end_poll(cq);
    }
    CHECK(!ibv_query_rt_values_ex(s->ctx, &after), "clock");
    CHECK((uint64_t)before.raw_clock.tv_nsec < last && last <= (uint64_t)after.raw_clock.tv_nsec, "%lld, %lld, %lld",
          (long long)before.raw_clock.tv_nsec, (long long)last, (long long)after.raw_clock.tv_nsec);
}

static void moderation(struct side *s)
{
    struct ibv_modify_cq_attr m = {.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {.cq_count = 4, .cq_period = 20000}};
    struct end_options o = {.channel = channel(s)};
    struct ibv_device_attr_ex ex;
    struct end a, b;

    SKIP_UNLESS(!ibv_query_device_ex(s->ctx, NULL, &ex) && ex.cq_mod_caps.max_cq_count >= 4 &&
                    ex.cq_mod_caps.max_cq_period >= 20000,
                "no moderation on this device");
    pair(s, &a, &b, &o);
    CHECK(!ibv_modify_cq(a.cq, &m), "modify");
    CHECK(!ibv_req_notify_cq(a.cq, 0), "arm");
    send_post(&a, IBV_WR_RDMA_WRITE, 1, 0, 8);
    CHECK(!readable(o.channel->fd, 5), "an event after one of four");
    for (uint64_t i = 2; i <= 4; i++)
        send_post(&a, IBV_WR_RDMA_WRITE, i, 0, 8);
    take_event(o.channel, a.cq);
    for (uint64_t i = 1; i <= 4; i++)
        wc_wait(a.cq, i, IBV_WC_SUCCESS, "a write");
    CHECK(!ibv_req_notify_cq(a.cq, 0), "arm");
    send_post(&a, IBV_WR_RDMA_WRITE, 5, 0, 8);
    take_event(o.channel, a.cq); /* after the time */
}

static const struct test_case cases[] = {
    {"too many completions", overrun, false},
    {"just full", just_full, false},
    {"sizes and limits", resized, false},
    {"arming", arming, false},
    {"solicited events", solicited, false},
    {"two queues of one channel", one_channel, false},
    {"how many a poll gives", polling_limits, false},
    {"a new queue is empty", former_place, false},
    {"extended queues", extended, false},
    {"time stamps", timestamps, false},
    {"moderation", moderation, false},
};
const struct theme theme_cq = {"cq", cases, COUNT(cases)};
