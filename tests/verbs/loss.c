/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties that hold with and without loss of packets; meant to be run over lossy links. Reliable connections deliver
 * all, once and in order (9.7); unreliable connections whole messages or nothing, in order (9.8.2.2).
 */
#include <errno.h>
#include <string.h>

#include "tests/verbs/suite.h"

enum { MESSAGES = 300, SLOTS = 8, SLOT = 8192 };

static uint32_t length_of(uint32_t n)
{
    static const uint32_t lengths[] = {8, 1000, 1025, 2048, 3000, 5000, 7777, 8192};

    return lengths[n % COUNT(lengths)];
}

/* A message says its number and is filled from it. */
static void write_message(uint8_t *p, uint32_t n)
{
    fill(p, length_of(n), n);
    memcpy(p, &n, sizeof n);
}

static bool read_message(const uint8_t *p, uint32_t len, uint32_t *n)
{
    uint8_t wanted[SLOT];

    memcpy(n, p, sizeof *n);
    if (*n >= MESSAGES || len != length_of(*n))
        return false;
    write_message(wanted, *n);
    return !memcmp(p, wanted, len);
}

/* Nothing holds an unreliable sender back: after half of the receiver's requests it pauses. */
static void send_all(struct end *e, unsigned pause_ms)
{
    for (uint32_t n = 0; n < MESSAGES; n++) {
        write_message(e->buf, n);
        send_post(e, IBV_WR_SEND, n, 0, length_of(n));
        wc_wait(e->cq, n, IBV_WC_SUCCESS, "a message");
        if (pause_ms && n % (SLOTS / 2) == SLOTS / 2 - 1)
            sleep_ms(pause_ms);
    }
}

/* The number of messages that came; each of them whole, none twice, none before its predecessor. */
static uint32_t receive_some(struct end *e, unsigned quiet_ms, uint32_t enough)
{
    uint32_t n, count = 0, next = 0;
    struct ibv_wc wc;

    for (unsigned quiet = 0; quiet < quiet_ms && count < enough;) {
        if (!ibv_poll_cq(e->cq, 1, &wc)) {
            sleep_ms(1);
            quiet++;
            continue;
        }
        quiet = 0;
        CHECK(!wc.status, "%s", ibv_wc_status_str(wc.status));
        CHECK_IS(wc.wr_id, count % SLOTS, "the receive request");
        CHECK(read_message(e->buf + wc.wr_id * SLOT, wc.byte_len, &n), "message %u of %u bytes is not whole", n,
              wc.byte_len);
        CHECK(n >= next, "message %u after %u", n, next);
        next = n + 1;
        count++;
        recv_post(e, wc.wr_id, wc.wr_id * SLOT, SLOT);
    }
    return count;
}

static void whole_or_nothing(struct side *s)
{
    struct end_options o = {.type = IBV_QPT_UC};
    uint32_t came;
    struct end e;

    end_open(&e, s, &o);
    for (uint64_t i = 0; s->index == SECOND && i < SLOTS; i++)
        recv_post(&e, i, i * SLOT, SLOT);
    sync_sides(s);
    if (s->index == FIRST) {
        send_all(&e, 5);
    } else {
        came = receive_some(&e, 2000, MESSAGES);
        case_note("%u of %d messages came", came, MESSAGES);
        CHECK(came > MESSAGES / 4, "only %u came", came);
    }
    sync_sides(s);
}

static void all_in_order(struct side *s)
{
    struct end_options o = {.timeout = 10};
    struct end e;

    end_open(&e, s, &o);
    for (uint64_t i = 0; s->index == SECOND && i < SLOTS; i++)
        recv_post(&e, i, i * SLOT, SLOT);
    sync_sides(s);
    if (s->index == FIRST)
        send_all(&e, 0);
    else
        CHECK_IS(receive_some(&e, 8000, MESSAGES), MESSAGES, "messages");
    sync_sides(s);
}

/* Additions are done once each, however often they were requested; their answers are those of the first time. */
static void additions_once(struct side *s)
{
    struct end_options o = {.timeout = 10, .rd_atomic = 4, .send_wr = 16};
    struct request r;
    struct end e;

    SKIP_UNLESS(s->attr.atomic_cap != IBV_ATOMIC_NONE && s->attr.max_qp_rd_atom >= 4, "too few atomics on this device");
    end_open(&e, s, &o);
    for (uint64_t n = 0; s->index == FIRST && n < MESSAGES; n += 4) {
        for (uint64_t i = 0; i < 4; i++) {
            request_make(&r, &e, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 64 + 8 * i, 8);
            r.wr.wr.atomic.remote_addr = e.remote.addr;
            r.wr.wr.atomic.compare_add = 1;
            CHECK(!request_post(&e, &r), "post");
        }
        for (uint64_t i = 0; i < 4; i++) {
            uint64_t old;

            wc_wait(e.cq, i, IBV_WC_SUCCESS, "an addition");
            memcpy(&old, e.buf + 64 + 8 * i, sizeof old);
            CHECK_IS(old, n + i, "what was there");
        }
    }
    sync_sides(s);
    if (s->index == SECOND)
        CHECK_IS(*(uint64_t *)e.buf, MESSAGES, "the sum");
    sync_sides(s);
}

static void writes_and_reads(struct side *s)
{
    struct end_options o = {.timeout = 10};
    struct end e;

    end_open(&e, s, &o);
    for (uint64_t n = 0; s->index == FIRST && n < 60; n++) {
        fill(e.buf, 20000, (unsigned)n);
        send_post(&e, IBV_WR_RDMA_WRITE, 1, 0, 20000);
        EXPECT(e.cq, 1, IBV_WC_SUCCESS);
        memset(e.buf, 0, 20000);
        send_post(&e, IBV_WR_RDMA_READ, 2, 0, 20000);
        EXPECT(e.cq, 2, IBV_WC_SUCCESS);
        CHECK(filled(e.buf, 20000, (unsigned)n), "round %d: the bytes", (int)n);
    }
    sync_sides(s);
}

static const struct test_case cases[] = {
    {"unreliable messages come whole or not at all", whole_or_nothing, true},
    {"reliable messages come all, in order", all_in_order, true},
    {"additions are done once", additions_once, true},
    {"writes and reads", writes_and_reads, true},
};
const struct theme theme_loss = {"loss", cases, COUNT(cases)};
