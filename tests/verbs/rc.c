/* SPDX-License-Identifier: BSD-3-Clause */
/* Reliable connections without errors. The first side asks, the second answers. */
#include <errno.h>
#include <string.h>

#include "tests/verbs/suite.h"

static const uint32_t sizes[] = {0, 1, 3, 255, 256, 257, 1023, 1024, 1025, 4096, 5000, 60000};

static void sends(struct side *s)
{
    struct end e;

    end_open(&e, s, NULL);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct ibv_wc wc;

        if (s->index == SECOND) {
            memset(e.buf, 0, BUFFER);
            recv_post(&e, i, 0, BUFFER);
        }
        sync_sides(s);
        fill(s->index == FIRST ? e.buf : e.buf + BUFFER, s->index == FIRST ? sizes[i] : 0, (unsigned)i);
        if (s->index == FIRST)
            send_post(&e, IBV_WR_SEND, i, 0, sizes[i]);
        wc = wc_wait(e.cq, i, IBV_WC_SUCCESS, "of that size");
        CHECK_IS(wc.opcode, s->index == FIRST ? IBV_WC_SEND : IBV_WC_RECV, "opcode");
        CHECK_IS(wc.qp_num, e.qp->qp_num, "qp_num");
        if (s->index == SECOND) {
            CHECK_IS(wc.byte_len, sizes[i], "byte_len");
            CHECK_IS(wc.wc_flags & IBV_WC_WITH_IMM, 0, "flag of an immediate");
            CHECK(filled(e.buf, sizes[i], (unsigned)i), "%u bytes are not those sent", sizes[i]);
            CHECK(!e.buf[sizes[i]], "a byte beyond");
        }
        sync_sides(s);
    }
}

static void writes_and_reads(struct side *s)
{
    struct end e;

    end_open(&e, s, NULL);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        if (s->index == FIRST) {
            fill(e.buf, sizes[i], 40);
            send_post(&e, IBV_WR_RDMA_WRITE, i, 0, sizes[i]);
            CHECK_IS(wc_wait(e.cq, i, IBV_WC_SUCCESS, "a write").opcode, IBV_WC_RDMA_WRITE, "opcode");
            memset(e.buf, 0, sizes[i]);
            send_post(&e, IBV_WR_RDMA_READ, 100 + i, 0, sizes[i]);
            CHECK_IS(wc_wait(e.cq, 100 + i, IBV_WC_SUCCESS, "a read").opcode, IBV_WC_RDMA_READ, "opcode");
            CHECK(filled(e.buf, sizes[i], 40), "%u bytes are not those written", sizes[i]);
        }
        sync_sides(s);
        if (s->index == SECOND)
            CHECK(filled(e.buf, sizes[i], 40), "%u bytes of the writer", sizes[i]);
        sync_sides(s);
    }
    wc_none(e.cq, 0);
}

/* Immediate data, with bytes and without; a write with immediate takes a receive request and leaves its buffer. */
static void immediate(struct side *s)
{
    static const struct {
        enum ibv_wr_opcode op;
        uint32_t len;
    } rows[] = {{IBV_WR_SEND_WITH_IMM, 0},
                {IBV_WR_SEND_WITH_IMM, 3000},
                {IBV_WR_RDMA_WRITE_WITH_IMM, 0},
                {IBV_WR_RDMA_WRITE_WITH_IMM, 3000}};
    struct end e;

    end_open(&e, s, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        bool write = rows[i].op == IBV_WR_RDMA_WRITE_WITH_IMM;
        struct request r;
        struct ibv_wc wc;

        memset(e.buf, s->index == FIRST ? 7 : 0, BUFFER);
        if (s->index == SECOND)
            recv_post(&e, i, 32768, write ? 0 : 4096);
        sync_sides(s);
        if (s->index == FIRST) {
            request_make(&r, &e, rows[i].op, i, 0, rows[i].len);
            r.wr.imm_data = htobe32(0xcafe0000 + (uint32_t)i);
            CHECK(!request_post(&e, &r), "post");
        }
        wc = wc_wait(e.cq, i, IBV_WC_SUCCESS, "with immediate");
        if (s->index == SECOND) {
            CHECK_IS(wc.opcode, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, "opcode");
            CHECK(wc.wc_flags & IBV_WC_WITH_IMM, "no flag");
            CHECK_IS(be32toh(wc.imm_data), 0xcafe0000 + i, "the immediate");
            CHECK_IS(wc.byte_len, rows[i].len, "byte_len");
            CHECK_IS(rows[i].len ? e.buf[write ? 0 : 32768] : 7, 7, "the first byte");
        }
        sync_sides(s);
    }
}

static void scatter_and_gather(struct side *s)
{
    struct end e;

    end_open(&e, s, NULL);
    if (s->index == SECOND) {
        struct ibv_sge sge[3] = {{(uintptr_t)e.buf, 10, e.mr->lkey},
                                 {(uintptr_t)e.buf + 1000, 0, e.mr->lkey},
                                 {(uintptr_t)e.buf + 2000, 5000, e.mr->lkey}};
        struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 2}, *bad;

        sge[1] = sge[2];
        CHECK(!ibv_post_recv(e.qp, &wr, &bad), "post");
        sync_sides(s);
        CHECK_IS(EXPECT(e.cq, 1, IBV_WC_SUCCESS).byte_len, 3000, "byte_len");
        memmove(e.buf + 10, e.buf + 2000, 2990);
        CHECK(filled(e.buf, 3000, 9), "the bytes");
    } else {
        struct ibv_sge sge[3] = {{(uintptr_t)e.buf, 1, e.mr->lkey},
                                 {(uintptr_t)e.buf + 1, 1500, e.mr->lkey},
                                 {(uintptr_t)e.buf + 1501, 1499, e.mr->lkey}};
        struct ibv_send_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 3, .opcode = IBV_WR_SEND}, *bad;

        fill(e.buf, 3000, 9);
        sync_sides(s);
        CHECK(!ibv_post_send(e.qp, &wr, &bad), "post");
        EXPECT(e.cq, 1, IBV_WC_SUCCESS);
    }
    sync_sides(s);
}

/* Inline data may be overwritten when the call returns, and need no key. */
static void inline_data(struct side *s)
{
    struct end_options o = {.inline_data = 64};
    struct request r;
    struct end e;

    end_open(&e, s, &o);
    CHECK(e.max_inline >= 64, "%u", e.max_inline);
    if (s->index == SECOND)
        recv_post(&e, 1, 0, 64);
    sync_sides(s);
    if (s->index == FIRST) {
        fill(e.buf, 64, 3);
        request_make(&r, &e, IBV_WR_SEND, 1, 0, 64);
        r.wr.send_flags = IBV_SEND_INLINE;
        r.sge.lkey = 0xdead;
        CHECK(!request_post(&e, &r), "post");
        memset(e.buf, 0, 64);
        request_make(&r, &e, IBV_WR_SEND, 2, 0, e.max_inline + 1);
        r.wr.send_flags = IBV_SEND_INLINE;
        CHECK(request_post(&e, &r), "more than max_inline_data was taken");
    }
    EXPECT(e.cq, 1, IBV_WC_SUCCESS);
    if (s->index == SECOND)
        CHECK(filled(e.buf, 64, 3), "the bytes");
    sync_sides(s);
}

/* Unsignalled requests complete in silence; a signalled one frees their places. */
static void unsignalled(struct side *s)
{
    struct end_options o = {.unsignalled = true, .send_wr = 8};
    struct request r;
    struct end e;

    end_open(&e, s, &o);
    for (int i = 0; s->index == FIRST && i < 40; i++) {
        request_make(&r, &e, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 100);
        r.wr.send_flags = i % 8 == 7 ? IBV_SEND_SIGNALED : 0;
        CHECK(!request_post(&e, &r), "request %d", i);
        if (i % 8 == 7)
            wc_wait(e.cq, (uint64_t)i, IBV_WC_SUCCESS, "the eighth");
    }
    wc_none(e.cq, 1);
    sync_sides(s);
}

/* A full queue refuses, at the device's true limit, and names the request. */
static void full_queues(struct side *s)
{
    struct end_options o = {.unsignalled = true, .send_wr = 8, .recv_wr = 8};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    struct request r;
    struct end e;
    uint32_t n;
    int err = 0;

    end_make(&e, s, &o);
    e.remote = e.local;
    end_connect(&e);
    CHECK(!ibv_query_qp(e.qp, &a, IBV_QP_CAP, &init), "query");
    for (n = 0; n <= a.cap.max_recv_wr + 1 && !(err = recv_try(&e, n, 0, 64, e.mr->lkey)); n++)
        ;
    CHECK(err == ENOMEM, "error %d after %u of %u receive requests", err, n, a.cap.max_recv_wr);
    CHECK(n >= 8 && n <= a.cap.max_recv_wr + 1, "%u receive requests were taken", n);
    /* unsignalled requests keep their places until a signalled request completes and is polled */
    for (n = 0, err = 0; n <= a.cap.max_send_wr + 1 && !err; n++) {
        request_make(&r, &e, IBV_WR_RDMA_WRITE, n, 0, 16);
        err = request_post(&e, &r);
    }
    CHECK(err == ENOMEM, "error %d after %u of %u unsignalled requests", err, n, a.cap.max_send_wr);
}

static void too_many_elements(struct side *s)
{
    struct ibv_sge sge[64];
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr a;
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = sge}, *bad;
    struct ibv_recv_wr rr = {.sg_list = sge}, *rbad;
    struct end e;

    end_make(&e, s, NULL);
    e.remote = e.local;
    end_connect(&e);
    CHECK(!ibv_query_qp(e.qp, &a, IBV_QP_CAP, &init), "query");
    SKIP_UNLESS(a.cap.max_send_sge < 64 && a.cap.max_recv_sge < 64, "more than 63 elements");
    for (size_t i = 0; i < COUNT(sge); i++)
        sge[i] = (struct ibv_sge){(uintptr_t)e.buf + i, 1, e.mr->lkey};
    wr.num_sge = (int)a.cap.max_send_sge + 1;
    rr.num_sge = (int)a.cap.max_recv_sge + 1;
    CHECK(ibv_post_send(e.qp, &wr, &bad) && bad == &wr, "a request with %d elements was taken", wr.num_sge);
    CHECK(ibv_post_recv(e.qp, &rr, &rbad) && rbad == &rr, "a receive request with %d elements was taken", rr.num_sge);
}

/* A list: requests before the bad request are posted, those behind are not. */
static void a_list_with_a_bad_one(struct side *s)
{
    struct request r[3];
    struct ibv_send_wr *bad = NULL;
    struct ibv_sge sge[64];
    struct end e;

    end_open(&e, s, NULL);
    if (s->index == FIRST) {
        for (size_t i = 0; i < COUNT(sge); i++)
            sge[i] = (struct ibv_sge){(uintptr_t)e.buf, 1, e.mr->lkey};
        for (uint64_t i = 0; i < 3; i++) {
            request_make(&r[i], &e, IBV_WR_RDMA_WRITE, i, 0, 8);
            r[i].wr.sg_list = &r[i].sge;
            r[i].wr.next = i < 2 ? &r[i + 1].wr : NULL;
        }
        r[1].wr.sg_list = sge;
        r[1].wr.num_sge = COUNT(sge);
        CHECK(ibv_post_send(e.qp, &r[0].wr, &bad), "it was taken");
        CHECK(bad == &r[1].wr, "the wrong one is named");
        EXPECT(e.cq, 0, IBV_WC_SUCCESS);
        wc_none(e.cq, 5);
    }
    sync_sides(s);
}

/* A fenced write sends the result of the read before. */
static void fence(struct side *s)
{
    struct end e;

    end_open(&e, s, NULL);
    if (s->index == SECOND)
        fill(e.buf, 8192, 77);
    sync_sides(s);
    for (uint64_t i = 0; s->index == FIRST && i < 4; i++) {
        struct request r;

        memset(e.buf, 0, 8192);
        send_post(&e, IBV_WR_RDMA_READ, 1, 0, 8192);
        request_make(&r, &e, IBV_WR_RDMA_WRITE, 2, 0, 8192);
        r.wr.wr.rdma.remote_addr += 16384;
        r.wr.send_flags = IBV_SEND_FENCE;
        CHECK(!request_post(&e, &r), "post");
        EXPECT(e.cq, 1, IBV_WC_SUCCESS);
        EXPECT(e.cq, 2, IBV_WC_SUCCESS);
    }
    sync_sides(s);
    if (s->index == SECOND)
        CHECK(filled(e.buf + 16384, 8192, 77), "what was written is not what was read");
    sync_sides(s);
}

/* Reads more than either side may have outstanding wait for each other. */
static void many_reads(struct side *s)
{
    struct end_options o = {.rd_atomic = 2};
    struct end e;

    end_open(&e, s, &o);
    if (s->index == SECOND)
        fill(e.buf, BUFFER, 5);
    sync_sides(s);
    for (uint64_t i = 0; s->index == FIRST && i < 12; i++)
        send_post(&e, IBV_WR_RDMA_READ, i, i * 4096, 4096);
    for (uint64_t i = 0; s->index == FIRST && i < 12; i++)
        wc_wait(e.cq, i, IBV_WC_SUCCESS, "reads in order");
    if (s->index == FIRST)
        CHECK(filled(e.buf, 12 * 4096, 5), "the bytes");
    sync_sides(s);
}

static void atomics(struct side *s)
{
    struct end_options o = {.rd_atomic = 2};
    uint64_t *mine, *there;
    struct request r;
    struct end e;

    SKIP_UNLESS(s->attr.atomic_cap != IBV_ATOMIC_NONE, "no atomics on this device");
    end_open(&e, s, &o);
    mine = (uint64_t *)e.buf;
    there = mine;
    if (s->index == SECOND)
        *there = 1000;
    sync_sides(s);
    for (uint64_t i = 0; s->index == FIRST && i < 5; i++) {
        request_make(&r, &e, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 0, 8);
        r.wr.wr.atomic.compare_add = 10;
        CHECK(!request_post(&e, &r), "post");
        CHECK_IS(wc_wait(e.cq, i, IBV_WC_SUCCESS, "an addition").opcode, IBV_WC_FETCH_ADD, "opcode");
        CHECK_IS(*mine, 1000 + 10 * i, "what was there");
    }
    for (uint64_t i = 0; s->index == FIRST && i < 2; i++) { /* finds 1050, then its own value */
        request_make(&r, &e, IBV_WR_ATOMIC_CMP_AND_SWP, 10 + i, 0, 8);
        r.wr.wr.atomic.compare_add = 1050;
        r.wr.wr.atomic.swap = 7;
        CHECK(!request_post(&e, &r), "post");
        CHECK_IS(wc_wait(e.cq, 10 + i, IBV_WC_SUCCESS, "a swap").opcode, IBV_WC_COMP_SWAP, "opcode");
        CHECK_IS(*mine, i ? 7 : 1050, "what was there");
    }
    sync_sides(s);
    if (s->index == SECOND)
        CHECK_IS(*there, 7, "what is there");
    sync_sides(s);
}

/* Both ends in one process, on one device. */
static void with_itself(struct side *s)
{
    struct end a, b;

    end_make(&a, s, NULL);
    end_make(&b, s, NULL);
    end_loop(&a, &b);
    recv_post(&b, 4, 0, 3000);
    fill(a.buf, 3000, 1);
    send_post(&a, IBV_WR_SEND, 3, 0, 3000);
    EXPECT(a.cq, 3, IBV_WC_SUCCESS);
    EXPECT(b.cq, 4, IBV_WC_SUCCESS);
    CHECK(filled(b.buf, 3000, 1), "the bytes");
}

static const struct test_case cases[] = {
    {"messages of every size", sends, true},
    {"writes and reads of every size", writes_and_reads, true},
    {"immediate data", immediate, true},
    {"several elements", scatter_and_gather, true},
    {"inline data", inline_data, true},
    {"unsignalled requests", unsignalled, true},
    {"full queues refuse", full_queues, false},
    {"too many elements are refused", too_many_elements, false},
    {"a list with a bad request", a_list_with_a_bad_one, true},
    {"a fence", fence, true},
    {"more reads than may be outstanding", many_reads, true},
    {"atomic operations", atomics, true},
    {"two ends in one process", with_itself, false},
};
const struct theme theme_rc = {"rc", cases, COUNT(cases)};
