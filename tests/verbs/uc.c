/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable connections: the specification's 9.8.2. Lost packets are for tests that can lose packets. */
#include <errno.h>
#include <string.h>

#include "tests/verbs/suite.h"

static const struct end_options uc = {.type = IBV_QPT_UC};

static void messages(struct side *s)
{
    static const uint32_t sizes[] = {0, 1, 1024, 1025, 50000};
    struct end e;

    end_open(&e, s, &uc);
    for (uint64_t i = 0; i < COUNT(sizes); i++) {
        struct request r;
        struct ibv_wc wc;

        memset(e.buf, 0, BUFFER);
        if (s->index == SECOND) {
            recv_post(&e, 2 * i, 0, BUFFER);
            recv_post(&e, 2 * i + 1, 0, 0);
        }
        sync_sides(s);
        if (s->index == FIRST) {
            fill(e.buf, sizes[i], 4);
            send_post(&e, IBV_WR_SEND, 2 * i, 0, sizes[i]);
            wc_wait(e.cq, 2 * i, IBV_WC_SUCCESS, "a send");
        } else {
            CHECK_IS(wc_wait(e.cq, 2 * i, IBV_WC_SUCCESS, "a send").byte_len, sizes[i], "byte_len");
            CHECK(filled(e.buf, sizes[i], 4), "the bytes sent");
            memset(e.buf, 0, BUFFER);
        }
        sync_sides(s);
        if (s->index == FIRST) {
            request_make(&r, &e, IBV_WR_RDMA_WRITE_WITH_IMM, 2 * i + 1, 0, sizes[i]);
            r.wr.imm_data = htobe32(0x77);
            CHECK(!request_post(&e, &r), "post");
        }
        wc = wc_wait(e.cq, 2 * i + 1, IBV_WC_SUCCESS, "a write");
        if (s->index == SECOND) {
            CHECK_IS(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM, "opcode");
            CHECK_IS(be32toh(wc.imm_data), 0x77, "the immediate");
            CHECK_IS(wc.byte_len, sizes[i], "byte_len");
            CHECK(filled(e.buf, sizes[i], 4), "the bytes written");
        }
        sync_sides(s);
    }
}

/* A message without a receive request is lost; the next message with a request arrives. */
static void no_receive_request(struct side *s)
{
    struct end e;

    end_open(&e, s, &uc);
    if (s->index == FIRST) {
        send_post(&e, IBV_WR_SEND, 1, 0, 5000);
        EXPECT(e.cq, 1, IBV_WC_SUCCESS);
        sleep_ms(20);
    }
    sync_sides(s);
    if (s->index == SECOND)
        recv_post(&e, 2, 0, 8192);
    sync_sides(s);
    if (s->index == FIRST)
        send_post(&e, IBV_WR_SEND, 2, 0, 100);
    CHECK(s->index == FIRST || wc_wait(e.cq, 2, IBV_WC_SUCCESS, "the second").byte_len == 100, "byte_len");
    if (s->index == FIRST)
        EXPECT(e.cq, 2, IBV_WC_SUCCESS);
    sync_sides(s);
}

/* A write without the right is gone too; the connection lives. */
static void forbidden_write(struct side *s)
{
    struct end_options o = uc;
    struct end e;

    if (s->index == SECOND)
        o.mr_access = IBV_ACCESS_LOCAL_WRITE;
    end_open(&e, s, &o);
    if (s->index == SECOND)
        recv_post(&e, 2, 0, 100);
    sync_sides(s);
    if (s->index == FIRST) {
        fill(e.buf, 5000, 1);
        send_post(&e, IBV_WR_RDMA_WRITE, 1, 8192, 5000);
        EXPECT(e.cq, 1, IBV_WC_SUCCESS);
        sleep_ms(20);
        send_post(&e, IBV_WR_SEND, 2, 0, 100);
    }
    EXPECT(e.cq, 2, IBV_WC_SUCCESS);
    if (s->index == SECOND)
        CHECK(!e.buf[8192] && !e.buf[8193], "it was written");
    sync_sides(s);
}

static void other_operations(struct side *s)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP};
    struct request r;
    struct end e;

    end_make(&e, s, &uc);
    e.remote = e.local;
    end_connect(&e);
    for (size_t i = 0; i < COUNT(ops); i++) {
        request_make(&r, &e, ops[i], i, 0, 8);
        CHECK_IS(request_post(&e, &r), EINVAL, "an operation that these connections do not have");
    }
}

static const struct test_case cases[] = {
    {"sends and writes of every size", messages, true},
    {"no receive request", no_receive_request, true},
    {"a write that the region forbids", forbidden_write, true},
    {"operations that these connections do not have", other_operations, false},
};
const struct theme theme_uc = {"uc", cases, COUNT(cases)};
