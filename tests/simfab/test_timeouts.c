/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits of a queue pair: for a missing acknowledge (volume 1, 9.7.6.1.3: 4.096 us * 2^timeout, retry_cnt times more; 0
 * is without limit), for a receiver that is not ready (9.7.5.2.8, the table of RNR NAK timers, rnr_retry times; 7 is
 * without limit), and for a place among its outstanding reads and atomics (max_rd_atomic). Between the two HCAs of a
 * host. For timeouts.sh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/simfab/host_ends.h"

enum { BYTES = 64, NOBODY = 0xabcde, MANY = 16 };

static struct hca_end a, b;

struct patience {
    uint8_t timeout, retry_cnt, rnr_retry, rnr_time, rd_atomic;
};

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *at, int mask)
{
    int err = ibv_modify_qp(qp, at, mask);

    if (err)
        die("ibv_modify_qp: %s", strerror(err));
}

static struct ibv_qp *connected(struct hca_end *e, const struct hca_end *to, struct ibv_qp *qp, uint32_t remote_qpn,
                                const struct patience *p)
{
    struct ibv_qp_attr at = {.qp_state = IBV_QPS_RTR,
                             .path_mtu = e->mtu,
                             .dest_qp_num = remote_qpn,
                             .max_dest_rd_atomic = 4,
                             .min_rnr_timer = p->rnr_time,
                             .ah_attr = {.dlid = to->lid, .port_num = 1}};

    modify(qp, &at,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
               IBV_QP_MIN_RNR_TIMER);
    at = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .timeout = p->timeout,
                              .retry_cnt = p->retry_cnt,
                              .rnr_retry = p->rnr_retry,
                              .max_rd_atomic = p->rd_atomic};
    modify(qp, &at,
           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
               IBV_QP_MAX_QP_RD_ATOMIC);
    return qp;
}

struct pair {
    struct ibv_qp *qa, *qb;
};

static struct pair pair_make(struct patience p)
{
    struct pair c = {end_qp(&a, IBV_QPT_RC, false), end_qp(&b, IBV_QPT_RC, false)};

    connected(&a, &b, c.qa, c.qb->qp_num, &p);
    connected(&b, &a, c.qb, c.qa->qp_num, &p);
    return c;
}

static void pair_end(struct pair c)
{
    if (ibv_destroy_qp(c.qa) || ibv_destroy_qp(c.qb))
        die("ibv_destroy_qp");
}

static void sleep_us(uint64_t us)
{
    struct timespec ts = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};

    nanosleep(&ts, NULL);
}

/* The next completion of a's requests, and the microseconds since `since`. */
static enum ibv_wc_status status_after(uint64_t since, double *us)
{
    struct ibv_wc wc;
    int n;

    while (!(n = ibv_poll_cq(a.send_cq, 1, &wc)))
        ;
    if (n < 0)
        die("ibv_poll_cq");
    *us = (double)(clock_ps() - since) / 1e6;
    return wc.status;
}

/* Prints a line for the test script: "right" or the error. */
static void judge(const char *what, enum ibv_wc_status got, enum ibv_wc_status want, double us, double low, double high)
{
    if (got == want && us >= low && us <= high)
        printf("%s: right\n", what);
    else
        printf("%s: %s after %.3f us, not %s after %.3f to %.3f\n", what, ibv_wc_status_str(got), us,
               ibv_wc_status_str(want), low, high);
}

/* ---- nobody answers -------------------------------------------------------------------------------------------- */

static void unanswered(unsigned timeout, unsigned retries, double more)
{
    struct patience p = {.timeout = (uint8_t)timeout, .retry_cnt = (uint8_t)retries};
    double us, want = (retries + 1) * 4.096 * (double)(1u << timeout);
    struct ibv_qp *qp = connected(&a, &b, end_qp(&a, IBV_QPT_RC, false), NOBODY, &p);
    uint64_t since = clock_ps();
    enum ibv_wc_status got;
    char what[64];

    end_post(&a, qp, &b, IBV_WR_RDMA_WRITE, BYTES, 0);
    got = status_after(since, &us);
    snprintf(what, sizeof what, "time-out %u, %u retries", timeout, retries);
    judge(what, got, IBV_WC_RETRY_EXC_ERR, us, want, want + more * (retries + 1));
    ibv_destroy_qp(qp);
}

static void unanswered_for_ever(void)
{
    struct ibv_qp *qp = connected(&a, &b, end_qp(&a, IBV_QPT_RC, false), NOBODY, &(struct patience){.retry_cnt = 1});
    struct ibv_wc wc;

    end_post(&a, qp, &b, IBV_WR_RDMA_WRITE, BYTES, 0);
    sleep_us(3600ull * 1000000);
    printf("no time-out: %s\n", ibv_poll_cq(a.send_cq, 1, &wc) ? "ended" : "right");
    ibv_destroy_qp(qp);
}

/* ---- the receiver is not ready --------------------------------------------------------------------------------- */

static const double rnr_ms[32] = {655.36, 0.01,  0.02,  0.03,  0.04,  0.06,   0.08,   0.12,   0.16,   0.24,  0.32,
                                  0.48,   0.64,  0.96,  1.28,  1.92,  2.56,   3.84,   5.12,   7.68,   10.24, 15.36,
                                  20.48,  30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

static void not_ready(unsigned code, unsigned retries, double way)
{
    struct pair c =
        pair_make((struct patience){.timeout = 20, .rnr_retry = (uint8_t)retries, .rnr_time = (uint8_t)code});
    double us, want = retries * rnr_ms[code] * 1000;
    uint64_t since = clock_ps();
    enum ibv_wc_status got;
    char what[64];

    end_post(&a, c.qa, &b, IBV_WR_SEND, BYTES, 0);
    got = status_after(since, &us);
    snprintf(what, sizeof what, "RNR timer %u, %u retries", code, retries);
    /* the answer to each attempt comes at once: the first and as many more as there are retries */
    judge(what, got, IBV_WC_RNR_RETRY_EXC_ERR, us, want + 0.98 * (retries + 1) * way,
          want + 1.02 * (retries + 1) * way);
    pair_end(c);
}

/* Gets ready in the middle of the 100th wait: the message goes after this wait, not before. */
static void ready_at_last(double way)
{
    struct pair c = pair_make((struct patience){.timeout = 20, .rnr_retry = 7, .rnr_time = 16});
    double us, each = rnr_ms[16] * 1000 + way;
    uint64_t since = clock_ps();
    enum ibv_wc_status got;

    end_post(&a, c.qa, &b, IBV_WR_SEND, BYTES, 0);
    sleep_us((uint64_t)(99.5 * each));
    end_post_recv(&b, c.qb, 1, BYTES);
    got = status_after(since, &us);
    judge("ready at last", got, IBV_WC_SUCCESS, us, 99.5 * each, 100.5 * each + way);
    end_wait(b.recv_cq, 1);
    pair_end(c);
}

/* ---- more reads and atomics than may be under way -------------------------------------------------------------- */

/* Time of MANY requests posted at once, in us. Additions come in order, and each once. */
static double many(enum ibv_wr_opcode op, unsigned at_once)
{
    struct pair c = pair_make((struct patience){.timeout = 20, .rd_atomic = (uint8_t)at_once});
    double us = 0;
    uint64_t since = clock_ps(), old, zero = 0;

    memcpy(b.buf, &zero, sizeof zero);
    for (unsigned i = 0; i < MANY; i++)
        end_post(&a, c.qa, &b, op, 8, 0);
    for (unsigned i = 0; i < MANY; i++)
        if (status_after(since, &us))
            die("one of %u with %u at once failed", MANY, at_once);
    memcpy(&old, a.buf, sizeof old);
    if (op == IBV_WR_ATOMIC_FETCH_AND_ADD && old != (MANY - 1) * 7)
        die("the last of %u additions of 7 found %llu", MANY, (unsigned long long)old);
    pair_end(c);
    return us;
}

/* In sequence, each takes a round trip; four at once take a quarter. */
static void few_at_once(const char *what, enum ibv_wr_opcode op, double cable)
{
    double one = many(op, 1) / MANY, four = many(op, 4) / MANY * 4;

    printf("%s, one at a time: ", what);
    judge("each", 0, 0, one, cable, cable * 1.1);
    printf("%s, four at a time: ", what);
    judge("each four", 0, 0, four, cable, cable * 1.2);
}

int main(int argc, char **argv)
{
    double cables = argc > 1 ? atof(argv[1]) : 0, way = cables + 5; /* a round trip in us; with the adapters' time */

    setvbuf(stdout, NULL, _IOLBF, 0);
    end_open(&a, 0, 4096);
    end_open(&b, 1, 4096);
    for (unsigned timeout = 6; timeout <= 20; timeout += 2)
        for (unsigned retries = 0; retries <= 7; retries += timeout == 14 ? 1 : 7)
            unanswered(timeout, retries, 5);
    unanswered_for_ever();
    for (unsigned code = 0; code < 32; code++)
        not_ready(code, 2, way);
    for (unsigned retries = 0; retries < 7; retries++)
        not_ready(5, retries, way);
    ready_at_last(way);
    few_at_once("reads", IBV_WR_RDMA_READ, cables);
    few_at_once("additions", IBV_WR_ATOMIC_FETCH_AND_ADD, cables);
    return 0;
}
