/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one message costs, measured, beside the sum of the model's keys: test_host_costs MODEL-FILE prints
 * "MEASURED EXPECTED WHAT" in picoseconds. The sums follow simfab/engine/hca/HOST.md and not the engine's code. For
 * models.sh.
 */
#include <stdio.h>
#include <string.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/fabric/model.h"
#include "tests/simfab/host_ends.h"

#define ROUNDS 1000u

static struct model *m;
static struct hca_end a, b;
static uint32_t mtu;

/* ---- the sums -------------------------------------------------------------------------------------------------- */

static uint64_t across_bus(uint32_t bytes)
{
    if (!bytes)
        return 0;
    return m->bus_bps ? transfer_ps(bytes + m->bus_overhead_bytes, m->bus_bps) : transfer_ps(bytes, m->dma_read_bps);
}

static uint64_t into_memory(uint32_t bytes)
{
    if (!bytes)
        return 0;
    return m->bus_bps ? transfer_ps(bytes + m->bus_overhead_bytes, m->bus_bps) : transfer_ps(bytes, m->dma_write_bps);
}

static uint64_t on_wire(uint32_t bytes)
{
    return transfer_ps(bytes + m->packet_overhead_bytes, a.rate_bps);
}

/* An engine's pace: it may be one transfer ahead of it. */
static void keep_pace(uint64_t *paced, uint64_t begin, uint32_t bytes, uint64_t bps)
{
    uint64_t t = transfer_ps(bytes, bps);

    *paced = max_u64(*paced, begin - min_u64(begin, t)) + t;
}

struct message {
    uint32_t bytes, first_header, header; /* extended headers of the first packet, of each packet */
    bool fetched, inlined;                /* a request is fetched for it; its data comes with it */
};

/* From the doorbell's arrival, or that of a request to answer, to the last byte in the other's memory. */
static uint64_t travel(const struct message *x)
{
    const uint64_t long_ago = 1000000000; /* when all was last busy */
    uint64_t engine = long_ago, behind = 0, link = 0, check = 0, write = 0, landed = 0, paced[2] = {0};
    bool light = x->inlined || !x->bytes;

    if (x->fetched) {
        uint64_t fetch = m->wqe_ps - (light ? min_u64(m->wqe_inline_saves_ps, m->wqe_ps) : 0);

        behind = min_u64(fetch, m->wqe_overlap_ps);
        engine += fetch - behind;
    }
    for (uint32_t at = 0, i = 0; i == 0 || at < x->bytes; i++) {
        uint32_t len = min_u64(x->bytes - at, mtu);
        uint64_t read = engine + across_bus(len), leave, arrive, begin;

        keep_pace(&paced[0], engine, len, m->dma_read_bps);
        engine = max_u64(max_u64(read, engine + m->tx_packet_ps), paced[0]);
        leave = read + m->tx_packet_ps + (i ? 0 : behind) + (light ? 0 : m->dma_latency_ps);
        link = max_u64(link, leave) + on_wire(len + x->header + (i ? 0 : x->first_header));
        arrive = link + 2 * m->propagation_ps + m->switch_delay_ps;
        check = max_u64(arrive, check);
        begin = max_u64(check, write);
        write = begin + into_memory(len);
        check += m->rx_packet_ps;
        landed = max_u64(landed, max_u64(check, len ? write : 0) + (len ? m->dma_write_ps : 0));
        keep_pace(&paced[1], begin, len, m->dma_write_bps);
        write = max_u64(write, paced[1]);
        at += len;
    }
    return landed - long_ago;
}

static uint64_t posted(void)
{
    return m->post_ps + m->doorbell_ps;
}

static uint64_t found(void)
{
    return m->cqe_ps + m->poll_ps;
}

/* ---- the measurements ------------------------------------------------------------------------------------------ */

static void report(uint64_t start, uint64_t end, uint64_t expected, const char *what)
{
    printf("%llu %llu %s\n", (unsigned long long)((end - start - m->clock_read_ps) / ROUNDS),
           (unsigned long long)expected, what);
}

/* One message that is not measured: what the adapters do not hold yet they hold then. */
static void hold_contexts(struct ibv_qp *qa, struct ibv_qp *qb)
{
    end_post_recv(&b, qb, 1, 0);
    end_post(&a, qa, &b, IBV_WR_SEND, 0, 0);
    end_wait(b.recv_cq, 1);
    end_wait(a.send_cq, 1);
}

static void one_way(struct ibv_qp *qa, struct ibv_qp *qb, uint32_t bytes, bool inlined)
{
    struct message x = {.bytes = bytes, .fetched = true, .inlined = inlined};
    const char *transport = qa->qp_type == IBV_QPT_RC ? "RC" : "UC";
    char what[80];
    uint64_t start;

    end_post_recv(&b, qb, ROUNDS, bytes);
    start = clock_ps();
    for (unsigned i = 0; i < ROUNDS; i++) {
        end_post(&a, qa, &b, IBV_WR_SEND, bytes, inlined ? IBV_SEND_INLINE : 0);
        end_wait(b.recv_cq, 1);
    }
    snprintf(what, sizeof what, "%s send of %u bytes%s, one way", transport, bytes, inlined ? " inline" : "");
    report(start, clock_ps(), posted() + travel(&x) + found(), what);
    end_wait(a.send_cq, ROUNDS);
}

static void datagram(uint32_t bytes)
{
    struct ibv_qp *qa = end_qp(&a, IBV_QPT_UD, false), *qb = end_qp(&b, IBV_QPT_UD, false);
    struct ibv_ah_attr to_b = {.dlid = b.lid, .port_num = 1};
    struct ibv_ah *ah = ibv_create_ah(a.pd, &to_b);
    struct message x = {.bytes = bytes, .header = 8, .fetched = true};
    char what[80];
    uint64_t start;

    if (!ah)
        die("ibv_create_ah failed");
    end_connect(&a, qa, &b, qb);
    end_post_recv(&b, qb, ROUNDS + 1, bytes + 40);
    end_post_ud(&a, qa, ah, qb->qp_num, bytes); /* not measured: as hold_contexts */
    end_wait(b.recv_cq, 1);
    start = clock_ps();
    for (unsigned i = 0; i < ROUNDS; i++) {
        end_post_ud(&a, qa, ah, qb->qp_num, bytes);
        end_wait(b.recv_cq, 1);
    }
    snprintf(what, sizeof what, "UD send of %u bytes, one way", bytes);
    report(start, clock_ps(), posted() + travel(&x) + found(), what);
    end_wait(a.send_cq, ROUNDS + 1);
}

/* Until the sender knows. */
static void acknowledged(struct ibv_qp *qa, uint32_t bytes)
{
    struct message x = {.bytes = bytes, .first_header = 16, .fetched = true}, ack = {.header = 4};
    uint64_t start = clock_ps();
    char what[80];

    for (unsigned i = 0; i < ROUNDS; i++) {
        end_post(&a, qa, &b, IBV_WR_RDMA_WRITE, bytes, 0);
        end_wait(a.send_cq, 1);
    }
    snprintf(what, sizeof what, "RDMA write of %u bytes, to its completion", bytes);
    /* an acknowledge needs no engine on its way out */
    report(start, clock_ps(), posted() + travel(&x) + m->ack_ps + travel(&ack) - m->tx_packet_ps + found(), what);
}

static void read_back(struct ibv_qp *qa, uint32_t bytes)
{
    struct message ask = {.first_header = 16, .fetched = true};
    struct message answer = {.bytes = bytes, .header = 4, .fetched = true};
    uint64_t start = clock_ps();
    char what[80];

    for (unsigned i = 0; i < ROUNDS; i++) {
        end_post(&a, qa, &b, IBV_WR_RDMA_READ, bytes, 0);
        end_wait(a.send_cq, 1);
    }
    snprintf(what, sizeof what, "RDMA read of %u bytes", bytes);
    report(start, clock_ps(), posted() + travel(&ask) + m->ack_ps + travel(&answer) + found(), what);
}

/* The answer's value is no payload on the wire, but data for the memory that it goes to. */
static void atomic(struct ibv_qp *qa)
{
    struct message ask = {.first_header = 28, .fetched = true}, answer = {.header = 12};
    uint64_t back = travel(&answer) - m->tx_packet_ps - m->rx_packet_ps, start = clock_ps();

    back += max_u64(m->rx_packet_ps, into_memory(8)) + m->dma_write_ps;
    for (unsigned i = 0; i < ROUNDS; i++) {
        end_post(&a, qa, &b, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 0);
        end_wait(a.send_cq, 1);
    }
    report(start, clock_ps(), posted() + travel(&ask) + m->ack_ps + m->wqe_ps + m->dma_latency_ps + back + found(),
           "fetch and add");
}

/* Registering and giving back a region whose pages it touches only in part. */
static void registration(size_t bytes, size_t offset)
{
    uint64_t pages = bytes ? (offset + bytes - 1) / 4096 + 1 : 0, in = 0, out = 0, t;
    char what[80];

    for (unsigned i = 0; i < ROUNDS; i++) {
        struct ibv_mr *mr;

        t = clock_ps();
        mr = ibv_reg_mr(a.pd, a.buf + offset, bytes, IBV_ACCESS_LOCAL_WRITE);
        in += clock_ps() - t;
        t = clock_ps();
        if (!mr || ibv_dereg_mr(mr))
            die("registering %zu bytes failed", bytes);
        out += clock_ps() - t;
    }
    snprintf(what, sizeof what, "registering %zu bytes that touch %u pages", bytes, (unsigned)pages);
    report(0, in - (ROUNDS - 1) * m->clock_read_ps, m->reg_mr_ps + pages * m->reg_mr_page_ps, what);
    snprintf(what, sizeof what, "deregistering %zu bytes that touch %u pages", bytes, (unsigned)pages);
    report(0, out - (ROUNDS - 1) * m->clock_read_ps, m->dereg_mr_ps + pages * m->dereg_mr_page_ps, what);
}

int main(int argc, char **argv)
{
    static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC};
    struct parse_error err;
    struct ibv_qp *qa, *qb;

    if (argc != 2 || !(m = model_load(argv[1], &err)))
        die("%s", argc == 2 ? err.text : "usage: test_host_costs MODEL-FILE");
    end_open(&a, 0, 1 << 20);
    end_open(&b, 1, 1 << 20);
    mtu = 128u << a.mtu;
    for (int i = 0; i < 2; i++) {
        const uint32_t sizes[] = {0, 4, mtu, mtu + 1, 3 * mtu};

        qa = end_qp(&a, types[i], false);
        qb = end_qp(&b, types[i], false);
        end_connect(&a, qa, &b, qb);
        hold_contexts(qa, qb);
        for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)
            one_way(qa, qb, sizes[k], false);
        one_way(qa, qb, 4, true);
        if (types[i] == IBV_QPT_RC) {
            acknowledged(qa, 0);
            acknowledged(qa, 4);
            acknowledged(qa, mtu + 1);
            read_back(qa, 4);
            read_back(qa, mtu + 1);
            atomic(qa);
        }
    }
    datagram(0);
    datagram(4);
    datagram(mtu);
    registration(1, 0);
    registration(4096, 0);
    registration(4096, 1);
    registration(1 << 20, 0);
    model_free(m);
    return 0;
}
