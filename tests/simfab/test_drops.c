/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of one lost packet, by its place in the message and by transport. An unreliable connection loses the whole
 * message, and no other. A reliable connection sends again, once, only the necessary packets. Between the two HCAs of a
 * host; the cables are so long that a message is on its way before an answer can come back. For drops.sh, which counts
 * the lines with "right".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simfab/host_ends.h"

enum { PACKETS = 8, MESSAGES = 3, VICTIM = 1, TIMEOUT_MS = 1073 }; /* 4.096 us * 2^18, as set by end_connect() */

static struct hca_end a, b;
static uint32_t mtu, bytes; /* of a packet and of a message */

/* ---- the bench ------------------------------------------------------------------------------------------------- */

/* Loses the number-th packet from now on that leaves the switch by this port. */
static void lose(unsigned port, unsigned number)
{
    char line[80];

    snprintf(line, sizeof line, "simfab fault link leaf1 %u drop=%u", port, number);
    if (system(line))
        die("%s failed", line);
}

static uint64_t counter(const struct hca_end *e, const char *name)
{
    unsigned long long v;
    char path[sizeof e->ctx->device->ibdev_path + 64];
    FILE *f;

    snprintf(path, sizeof path, "%s/ports/1/counters/%s", e->ctx->device->ibdev_path, name);
    f = fopen(path, "r");
    if (!f || fscanf(f, "%llu", &v) != 1)
        die("cannot read %s", path);
    fclose(f);
    return v;
}

static void sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000l}, NULL);
}

static uint8_t pattern(unsigned message, uint32_t at)
{
    return (uint8_t)(1 + (message * 83 + at * 7 + at / mtu) % 255); /* never 0 */
}

static void prepare(void)
{
    for (unsigned m = 0; m < MESSAGES; m++)
        for (uint32_t i = 0; i < bytes; i++)
            a.buf[m * bytes + i] = pattern(m, i);
    memset(b.buf, 0, MESSAGES * bytes);
}

/* How many bytes of the message are in the slot, from its beginning; nothing else may be there. */
static uint32_t landed(unsigned slot, unsigned message)
{
    const uint8_t *p = b.buf + slot * bytes;
    uint32_t n = 0;

    while (n < bytes && p[n] == pattern(message, n))
        n++;
    for (uint32_t i = n; i < bytes; i++)
        if (p[i])
            return UINT32_MAX;
    return n;
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode op, unsigned m)
{
    struct ibv_sge sge = {(uintptr_t)a.buf + m * bytes, bytes, a.mr->lkey};
    struct ibv_send_wr wr = {
        .wr_id = m, .opcode = op, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1, .imm_data = 100 + m};
    struct ibv_send_wr *bad;

    wr.wr.rdma.remote_addr = (uintptr_t)b.buf + m * bytes;
    wr.wr.rdma.rkey = b.mr->rkey;
    if (ibv_post_send(qp, &wr, &bad))
        die("ibv_post_send");
}

static void post_receives(struct ibv_qp *qp)
{
    for (unsigned m = 0; m < MESSAGES; m++) {
        struct ibv_sge sge = {(uintptr_t)b.buf + m * bytes, bytes, b.mr->lkey};
        struct ibv_recv_wr wr = {.wr_id = m, .sg_list = &sge, .num_sge = 1}, *bad;

        if (ibv_post_recv(qp, &wr, &bad))
            die("ibv_post_recv");
    }
}

/* ---- unreliable ------------------------------------------------------------------------------------------------ */

static const char *name_of(enum ibv_wr_opcode op)
{
    switch (op) {
    case IBV_WR_SEND:
        return "send";
    case IBV_WR_RDMA_WRITE:
        return "write";
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return "write with immediate";
    case IBV_WR_RDMA_READ:
        return "read";
    default:
        return "addition";
    }
}

/* Receives are used in the order of arriving messages: the completions are those of messages 0 and 2. */
static const char *wrong_receives(enum ibv_wr_opcode op, bool lost)
{
    static const unsigned all[] = {0, 1, 2}, but_victim[] = {0, 2};
    const unsigned *came = lost ? but_victim : all;
    struct ibv_wc wc[MESSAGES + 1];
    int n = ibv_poll_cq(b.recv_cq, MESSAGES + 1, wc), want = lost ? 2 : 3;

    if (op == IBV_WR_RDMA_WRITE)
        return n ? "a write completes a receive" : NULL;
    if (n != want)
        return "not so many receives complete";
    for (unsigned i = 0; i < (unsigned)n; i++) {
        if (wc[i].status || wc[i].wr_id != i || wc[i].byte_len != bytes)
            return "a receive is not as it should be";
        if (op == IBV_WR_RDMA_WRITE_WITH_IMM && wc[i].imm_data != 100 + came[i])
            return "immediate data of another message";
        if (op == IBV_WR_SEND && landed(i, came[i]) != bytes)
            return "a message is not whole";
    }
    return NULL;
}

/* Writes land at their addresses; of the write with a lost packet, the part before (IBTA volume 1, 9.8.3). */
static const char *wrong_memory(enum ibv_wr_opcode op, unsigned lost)
{
    if (op == IBV_WR_SEND)
        return NULL;
    for (unsigned m = 0; m < MESSAGES; m++)
        if (landed(m, m) != (m == VICTIM && lost ? (lost - 1) * mtu : bytes))
            return "memory is not as it should be";
    return NULL;
}

/* Three messages; packet number lost of the second one (none: 0) does not come. */
static void unreliable(enum ibv_wr_opcode op, unsigned lost)
{
    struct ibv_qp *qa = end_qp(&a, IBV_QPT_UC, false), *qb = end_qp(&b, IBV_QPT_UC, false);
    uint64_t symbols = counter(&b, "symbol_error"), received = counter(&b, "port_rcv_packets");
    const char *wrong;

    end_connect(&a, qa, &b, qb);
    prepare();
    post_receives(qb);
    if (lost)
        lose(2, VICTIM * PACKETS + lost);
    for (unsigned m = 0; m < MESSAGES; m++)
        post(qa, op, m);
    end_wait(a.send_cq, MESSAGES); /* the sender does not notice */
    sleep_ms(10);
    wrong = wrong_receives(op, lost);
    if (!wrong)
        wrong = wrong_memory(op, lost);
    if (!wrong && counter(&b, "symbol_error") - symbols != !!lost)
        wrong = "the port does not count one symbol error for each loss";
    if (!wrong && counter(&b, "port_rcv_packets") - received != MESSAGES * PACKETS - !!lost)
        wrong = "the port does not count all other packets";
    printf("UC %s, packet %u lost: %s\n", name_of(op), lost, wrong ? wrong : "right");
    ibv_destroy_qp(qa);
    ibv_destroy_qp(qb);
}

/* ---- reliable -------------------------------------------------------------------------------------------------- */

struct cost {
    uint64_t requests, answers; /* packets sent by a and b */
    uint64_t since;
};

static struct cost cost_now(void)
{
    return (struct cost){counter(&a, "port_xmit_packets"), counter(&b, "port_xmit_packets"), clock_ps()};
}

/* The time-out was waited for once, or not at all. */
static bool waited(struct cost before, bool timeout)
{
    uint64_t ms = (clock_ps() - before.since) / 1000000000;

    return timeout ? ms >= TIMEOUT_MS && ms < 2 * TIMEOUT_MS : ms < 10;
}

/*
 * A message with one lost packet. The next packet shows the loss to the receiver, which requests all packets from the
 * lost one on. No packet follows the last one, which alone requests an acknowledge: the sender must wait, and then
 * assumes that no packet arrived.
 */
static void reliable(enum ibv_wr_opcode op, unsigned lost)
{
    struct ibv_qp *qa = end_qp(&a, IBV_QPT_RC, false), *qb = end_qp(&b, IBV_QPT_RC, false);
    unsigned again = lost == PACKETS ? PACKETS : lost ? PACKETS + 1 - lost : 0;
    const char *wrong = NULL;
    struct cost before;

    end_connect(&a, qa, &b, qb);
    prepare();
    post_receives(qb);
    if (lost)
        lose(2, lost);
    before = cost_now();
    post(qa, op, 0);
    end_wait(a.send_cq, 1);
    if (op != IBV_WR_RDMA_WRITE)
        end_wait(b.recv_cq, 1);
    if (!waited(before, lost == PACKETS))
        wrong = "not the time that it should take";
    sleep_ms(2 * TIMEOUT_MS);
    if (landed(0, 0) != bytes)
        wrong = "the message is not whole";
    else if (counter(&a, "port_xmit_packets") - before.requests != PACKETS + again)
        wrong = "not so many packets are sent again";
    else if (ibv_poll_cq(b.recv_cq, 1, &(struct ibv_wc){0}))
        wrong = "it arrives twice";
    printf("RC %s, packet %u lost: %s\n", name_of(op), lost, wrong ? wrong : "right");
    ibv_destroy_qp(qa);
    ibv_destroy_qp(qb);
}

/* The acknowledge of a message of one packet is lost: the packet is sent again, and received once. */
static void acknowledge_lost(void)
{
    struct ibv_qp *qa = end_qp(&a, IBV_QPT_RC, false), *qb = end_qp(&b, IBV_QPT_RC, false);
    const char *wrong = NULL;
    struct cost before;

    end_connect(&a, qa, &b, qb);
    post_receives(qb);
    lose(1, 1);
    before = cost_now();
    end_post(&a, qa, &b, IBV_WR_SEND, mtu, 0);
    end_wait(a.send_cq, 1);
    if (!waited(before, true))
        wrong = "not the time that it should take";
    end_wait(b.recv_cq, 1);
    sleep_ms(2 * TIMEOUT_MS);
    if (ibv_poll_cq(b.recv_cq, 1, &(struct ibv_wc){0}))
        wrong = "it arrives twice";
    else if (counter(&a, "port_xmit_packets") - before.requests != 2)
        wrong = "it is not sent twice";
    else if (counter(&b, "port_xmit_packets") - before.answers != 2)
        wrong = "it is not acknowledged twice";
    printf("RC send, acknowledge lost: %s\n", wrong ? wrong : "right");
    ibv_destroy_qp(qa);
    ibv_destroy_qp(qb);
}

/*
 * A packet of a read's answer is lost: the rest is requested. The last packet, or an atomic's answer: after a time-out.
 */
static void answer_lost(enum ibv_wr_opcode op, unsigned packets, unsigned lost)
{
    struct ibv_qp *qa = end_qp(&a, IBV_QPT_RC, false), *qb = end_qp(&b, IBV_QPT_RC, false);
    const char *wrong = NULL;
    uint64_t sum = 35, old;
    struct cost before;

    end_connect(&a, qa, &b, qb);
    memset(b.buf, 0x5a, bytes);
    memset(a.buf, 0, bytes);
    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
        memcpy(b.buf, &sum, sizeof sum);
    lose(1, lost);
    before = cost_now();
    end_post(&a, qa, &b, op, op == IBV_WR_RDMA_READ ? bytes : 8, 0);
    end_wait(a.send_cq, 1);
    if (!waited(before, lost == packets))
        wrong = "not the time that it should take";
    memcpy(&old, a.buf, sizeof old);
    memcpy(&sum, b.buf, sizeof sum);
    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD ? old != 35 || sum != 42 : memcmp(a.buf, b.buf, bytes) != 0)
        wrong = "not what should be there";
    else if (counter(&a, "port_xmit_packets") - before.requests != 2)
        wrong = "it is not asked for twice";
    else if (counter(&b, "port_xmit_packets") - before.answers != packets + (packets + 1 - lost))
        wrong = "not so many packets are answered again";
    printf("RC %s, answer %u lost: %s\n", name_of(op), lost, wrong ? wrong : "right");
    ibv_destroy_qp(qa);
    ibv_destroy_qp(qb);
}

int main(void)
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};

    setvbuf(stdout, NULL, _IOLBF, 0);
    end_open(&a, 0, 1 << 16);
    end_open(&b, 1, 1 << 16);
    mtu = 128u << a.mtu;
    bytes = PACKETS * mtu;
    for (unsigned i = 0; i < 3; i++)
        for (unsigned lost = 0; lost <= PACKETS; lost++) {
            unreliable(ops[i], lost);
            reliable(ops[i], lost);
        }
    acknowledge_lost();
    for (unsigned lost = 1; lost <= PACKETS; lost++)
        answer_lost(IBV_WR_RDMA_READ, PACKETS, lost);
    answer_lost(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1);
    return 0;
}
