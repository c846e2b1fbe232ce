/* SPDX-License-Identifier: BSD-3-Clause */
/* Acknowledgements: contents, time and carrier of an ACK. Loop index 1: over the wrap of the numbers. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/conn/reliable/ack.h"
#include "tests/check.h"

#define DELAY 8000ull
#define EVERY 4

static struct mr_ack a;
static uint32_t first;

static void begin(int i)
{
    first = i ? 0u - 100 : 0;
    mr_ack_init(&a, first, DELAY, EVERY, 64);
    ck_assert(!mr_ack_owed(&a));
}

static void arrived(uint32_t seq, uint32_t expected, bool lossy, uint64_t now)
{
    mr_ack_arrived(&a, first + seq, first + expected, lossy, now);
}

#define WORD(now, the_cum, the_sack)                                                                                   \
    do {                                                                                                               \
        struct mr_ack_msg word = mr_ack_take(&a, now);                                                                 \
                                                                                                                       \
        ck_assert_uint_eq(word.cum, first + (the_cum));                                                                \
        ck_assert_uint_eq(word.sack, the_sack);                                                                        \
    } while (0)

START_TEST(lazily)
{
    begin(_i);
    arrived(0, 1, true, 1000);
    ck_assert(mr_ack_owed(&a));
    ck_assert_uint_eq(mr_ack_deadline(&a), 1000 + DELAY);
    arrived(1, 2, true, 2000);
    ck_assert_uint_eq(mr_ack_deadline(&a), 1000 + DELAY); /* the first packet counts */
    WORD(3000, 2, 0);
    ck_assert(!mr_ack_owed(&a));
    ck_assert_uint_eq(mr_ack_deadline(&a), UINT64_MAX);
    arrived(2, 3, true, 4000);
    ck_assert_uint_eq(mr_ack_deadline(&a), 4000 + DELAY);
}
END_TEST

START_TEST(at_once_after_several)
{
    begin(_i);
    for (uint32_t i = 0; i < EVERY; i++) {
        ck_assert(!i || mr_ack_deadline(&a) > 1000 + i);
        arrived(i, i + 1, true, 1000 + i);
    }
    ck_assert_uint_eq(mr_ack_deadline(&a), 1000 + EVERY - 1);
    WORD(2000, EVERY, 0);
    arrived(EVERY, EVERY + 1, true, 3000);
    ck_assert_uint_eq(mr_ack_deadline(&a), 3000 + DELAY);
}
END_TEST

START_TEST(native_links_call_for_none)
{
    begin(_i);
    for (uint32_t i = 0; i < 100; i++)
        arrived(i, i + 1, false, 1000);
    arrived(7, 100, false, 1000);
    arrived(102, 100, false, 1000);
    ck_assert(!mr_ack_owed(&a));
    WORD(1000, 100, 2); /* but are named by any ACK */
}
END_TEST

START_TEST(gaps_and_duplicates_at_once_but_not_often)
{
    begin(_i);
    arrived(0, 1, true, 1000);
    arrived(3, 1, true, 1001);
    ck_assert_uint_eq(mr_ack_deadline(&a), 1001);
    WORD(1001, 1, 2);
    arrived(4, 1, true, 1002);
    ck_assert_uint_eq(mr_ack_deadline(&a), 1001 + DELAY / MR_ACK_APART);
    arrived(0, 1, true, 1003); /* a duplicate */
    arrived(4, 1, true, 1004); /* another duplicate, of a kept packet */
    ck_assert_uint_eq(mr_ack_deadline(&a), 1001 + DELAY / MR_ACK_APART);
    WORD(50000, 1, 6);
    arrived(0, 1, true, 90000);
    ck_assert_uint_eq(mr_ack_deadline(&a), 90000);
    WORD(90000, 1, 6);
    arrived(2, 2, true, 99999); /* kept, but 1 is still missing: the caller's queue knows the expected number better */
    arrived(1, 5, true, 100000);
    WORD(100000, 5, 0);
}
END_TEST

START_TEST(sets_of_early_packets)
{
    bool have[400] = {false};
    uint32_t expected = 0;

    begin(_i);
    srand((unsigned)_i);
    for (int n = 0; n < 20000; n++) {
        uint32_t seq = (uint32_t)rand() % 300;
        uint64_t sack = 0;

        have[seq] = true;
        while (have[expected])
            expected++;
        arrived(seq, expected, rand() % 2, (uint64_t)n);
        for (unsigned i = 0; i < 64; i++)
            sack |= (uint64_t)have[expected + 1 + i] << i;
        /* Packets too far ahead to be noted at their arrival are missing, and acknowledged after the gap is closed. */
        ck_assert_uint_eq(mr_ack_take(&a, (uint64_t)n).cum, first + expected);
        ck_assert_uint_eq(mr_ack_take(&a, (uint64_t)n).sack & ~sack, 0);
        if (seq < expected + MR_ACK_EARLY && seq > expected && seq - expected <= 64)
            ck_assert(mr_ack_take(&a, (uint64_t)n).sack >> (seq - expected - 1) & 1);
        if (expected >= 280) { /* anew, further on */
            first += 301;
            memset(have, 0, sizeof have);
            expected = 0;
            mr_ack_init(&a, first, DELAY, EVERY, 64);
        }
    }
}
END_TEST

/* An ACK has room for 64 packets. Packets beyond are still owed, or the peer would send them again. */
START_TEST(what_a_word_cannot_name_stays_owed)
{
    begin(_i);
    arrived(70, 0, true, 1000);
    WORD(1000, 0, 0);
    ck_assert_uint_eq(mr_ack_deadline(&a), 1000 + DELAY);
    for (uint32_t i = 0; i < 10; i++)
        arrived(i, i + 1, false, 2000);
    WORD(2000, 10, 1ull << 59);
    ck_assert(!mr_ack_owed(&a));
    arrived(400, 10, true, 3000); /* beyond the noted range */
    WORD(3000, 10, 1ull << 59);
    ck_assert(mr_ack_owed(&a));
    for (uint32_t i = 10; i < 400; i++)
        arrived(i, i < 399 ? i + 1 : 401, false, 4000);
    WORD(4000, 401, 0);
    ck_assert(!mr_ack_owed(&a));
    /* numbers from long ago do not come back after half a turn */
    mr_ack_arrived(&a, first + 401, first + 401 + 0x7fffff00u, false, 5000);
    mr_ack_arrived(&a, first + 401 + 0x7fffff00u, first + 401 + 0x7fffff00u + 0x200u, false, 5000);
    mr_ack_take(&a, 6000);
    ck_assert(!mr_ack_owed(&a));
}
END_TEST

START_TEST(grants)
{
    begin(_i);
    ck_assert_uint_eq(mr_ack_take(&a, 1).flight, 64);
    mr_ack_set_flight(&a, EVERY, 128, 1000);
    ck_assert(!mr_ack_owed(&a));
    mr_ack_set_flight(&a, EVERY, 129, 1000);
    ck_assert_uint_eq(mr_ack_deadline(&a), 1000);
    ck_assert_uint_eq(mr_ack_take(&a, 1000).flight, 129);
    mr_ack_set_flight(&a, EVERY, 0, 1001);
    ck_assert(!mr_ack_owed(&a));
    ck_assert_uint_eq(mr_ack_take(&a, 1001).flight, 1);
    mr_ack_set_flight(&a, EVERY, 3, 1002);
    ck_assert(mr_ack_owed(&a));
}
END_TEST

/* Senders with a small allowance must hear often; a new peer hears at once. */
START_TEST(how_often)
{
    begin(_i);
    mr_ack_hasten(&a);
    arrived(0, 1, true, 1000);
    ck_assert_uint_eq(mr_ack_deadline(&a), 1000);
    mr_ack_take(&a, 1000);
    arrived(1, 2, true, 1100);
    ck_assert_uint_eq(mr_ack_deadline(&a), 1100 + DELAY);
    mr_ack_set_flight(&a, 2, 4, 1200);
    arrived(2, 3, true, 1200);
    ck_assert_uint_eq(mr_ack_deadline(&a), 1200);
    mr_ack_take(&a, 1200);
    mr_ack_set_flight(&a, 0, 1, 1300);
    arrived(3, 4, true, 1300);
    ck_assert_uint_eq(mr_ack_deadline(&a), 1300);
}
END_TEST

/* A packet with unknown time: an ACK not due at once is due some time after the next reading of the clock. */
START_TEST(times_may_come_later)
{
    begin(_i);
    arrived(0, 1, true, 0);
    ck_assert(mr_ack_owed(&a));
    ck_assert_uint_gt(mr_ack_deadline(&a), 1ull << 63);
    mr_ack_check(&a, 5000);
    ck_assert_uint_eq(mr_ack_deadline(&a), 5000 + DELAY);
    mr_ack_check(&a, 6000);
    ck_assert_uint_eq(mr_ack_deadline(&a), 5000 + DELAY);
    arrived(1, 2, true, 0);
    ck_assert_uint_eq(mr_ack_deadline(&a), 5000 + DELAY);
    for (uint32_t i = 2; i < EVERY; i++)
        arrived(i, i + 1, true, 0);
    ck_assert_uint_eq(mr_ack_deadline(&a), 0);
}
END_TEST

/* Every ACK within reach of the window comes out as it went in; a grant is rounded down by less than a third. */
START_TEST(on_the_wire)
{
    unsigned char out[MR_ACK_WIRE_MAX];

    srand(7);
    for (int i = 0; i < 20000; i++) {
        uint32_t base = (uint32_t)rand() * 2u + (uint32_t)(rand() & 1);
        struct mr_ack_msg in = {.cum = base + (uint32_t)rand() % 32768, .flight = 1 + (uint32_t)rand() % 32767}, got;
        size_t len;

        if (i % 3 == 0)
            in.cum = base - (uint32_t)rand() % (1u << 26);
        if (i % 4)
            in.sack = (uint64_t)rand() << 33 ^ (uint64_t)rand();
        len = mr_ack_encode(&in, out);
        ck_assert_uint_eq(len, in.sack ? MR_ACK_WIRE_MAX : MR_ACK_WIRE_MIN);
        ck_assert_uint_eq(mr_ack_decode(out, len, in.sack != 0, base, &got), len);
        ck_assert_uint_eq(got.cum, in.cum);
        ck_assert_uint_eq(got.sack, in.sack);
        ck_assert_uint_le(got.flight, in.flight);
        ck_assert_uint_gt(3 * got.flight, 2 * in.flight - 2);
        ck_assert_uint_eq(mr_ack_decode(out, len - 1, in.sack != 0, base, &got), 0);
    }
    for (uint32_t flight = 1; flight <= 4; flight++) {
        struct mr_ack_msg in = {.flight = flight}, got;

        mr_ack_encode(&in, out);
        mr_ack_decode(out, sizeof out, false, 0, &got);
        ck_assert_uint_eq(got.flight, flight);
    }
    for (unsigned code = 0; code < 32; code++) { /* any bytes */
        struct mr_ack_msg got;
        uint32_t head = code << 27;

        memcpy(out, &head, sizeof head);
        mr_ack_decode(out, sizeof out, false, 0, &got);
        ck_assert_uint_ge(got.flight, 1);
        ck_assert_uint_le(got.flight, 32767);
    }
}
END_TEST

/* An ACK that comes when 2^16 packets have passed is old, not new. */
START_TEST(an_old_word_stays_old)
{
    struct mr_ack_msg in = {.cum = first + 10, .flight = 64}, got;
    unsigned char out[MR_ACK_WIRE_MAX];

    mr_ack_encode(&in, out);
    for (uint32_t passed = 1; passed < 1u << 26; passed += 65537) {
        mr_ack_decode(out, MR_ACK_WIRE_MIN, false, in.cum + passed, &got);
        ck_assert_uint_eq(got.cum, in.cum);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ack");

    tcase_add_loop_test(t, lazily, 0, 2);
    tcase_add_loop_test(t, at_once_after_several, 0, 2);
    tcase_add_loop_test(t, native_links_call_for_none, 0, 2);
    tcase_add_loop_test(t, gaps_and_duplicates_at_once_but_not_often, 0, 2);
    tcase_add_loop_test(t, sets_of_early_packets, 0, 2);
    tcase_add_loop_test(t, what_a_word_cannot_name_stays_owed, 0, 2);
    tcase_add_loop_test(t, grants, 0, 2);
    tcase_add_loop_test(t, how_often, 0, 2);
    tcase_add_loop_test(t, times_may_come_later, 0, 2);
    tcase_add_test(t, on_the_wire);
    tcase_add_test(t, an_old_word_stays_old);
    return check_run(t, NULL);
}
