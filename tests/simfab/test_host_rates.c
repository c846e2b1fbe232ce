/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast adapters move data. The HCAs of one host stand for those of two: the first half sends to the second.
 *
 *   test_host_rates stream RAILS uni|both COUNT[,COUNT]   MB/s of each rail (1 MiB writes, so many), then of all
 *   test_host_rates reads COUNT DELAY_US                  MB/s of so many 1 MiB reads each way over one connection, of
 *                                                         which one side begins so much later
 *   test_host_rates connections N rc|ud COUNT BYTES       messages a second, over N queue pairs in turn
 *
 * For models.sh and bench/models.sh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simfab/host_ends.h"

#define MESSAGE (1u << 20)
#define RAILS   2
#define WINDOW  SHARED_DEPTH

/* ---- large writes over several rails ----------------------------------------------------------------------------- */

static struct hca_end side[2][RAILS];

static unsigned number(const char *text, unsigned max)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);

    if (end == text || *end || !v || v > max)
        die("%s: a number from 1 to %u is wanted", text, max);
    return (unsigned)v;
}

static void report(uint64_t bytes, uint64_t ps, const char *what)
{
    printf("%.1f MB/s %s\n", (double)bytes * 1e6 / (double)ps, what);
}

/* All is posted before anything is looked at; a rail's time ends with its last completion. */
static void stream(unsigned rails, unsigned directions, const unsigned *count)
{
    unsigned left[2][RAILS] = {0}, open = 0;
    uint64_t start, end[RAILS] = {0}, last = 0, total = 0;
    struct ibv_qp *qp[2][RAILS];

    for (unsigned r = 0; r < rails; r++) {
        for (unsigned s = 0; s < 2; s++) {
            end_open(&side[s][r], (int)(s * rails + r), MESSAGE);
            qp[s][r] = end_qp(&side[s][r], IBV_QPT_RC, false);
        }
        end_connect(&side[0][r], qp[0][r], &side[1][r], qp[1][r]);
    }
    start = clock_ps();
    for (unsigned i = 0; i < DEPTH; i++)
        for (unsigned r = 0; r < rails; r++)
            for (unsigned s = 0; s < directions; s++)
                if (i < count[r]) {
                    end_post(&side[s][r], qp[s][r], &side[!s][r], IBV_WR_RDMA_WRITE, MESSAGE, 0);
                    left[s][r]++;
                    open++;
                }
    while (open)
        for (unsigned r = 0; r < rails; r++)
            for (unsigned s = 0; s < directions; s++) {
                struct ibv_wc wc[16];
                int got = left[s][r] ? ibv_poll_cq(side[s][r].send_cq, 16, wc) : 0;

                for (int i = 0; i < got; i++)
                    if (wc[i].status)
                        die("a completion says: %s", ibv_wc_status_str(wc[i].status));
                if (got <= 0)
                    continue;
                left[s][r] -= (unsigned)got;
                open -= (unsigned)got;
                end[r] = clock_ps() - start;
            }
    for (unsigned r = 0; r < rails; r++) {
        uint64_t bytes = (uint64_t)count[r] * directions * MESSAGE;
        char what[32];

        snprintf(what, sizeof what, "rail %u", r);
        report(bytes, end[r], what);
        total += bytes;
        last = end[r] > last ? end[r] : last;
    }
    report(total, last, "in all");
}

/* ---- large reads, both ways over one connection ------------------------------------------------------------------ */

static void reads(unsigned count, unsigned delay_us)
{
    struct ibv_qp *qp[2];
    uint64_t start;

    for (unsigned s = 0; s < 2; s++) {
        end_open(&side[s][0], (int)s, MESSAGE);
        qp[s] = end_qp(&side[s][0], IBV_QPT_RC, false);
    }
    end_connect(&side[0][0], qp[0], &side[1][0], qp[1]);
    start = clock_ps();
    for (unsigned s = 0; s < 2; s++) {
        for (unsigned i = 0; i < count; i++)
            end_post(&side[s][0], qp[s], &side[!s][0], IBV_WR_RDMA_READ, MESSAGE, 0);
        while (!s && clock_ps() - start < delay_us * 1000000ull)
            ;
    }
    end_wait(side[0][0].send_cq, count);
    end_wait(side[1][0].send_cq, count);
    report(2ull * count * MESSAGE, clock_ps() - start, "in all");
}

/* ---- small messages over many queue pairs ---------------------------------------------------------------------- */

struct way {
    struct ibv_qp *from;
    uint32_t to;
};

static void send_next(struct hca_end *a, struct hca_end *b, const struct way *w, struct ibv_ah *ah, uint32_t bytes)
{
    if (ah)
        end_post_ud(a, w->from, ah, w->to, bytes);
    else
        end_post(a, w->from, b, IBV_WR_SEND, bytes, 0);
}

static void send_round(struct hca_end *a, struct hca_end *b, const struct way *way, unsigned ways, unsigned count,
                       struct ibv_ah *ah, uint32_t bytes)
{
    unsigned sent, done = 0;

    for (sent = 0; sent < count; sent++) {
        if (sent - done == WINDOW)
            done += end_take(a->send_cq, WINDOW);
        send_next(a, b, &way[ah ? 0 : sent % ways], ah, bytes);
    }
    end_wait(a->send_cq, sent - done);
    end_wait(b->recv_cq, count);
}

/* RC: n connections. UD: one queue pair sends to one. Receives are posted before, so only sending takes time. */
static void connections(unsigned n, bool datagrams, unsigned count, uint32_t bytes)
{
    struct hca_end *a = &side[0][0], *b = &side[1][0];
    struct ibv_ah_attr to_b = {.port_num = 1};
    struct way *way = calloc(n, sizeof *way);
    struct ibv_ah *ah = NULL;
    uint64_t start, ps;

    end_open(a, 0, MESSAGE);
    end_open(b, 1, MESSAGE);
    to_b.dlid = b->lid;
    if (!way || (datagrams && !(ah = ibv_create_ah(a->pd, &to_b))))
        die("ibv_create_ah failed");
    for (unsigned i = 0; i < (datagrams ? 1 : n); i++) {
        enum ibv_qp_type type = datagrams ? IBV_QPT_UD : IBV_QPT_RC;
        struct ibv_qp *qa = end_qp(a, type, true), *qb = end_qp(b, type, true);

        end_connect(a, qa, b, qb);
        way[i] = (struct way){qa, qb->qp_num};
    }
    end_post_recv(b, NULL, count + n, bytes + 40);
    send_round(a, b, way, n, n, ah, bytes); /* not measured: fills the adapters' caches */
    start = clock_ps();
    send_round(a, b, way, n, count, ah, bytes);
    ps = clock_ps() - start;
    printf("%.0f messages/s over %u %s\n", (double)count * 1e12 / (double)ps, n,
           datagrams ? "UD peers" : "RC connections");
    free(way);
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "stream")) {
        unsigned rails = number(argv[2], RAILS), count[RAILS];
        char *comma = strchr(argv[4], ',');

        if (comma)
            *comma++ = 0;
        count[0] = number(argv[4], DEPTH);
        count[1] = number(comma ? comma : argv[4], DEPTH);
        stream(rails, strcmp(argv[3], "both") ? 1 : 2, count);
        return 0;
    }
    if (argc == 4 && !strcmp(argv[1], "reads")) {
        reads(number(argv[2], DEPTH), number(argv[3], 1000000));
        return 0;
    }
    if (argc == 6 && !strcmp(argv[1], "connections")) {
        connections(number(argv[2], DEPTH / 2), !strcmp(argv[3], "ud"), number(argv[4], DEPTH / 2),
                    number(argv[5], 2008));
        return 0;
    }
    die("usage: test_host_rates stream RAILS uni|both COUNT[,COUNT] | reads COUNT DELAY_US | connections N rc|ud COUNT "
        "BYTES");
}
