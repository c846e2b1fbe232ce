/* SPDX-License-Identifier: BSD-3-Clause */
/* The pace of reads: the amount over a time, for any interval of polls, and the report to fabricd. */
#include <stdlib.h>

#include "libmrmpi/conn/route/pace.h"
#include "tests/check.h"

#define MS 1000000ull

static struct mr_pace p;
static uint64_t now_ns;

static void begin(uint64_t rate)
{
    p = (struct mr_pace){0};
    now_ns = 77 * MS;
    mr_pace_set(&p, rate, 0, now_ns);
}

/* Bytes read in ns, with a poll every step_ns and always more to read. */
static uint64_t run(uint64_t ns, uint64_t step_ns)
{
    uint64_t sum = 0;

    for (uint64_t end = now_ns + ns; now_ns < end; now_ns += step_ns)
        while (p.bucket.left > 0 || mr_pace_fill(&p, now_ns)) {
            mr_pace_take(&p, MR_PACE_PIECE);
            sum += MR_PACE_PIECE;
        }
    return sum;
}

START_TEST(the_rate_is_kept)
{
    static const uint64_t rates[] = {1000, 5000000, 473000000, 1575360000, 25000000000};

    for (unsigned i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        begin(rates[i]);
        uint64_t most = rates[i] * (100 * MS) / 1000000000 + MR_PACE_DEPTH + MR_PACE_PIECE;
        uint64_t least = rates[i] * (100 * MS) / 1000000000;
        uint64_t got = run(100 * MS, rates[i] > 2000000000 ? 97 : 997);

        ck_assert_uint_le(got, most);
        ck_assert_uint_ge(got + least / 1000 + MR_PACE_PIECE, least);
    }
}
END_TEST

/* Without a poll for a while, the excess over the bucket is lost. */
START_TEST(nothing_is_saved_up)
{
    begin(1000000000);
    run(MS, 1000);
    now_ns += 50 * MS;
    ck_assert_uint_le(run(1, 1), MR_PACE_DEPTH + MR_PACE_PIECE);
    now_ns += 50000 * MS; /* the product would not fit into 64 bits */
    ck_assert(mr_pace_fill(&p, now_ns));
    ck_assert_int_eq(p.bucket.left, MR_PACE_DEPTH);
    ck_assert(mr_pace_fill(&p, now_ns - MS)); /* a clock that goes back takes nothing away */
}
END_TEST

/* The debt at the old rate is paid at the old rate until now, and at the new rate from now on. */
START_TEST(another_rate)
{
    begin(1000000000);
    run(MS, 1000);
    mr_pace_set(&p, 100000000, 0, now_ns);
    uint64_t got = run(10 * MS, 1000);
    ck_assert_uint_ge(got + MR_PACE_PIECE, 1000000);
    ck_assert_uint_le(got, 1000000 + MR_PACE_DEPTH + MR_PACE_PIECE);
    mr_pace_set(&p, 0, 0, now_ns);
    ck_assert_uint_eq(p.bucket.rate, 0);
    mr_pace_set(&p, 5, 0, now_ns);
    ck_assert_int_eq(p.bucket.left, MR_PACE_DEPTH);
}
END_TEST

/*
 * Packets, longer than the bucket: two may follow each other at once after a pause, no more; and a sender that polls as
 * late as the bucket allows loses nothing. A lower rate has a smaller bucket.
 */
START_TEST(packets_keep_apart)
{
    static const uint64_t rates[] = {100000000, 525120000, 1575360000};

    for (unsigned i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        uint64_t last = now_ns, sum = 0, least = UINT64_MAX, began;
        int64_t depth;

        p = (struct mr_pace){.late_ns = MR_PACE_LATE_NS};
        now_ns = 77 * MS;
        mr_pace_set(&p, MR_PACE_ALONE, 0, now_ns);
        mr_pace_set(&p, rates[i], 0, now_ns);
        depth = (int64_t)(rates[i] / 1000 * MR_PACE_LATE_NS / 1000000) + 1;
        ck_assert_int_le(p.bucket.left, depth);
        now_ns += MS;
        began = now_ns;
        while (now_ns < began + 10 * MS) {
            if (p.bucket.left <= 0 && !mr_pace_fill(&p, now_ns)) {
                now_ns += mr_pace_wait_ns(&p) + (sum / MR_PACE_PACKET % 3) * (MR_PACE_LATE_NS / 3);
                continue;
            }
            mr_pace_take(&p, MR_PACE_PACKET);
            sum += MR_PACE_PACKET;
            if (sum > 2 * MR_PACE_PACKET && now_ns - last < least)
                least = now_ns - last;
            last = now_ns;
        }
        if (depth < MR_PACE_PACKET)
            ck_assert_uint_ge(least + 2, ((uint64_t)MR_PACE_PACKET - (uint64_t)depth) * 1000 * MS / rates[i]);
        ck_assert_uint_ge(sum + 2 * MR_PACE_PACKET, rates[i] / 100);
        ck_assert_uint_le(sum, rates[i] / 100 + 2 * MR_PACE_PACKET);
    }
}
END_TEST

/* Bytes received in packets reduce the reads, down to half. */
START_TEST(packets_take_their_part)
{
    uint64_t arrived = 0;

    begin(1000000000);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t sum = 0;
        for (unsigned k = 0; k < 100; k++) {
            sum += run(MS / 10, 1000);
            mr_pace_arrived(&p, arrived += i ? 90000 : 30000, now_ns);
        }
        ck_assert_uint_ge(sum, i ? 4900000 : 6900000);
        ck_assert_uint_le(sum, i ? 5100000 : 7100000);
    }
    ck_assert_uint_ge(p.taken, 19900000);
}
END_TEST

/* However often they are counted: a packet may be more than half of the reads between two polls. */
START_TEST(long_packets_take_their_part)
{
    uint64_t arrived = 0, sum = 0;

    begin(80000000);
    for (unsigned k = 0; k < 4000; k++) { /* one packet in 60 us, a poll in 20 */
        sum += run(MS / 50, 1000);
        mr_pace_arrived(&p, arrived += k % 3 ? 0 : 1920, now_ns);
    }
    ck_assert_uint_ge(sum, 3750000); /* 32 of the 80 MB/s are packets' */
    ck_assert_uint_le(sum, 3930000);
    for (unsigned k = 0; k < 1000; k++)
        mr_pace_arrived(&p, arrived += 1 << 20, now_ns += MS / 50); /* more than their limit: the excess is forgotten */
    ck_assert_uint_le(p.owed, MR_PACE_READING);
    mr_pace_set(&p, 0, arrived, now_ns);
    mr_pace_arrived(&p, arrived += 1 << 20, now_ns);
    ck_assert_uint_eq(p.owed, 0);
}
END_TEST

START_TEST(what_fabricd_hears)
{
    struct mr_pace two[2] = {{.bucket.rate = 1}, {.bucket.rate = 1}};
    struct mr_pace_report r = {.since_ns = 5 * MS};

    now_ns = 5 * MS;
    ck_assert(!mr_pace_report(&r, two, 2, now_ns += 2 * MS)); /* nothing was read */
    two[1].waited = true;
    ck_assert(mr_pace_report(&r, two, 2, now_ns)); /* at once */
    ck_assert_uint_eq(r.told, MR_PACE_ALL);
    ck_assert(!two[1].waited);
    ck_assert(!mr_pace_report(&r, two, 2, now_ns += 2 * MS));
    two[0].waited = true;
    ck_assert(!mr_pace_report(&r, two, 2, now_ns += 2 * MS)); /* still */
    two[0].taken = 3000000;
    two[1].taken = 6000000;
    ck_assert(!mr_pace_report(&r, two, 2, now_ns += 2 * MS));
    ck_assert(mr_pace_report(&r, two, 2, now_ns += 1 * MS)); /* a whole interval without waiting */
    ck_assert_uint_eq(r.told, 2500000);                      /* 6 MB in 3 ms, and a quarter */
    two[1].taken = 7000000;
    ck_assert(!mr_pace_report(&r, two, 2, now_ns += 3 * MS)); /* nearly the same */
    two[1].taken = 3000000;
    ck_assert(mr_pace_report(&r, two, 2, now_ns += 3 * MS));
    ck_assert_uint_eq(r.told, 1250000);
    ck_assert(mr_pace_report(&r, two, 2, now_ns += 3 * MS));
    ck_assert_uint_eq(r.told, 0);
    ck_assert(!mr_pace_report(&r, two, 2, now_ns += 30 * MS));
}
END_TEST

/* Whatever happens when: a few hundred times a second at most. */
START_TEST(it_is_not_told_too_often)
{
    struct mr_pace one = {.bucket.rate = 1};
    struct mr_pace_report r = {0};
    unsigned told = 0;

    srand(1);
    for (now_ns = 1000 * MS; now_ns < 2000 * MS; now_ns += (uint64_t)rand() % MS) {
        one.waited |= rand() % 4 == 0;
        one.taken += (uint64_t)rand() % 10000000;
        told += mr_pace_report(&r, &one, 1, now_ns);
    }
    ck_assert_uint_le(told, 2 * 1000 * MS / MR_PACE_INTERVAL_NS);
    ck_assert_uint_gt(told, 10);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pace");

    tcase_add_test(t, the_rate_is_kept);
    tcase_add_test(t, nothing_is_saved_up);
    tcase_add_test(t, another_rate);
    tcase_add_test(t, packets_keep_apart);
    tcase_add_test(t, packets_take_their_part);
    tcase_add_test(t, long_packets_take_their_part);
    tcase_add_test(t, what_fabricd_hears);
    tcase_add_test(t, it_is_not_told_too_often);
    return check_run(t, NULL);
}
