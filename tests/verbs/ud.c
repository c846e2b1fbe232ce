/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams: the specification's 9.8.3 and 10.2.5 (Q_Keys). */
#include <errno.h>
#include <string.h>

#include "tests/verbs/suite.h"

enum { GRH = 40 };

static struct ibv_ah *address(struct end *e)
{
    struct ibv_ah_attr a = end_ah(e->side, &e->remote);
    struct ibv_ah *ah = ibv_create_ah(e->side->pd, &a);

    CHECK(ah, "%s", strerror(errno));
    return ah;
}

static void datagram(struct request *r, const struct end *e, struct ibv_ah *ah, uint64_t id, uint32_t len,
                     uint32_t qkey)
{
    request_make(r, e, IBV_WR_SEND, id, 0, len);
    r->wr.wr.ud.ah = ah;
    r->wr.wr.ud.remote_qpn = e->remote.qpn;
    r->wr.wr.ud.remote_qkey = qkey;
}

static const struct end_options ud = {.type = IBV_QPT_UD};

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

static void sizes(struct side *s)
{
    struct ibv_ah *ah;
    struct end e;

    end_open(&e, s, &ud);
    ah = address(&e);
    for (uint64_t i = 0; i < 4; i++) {
        uint32_t max = mtu_bytes(e.local.mtu < e.remote.mtu ? e.local.mtu : e.remote.mtu);
        uint32_t len = (uint32_t[]){0, 1, 200, max}[i];
        struct request r;
        struct ibv_wc wc;

        if (s->index == SECOND) {
            memset(e.buf, 0, BUFFER);
            recv_post(&e, i, 0, GRH + max);
        }
        sync_sides(s);
        if (s->index == FIRST) {
            fill(e.buf, len, (unsigned)i);
            datagram(&r, &e, ah, i, len, QKEY);
            r.wr.opcode = i == 2 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
            r.wr.imm_data = htobe32(99);
            CHECK(!request_post(&e, &r), "post");
        }
        wc = wc_wait(e.cq, i, IBV_WC_SUCCESS, "a datagram");
        if (s->index == SECOND) {
            CHECK_IS(wc.byte_len, GRH + len, "byte_len");
            CHECK_IS(wc.src_qp, e.remote.qpn, "src_qp");
            CHECK_IS(!!(wc.wc_flags & IBV_WC_GRH), s->gid_index >= 0, "flag of the global route");
            CHECK(s->gid_index >= 0 || wc.slid == e.remote.lid, "slid %d", wc.slid);
            CHECK_IS(!!(wc.wc_flags & IBV_WC_WITH_IMM), i == 2, "flag of the immediate");
            CHECK(i != 2 || be32toh(wc.imm_data) == 99, "the immediate");
            CHECK(filled(e.buf + GRH, len, (unsigned)i), "the bytes");
            CHECK(!e.buf[GRH + len], "a byte beyond");
        }
        sync_sides(s);
    }
}

/* Completion and header are enough to answer. */
static void answer(struct side *s)
{
    struct ibv_ah *ah;
    struct request r;
    struct ibv_wc wc;
    struct end e;

    end_open(&e, s, &ud);
    recv_post(&e, 1, 4096, GRH + 64);
    sync_sides(s);
    if (s->index == FIRST) {
        datagram(&r, &e, address(&e), 2, 32, QKEY);
        CHECK(!request_post(&e, &r), "post");
        EXPECT(e.cq, 2, IBV_WC_SUCCESS);
        EXPECT(e.cq, 1, IBV_WC_SUCCESS);
    } else {
        wc = EXPECT(e.cq, 1, IBV_WC_SUCCESS);
        ah = ibv_create_ah_from_wc(s->pd, &wc, (struct ibv_grh *)(e.buf + 4096), s->port_num);
        CHECK(ah, "%s", strerror(errno));
        datagram(&r, &e, ah, 2, 32, QKEY);
        CHECK(!request_post(&e, &r), "post");
        EXPECT(e.cq, 2, IBV_WC_SUCCESS);
    }
    sync_sides(s);
}

/* Lost without a word: a wrong Q_Key, nobody's number, no receive request. */
static void lost(struct side *s)
{
    struct ibv_ah *ah;
    struct request r;
    struct end e;

    end_open(&e, s, &ud);
    ah = address(&e);
    if (s->index == FIRST) { /* no receive request */
        datagram(&r, &e, ah, 1, 32, QKEY);
        CHECK(!request_post(&e, &r), "post");
        EXPECT(e.cq, 1, IBV_WC_SUCCESS);
        sleep_ms(20);
    }
    sync_sides(s);
    if (s->index == SECOND)
        recv_post(&e, 7, 0, GRH + 64);
    sync_sides(s);
    if (s->index == FIRST) {
        datagram(&r, &e, ah, 2, 32, QKEY + 1);
        CHECK(!request_post(&e, &r), "post");
        EXPECT(e.cq, 2, IBV_WC_SUCCESS);
        datagram(&r, &e, ah, 3, 32, QKEY);
        r.wr.wr.ud.remote_qpn = 0xfffff0;
        CHECK(!request_post(&e, &r), "post");
        EXPECT(e.cq, 3, IBV_WC_SUCCESS);
        sleep_ms(20);
    }
    sync_sides(s);
    wc_none(e.cq, 1);
    sync_sides(s);
    if (s->index == FIRST) {
        datagram(&r, &e, ah, 7, 32, QKEY);
        CHECK(!request_post(&e, &r), "post");
    }
    EXPECT(e.cq, 7, IBV_WC_SUCCESS);
    sync_sides(s);
}

/* A Q_Key with the high bit set stands for the queue pair's own (10.2.5). */
static void own_key(struct side *s)
{
    struct request r;
    struct end e;

    end_open(&e, s, &ud);
    if (s->index == SECOND)
        recv_post(&e, 1, 0, GRH + 64);
    sync_sides(s);
    if (s->index == FIRST) {
        datagram(&r, &e, address(&e), 1, 32, 0x80000001);
        CHECK(!request_post(&e, &r), "post");
    }
    EXPECT(e.cq, 1, IBV_WC_SUCCESS);
    sync_sides(s);
}

/* Longer than the port's MTU: no packet leaves. HCAs say LOC_LEN_ERR; the specification would have silence
 * (C10-93.1.1). */
static void too_long(struct side *s)
{
    uint32_t len = mtu_bytes(s->port.active_mtu) + 1;
    struct request r;
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    struct end e;

    end_make(&e, s, &ud);
    e.remote = e.local;
    end_connect(&e);
    recv_post(&e, 2, 16384, GRH + len);
    datagram(&r, &e, address(&e), 1, len, QKEY);
    if (request_post(&e, &r))
        return;
    for (int i = 0; i < 5000 && !ibv_poll_cq(e.cq, 1, &wc); i++)
        sleep_ms(1);
    CHECK(wc.wr_id == 1 && (wc.status == IBV_WC_LOC_LEN_ERR || !wc.status), "request %d: %s", (int)wc.wr_id,
          ibv_wc_status_str(wc.status));
    wc_none(e.cq, 5);
}

/* A receive request that is too short fails alone or with its queue (10.2.5); nothing is written beyond the buffer. */
static void too_short(struct side *s)
{
    struct request r;
    struct end e;

    end_open(&e, s, &ud);
    if (s->index == SECOND) {
        memset(e.buf, 0, 256);
        recv_post(&e, 1, 0, GRH + 31);
    }
    sync_sides(s);
    if (s->index == FIRST) {
        fill(e.buf, 32, 1);
        datagram(&r, &e, address(&e), 1, 32, QKEY);
        CHECK(!request_post(&e, &r), "post");
        EXPECT(e.cq, 1, IBV_WC_SUCCESS);
    } else {
        EXPECT(e.cq, 1, IBV_WC_LOC_LEN_ERR);
        CHECK(!e.buf[GRH + 31], "a byte beyond");
    }
    sync_sides(s);
}

/* A send that fails here stops the send queue. */
static void wrong_key(struct side *s)
{
    struct request r;
    struct end e;

    end_make(&e, s, &ud);
    e.remote = e.local;
    end_connect(&e);
    datagram(&r, &e, address(&e), 1, 32, QKEY);
    r.sge.lkey ^= 0x5a0000;
    CHECK(!request_post(&e, &r), "post");
    datagram(&r, &e, address(&e), 2, 32, QKEY);
    CHECK(!request_post(&e, &r), "post");
    EXPECT(e.cq, 1, IBV_WC_LOC_PROT_ERR);
    EXPECT(e.cq, 2, IBV_WC_WR_FLUSH_ERR);
    CHECK_IS(end_state(&e), IBV_QPS_SQE, "state");
}

static void sqe_and_back(struct side *s)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};
    struct request r;
    struct ibv_ah *ah;
    struct end e;

    end_make(&e, s, &ud);
    e.remote = e.local;
    end_connect(&e);
    ah = address(&e);
    datagram(&r, &e, ah, 1, 32, QKEY);
    r.sge.lkey ^= 0x5a0000;
    CHECK(!request_post(&e, &r), "post");
    EXPECT(e.cq, 1, IBV_WC_LOC_PROT_ERR);
    SKIP_UNLESS(end_state(&e) == IBV_QPS_SQE, "no state SQE on this device");
    recv_post(&e, 3, 4096, GRH + 64); /* the receive queue is unchanged */
    CHECK(!ibv_modify_qp(e.qp, &a, IBV_QP_STATE | IBV_QP_CUR_STATE), "%s", strerror(errno));
    CHECK_IS(end_state(&e), IBV_QPS_RTS, "state");
    datagram(&r, &e, ah, 2, 32, QKEY);
    CHECK(!request_post(&e, &r), "post");
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = {0};

        for (int j = 0; j < 5000 && !ibv_poll_cq(e.cq, 1, &wc); j++)
            sleep_ms(1);
        CHECK(wc.status == IBV_WC_SUCCESS && (wc.wr_id == 2 || wc.wr_id == 3), "%d %s", (int)wc.wr_id,
              ibv_wc_status_str(wc.status));
    }
}

/* Only sends go by datagram. */
static void other_operations(struct side *s)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
    struct ibv_ah *ah;
    struct request r;
    struct end e;

    end_make(&e, s, &ud);
    e.remote = e.local;
    end_connect(&e);
    ah = address(&e);
    for (size_t i = 0; i < COUNT(ops); i++) {
        request_make(&r, &e, ops[i], i, 0, 8);
        CHECK_IS(request_post(&e, &r), EINVAL, "an operation that datagrams do not have");
    }
    datagram(&r, &e, ah, 9, 8, QKEY);
    r.wr.wr.ud.ah = NULL;
    CHECK(request_post(&e, &r) == EINVAL, "no address");
}

static const struct test_case cases[] = {
    {"datagrams of every size", sizes, true},
    {"an answer to what came", answer, true},
    {"what is lost without a word", lost, true},
    {"the queue pair's own Q_Key", own_key, true},
    {"longer than the MTU", too_long, false},
    {"longer than the receive request", too_short, true},
    {"a wrong local key", wrong_key, false},
    {"SQE and back", sqe_and_back, false},
    {"operations that datagrams do not have", other_operations, false},
};
const struct theme theme_ud = {"ud", cases, COUNT(cases)};
