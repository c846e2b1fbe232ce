/* SPDX-License-Identifier: BSD-3-Clause */
/* The worst wait of a lane: against numbers made by hand, and against an arbiter that is run for every phase. */
#include "fabricd/policy/wait.h"
#include "tests/check.h"

#include <stdlib.h>

/* 8 Gb/s: a byte is a nanosecond. */
static const struct fabric_caps sdr = {.mtu = 2048, .rate_mbps = 8000, .hops = 1};

#define LOW (2048 + 30)

static struct qos_tables three(uint8_t limit)
{
    return (struct qos_tables){
        .num_low = 3, .low = {{0, 64}, {1, 32}, {2, 1}}, .num_high = 2, .high = {{3, 3}, {4, 1}}, .high_limit = limit};
}

START_TEST(by_hand)
{
    struct qos_tables t = three(0);
    struct wait_load small = {.high_bytes = 1024};
    unsigned high = 1024 + 30;
    /* one in service, one packet of the other high lane, and a low packet let in by its turn */
    ck_assert_uint_eq(tables_wait_ns(&t, 3, &sdr, &small), LOW + high + LOW);
    /* three packets of lane 3: two of one block and one that exceeds the weight */
    ck_assert_uint_eq(tables_wait_ns(&t, 4, &sdr, &small), LOW + 2 * 64 + high + 3 * LOW);
    /* a low lane: in service, the others' entries, and a high packet before each of them and before its own */
    ck_assert_uint_eq(tables_wait_ns(&t, 0, &sdr, &small), LOW + 2 * LOW + 3 * high);
    ck_assert_uint_eq(tables_wait_ns(&t, 2, &sdr, &small), LOW + 3 * LOW + 4 * high);
    ck_assert_uint_eq(tables_wait_ns(&t, 9, &sdr, &small), WAIT_UNBOUNDED);
}
END_TEST

START_TEST(by_rate_hops_and_limit)
{
    struct qos_tables t = three(255), one = {.num_low = 1, .low = {{0, 32}}};
    struct fabric_caps c = sdr;
    ck_assert_uint_eq(tables_wait_ns(&t, 0, &c, NULL), WAIT_UNBOUNDED);
    ck_assert_uint_eq(tables_wait_ns(&t, 3, &c, NULL), LOW + LOW); /* nothing of the low table goes between */
    t.high_limit = 2;
    ck_assert_uint_eq(tables_wait_ns(&t, 2, &c, NULL), LOW + 3 * LOW + 4 * (8192 + LOW - 1));
    ck_assert_uint_eq(tables_wait_ns(&one, 0, &c, NULL), LOW);
    c.hops = 3;
    ck_assert_uint_eq(tables_wait_ns(&one, 0, &c, NULL), 3 * LOW);
    c.hops = 0;
    ck_assert_uint_eq(tables_wait_ns(&one, 0, &c, NULL), WAIT_HOPS * LOW);
    c.rate_mbps = 16000;
    ck_assert_uint_eq(tables_wait_ns(&one, 0, &c, NULL), WAIT_HOPS * LOW / 2);
    c.rate_mbps = 0;
    ck_assert_uint_eq(tables_wait_ns(&one, 0, &c, NULL), 0);
}
END_TEST

/* The specification's arbiter for a limit of 0: all lanes but one always have packets of full size. */
struct arbiter {
    const struct qos_tables *t;
    unsigned at[2];
    int left[2];
    bool low_next;
};

static unsigned turn(struct arbiter *a, bool high, unsigned waiting, bool *mine)
{
    const struct vlarb *e = high ? a->t->high : a->t->low;
    unsigned n = high ? a->t->num_high : a->t->num_low, bytes = high ? 1024 + 30 : LOW;
    while (a->left[high] <= 0 || (e[a->at[high]].vl == waiting && !*mine)) {
        a->at[high] = (a->at[high] + 1) % n;
        a->left[high] = e[a->at[high]].weight;
    }
    *mine = e[a->at[high]].vl == waiting;
    a->left[high] -= (int)((bytes + 63) / 64);
    return bytes;
}

/* Bytes sent before the first packet of vl if that packet comes after `before` other packets. */
static unsigned wait_after(const struct qos_tables *t, unsigned vl, unsigned before)
{
    struct arbiter a = {.t = t, .left = {t->low[0].weight, t->high[0].weight}};
    unsigned bytes = 0;
    for (unsigned i = 0;; i++) {
        bool mine = i > before, high = !a.low_next && t->num_high;
        unsigned sent = turn(&a, high, vl, &mine);
        a.low_next = high;
        if (mine)
            return bytes;
        if (i >= before)
            bytes += sent;
    }
}

START_TEST(no_phase_waits_longer)
{
    struct wait_load small = {.high_bytes = 1024};
    for (unsigned seed = 0; seed < 200; seed++) {
        struct qos_tables t = {.num_low = 2 + seed % 5, .num_high = 2 + seed % 3};
        srandom(seed);
        for (unsigned i = 0; i < t.num_low; i++)
            t.low[i] = (struct vlarb){(uint8_t)(i % 4), (uint8_t)(1 + random() % 255)};
        for (unsigned i = 0; i < t.num_high; i++)
            t.high[i] = (struct vlarb){(uint8_t)(4 + i % 3), (uint8_t)(1 + random() % 3)};
        for (unsigned vl = 0; vl < 7; vl++) {
            uint64_t bound = tables_wait_ns(&t, vl, &sdr, &small);
            for (unsigned before = 0; bound != WAIT_UNBOUNDED && before < 100; before++)
                ck_assert_uint_le(wait_after(&t, vl, before), bound);
        }
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("wait");
    tcase_add_test(t, by_hand);
    tcase_add_test(t, by_rate_hops_and_limit);
    tcase_add_test(t, no_phase_waits_longer);
    return check_run(t, NULL);
}
