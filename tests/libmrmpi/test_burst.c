/* SPDX-License-Identifier: BSD-3-Clause */
/* Bursts: messages better read than sent eagerly, by the history of sends, the receivers' choices, and times. */
#include <stdlib.h>

#include "libmrmpi/p2p/choice/burst.h"
#include "tests/check.h"

#define KIB 1024u

static struct mr_burst b;
static struct mr_model model;
static char *memory;
static bool stays;                           /* registered memory stays registered */
static bool answers, reads;                  /* the receiver, at once; by reading */
static uint64_t clock_ns, eager_ns, read_ns; /* the present time; the time of a message */
static uint64_t copied_ns;                   /* the time of its copy */

static uint64_t now_ns(void)
{
    return clock_ns;
}

static uint64_t copy_ns(const void *buf, size_t len)
{
    return copied_ns;
}

static bool is_registered(const void *buf, size_t len)
{
    return stays;
}

static void setup(void)
{
    stays = true;
    ck_assert(mr_model_parse(&model, "", NULL, 0));
    b = (struct mr_burst){
        .model = &model, .devices = 1, .clock_ns = now_ns, .copy_ns = copy_ns, .is_registered = is_registered};
    copied_ns = 680;
    answers = reads = true;
    eager_ns = 740;
    read_ns = 370;
}

static bool join(size_t at, size_t len)
{
    bool offered;

    offered = mr_burst_join(&b, memory + at, len, true) == MR_BURST_OFFER;
    clock_ns += offered ? read_ns : eager_ns;
    if (offered && answers)
        mr_burst_taken(&b, reads);
    return offered;
}

/* A burst from num buffers, all at once or in sequence. Returns the number of messages to be read. */
static unsigned send(unsigned num, size_t len, size_t from, bool waits)
{
    unsigned read = 0;

    for (unsigned i = 0; i < num; i++) {
        read += join(from + i * len, len);
        if (waits)
            mr_burst_leave(&b);
    }
    for (unsigned i = 0; i < num && !waits; i++)
        mr_burst_leave(&b);
    return read;
}

/* Not copies, but the wire or its use by others takes the time. */
START_TEST(nothing_to_gain)
{
    unsigned read = 0;

    copied_ns = 200;
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(send(64, 8 * KIB, 0, false), 0);
    eager_ns = 390; /* the others have gone */
    read_ns = 300;
    for (int i = 0; i < 200; i++)
        send(64, 8 * KIB, 0, false);
    for (int i = 0; i < 10; i++)
        read += send(64, 8 * KIB, 0, false);
    ck_assert_uint_gt(read, 320);
}
END_TEST

/* Zero-copy when that pays: where enough is under way at a time, however long. */
START_TEST(sent_zero_copy)
{
    unsigned ways[4] = {0};

    copied_ns = 660; /* the clock says that something else takes the time: nothing is to be read */
    for (int i = 0; i < 1000; i++, clock_ns += MR_BURST_PACE_NS) { /* two under way, always */
        ways[mr_burst_join(&b, memory, 8 * KIB, true)]++;
        if (i)
            mr_burst_leave(&b);
    }
    ck_assert_uint_eq(ways[MR_BURST_COPY], 16);
    ck_assert_uint_eq(ways[MR_BURST_ANSWER], 984);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(mr_burst_join(&b, memory, 8 * KIB, true), i + 2 < 3 ? MR_BURST_ANSWER : MR_BURST_ZSEND);
    ck_assert_int_eq(mr_burst_alone(&b, memory, 8 * KIB), MR_BURST_ANSWER);
    ck_assert_int_eq(mr_burst_alone(&b, memory + 64 * KIB, 8 * KIB), MR_BURST_COPY);
}
END_TEST

/*
 * A burst's first few buffers are registered first. Not the last buffers, even if another registration is due just
 * then.
 */
START_TEST(the_end_is_registered_last)
{
    unsigned known = 0;

    for (unsigned n = 0; known < 16; n++) {
        ck_assert_uint_lt(n, 200);
        known = 0;
        for (unsigned i = 0; i < 16; i++) {
            bool is;

            clock_ns += i == 15 ? 2 * MR_BURST_PACE_NS : eager_ns;
            is = mr_burst_join(&b, memory + i * 16 * KIB, 8 * KIB, true) != MR_BURST_COPY;
            ck_assert(!is || i < 13 || known >= 8);
            known += is;
        }
        for (unsigned i = 0; i < 16; i++)
            mr_burst_leave(&b);
    }
}
END_TEST

/* A burst longer than the one before has no known end. */
START_TEST(no_end_is_known)
{
    unsigned copies = 0;

    for (unsigned i = 0; i < 10; i++) /* bursts of 128 KiB */
        send(16, 8 * KIB, 0, false);
    for (unsigned i = 0; i < 16; i++)
        mr_burst_join(&b, memory + i * 8 * KIB, 8 * KIB, true);
    for (unsigned i = 0; i < 100; i++) {
        clock_ns += 2 * MR_BURST_PACE_NS;
        copies += mr_burst_join(&b, memory + KIB * KIB, 8 * KIB, true) == MR_BURST_COPY;
        mr_burst_leave(&b);
    }
    ck_assert_uint_le(copies, 16 + MR_BURST_SKIP);
}
END_TEST

/* A buffer is worth its registration when its copies have taken as long: of two devices twice as long, ... */
START_TEST(worth)
{
    unsigned copies = 0;

    b.devices = 2;
    copied_ns = 200; /* 41 GB/s */
    while (mr_burst_alone(&b, memory, 8 * KIB) == MR_BURST_COPY && copies < 1000)
        copies++;
    ck_assert_uint_eq(copies, (2 * model.register_ns + 199) / 200);
}
END_TEST

/* Unmapped memory is no longer registered: new memory there is copied until registering pays, too. */
START_TEST(unmapped)
{
    for (unsigned i = 0; i < 16 + MR_BURST_SAMPLES; i++)
        mr_burst_alone(&b, memory, 8 * KIB);
    ck_assert_int_eq(mr_burst_alone(&b, memory, 8 * KIB), MR_BURST_ANSWER);
    stays = false;
    ck_assert_int_eq(mr_burst_alone(&b, memory, 8 * KIB), MR_BURST_COPY);
    clock_ns += 100 * MR_BURST_PACE_NS;
    stays = true; /* others: this one was not requested */
    for (int i = 0; i < 15; i++)
        ck_assert_int_eq(mr_burst_alone(&b, memory, 8 * KIB), MR_BURST_COPY);
    for (int i = 0; i < 16; i++)
        mr_burst_alone(&b, memory, 8 * KIB);
    ck_assert_int_eq(mr_burst_alone(&b, memory, 8 * KIB), MR_BURST_ANSWER);
}
END_TEST

/* A registration wanted but not made, because no message took it, may follow soon. */
START_TEST(not_taken)
{
    stays = false;
    for (unsigned i = 0; i < 16 + MR_BURST_SAMPLES; i++)
        mr_burst_alone(&b, memory, 8 * KIB);
    ck_assert_int_eq(mr_burst_alone(&b, memory, 8 * KIB), MR_BURST_COPY);
    clock_ns += MR_BURST_PACE_NS;
    b.sent.skip = 0;
    ck_assert_int_eq(mr_burst_alone(&b, memory, 8 * KIB), MR_BURST_ANSWER);
}
END_TEST

/* While the gain of reading is unknown, there is one registration in 1 ms; the next comes soon once known. */
START_TEST(soon_after_it_is_known)
{
    for (unsigned i = 0; i < 4000 && !mr_trial_pays(&b.trials); i++)
        send(16, 16 * KIB, 0, false);
    ck_assert(mr_trial_pays(&b.trials));
    ck_assert_uint_le(b.sent.next_ns, clock_ns + MR_BURST_FAST_NS);
}
END_TEST

/* Simultaneous copies delay each other, as far as timed samples show. */
START_TEST(crowds)
{
    for (unsigned i = 1; i < MR_BURST_SAMPLES; i++)
        ck_assert(!mr_burst_delays(&b, memory, 8 * KIB, 56 * KIB));
    ck_assert(mr_burst_delays(&b, memory, 8 * KIB, 56 * KIB));
    ck_assert(!mr_burst_delays(&b, memory, 8 * KIB, 16 * KIB));
    b.copied_ns /= 4;
    ck_assert(!mr_burst_delays(&b, memory, 8 * KIB, 56 * KIB));
    ck_assert(mr_burst_delays(&b, memory, 8 * KIB, 112 * KIB));
}
END_TEST

/* A whole buffer is worth registering after this number of copies, and waits for no single message. */
START_TEST(wholes)
{
    for (unsigned i = 0; i < MR_BURST_SAMPLES; i++)
        mr_burst_delays(&b, memory, 8 * KIB, 56 * KIB);
    stays = false;
    b.sent.next_ns = clock_ns + MR_BURST_PACE_NS;
    for (int i = 0; i < 3; i++)
        ck_assert(!mr_burst_whole(&b, memory, 56 * KIB, false));
    ck_assert(mr_burst_whole(&b, memory, 56 * KIB, false));
    ck_assert_uint_eq(b.sent.next_ns, clock_ns + MR_BURST_PACE_NS);
    ck_assert(!mr_burst_whole(&b, memory, 56 * KIB, false)); /* one at a time */
    clock_ns += MR_BURST_FAST_NS;
    ck_assert(mr_burst_whole(&b, memory, 56 * KIB, false));
    stays = true;
    ck_assert(mr_burst_whole(&b, memory, 56 * KIB, false));
}
END_TEST

/* A sample is of memory that there is, however long the buffer. */
START_TEST(long_samples)
{
    for (unsigned i = 0; i < 2 * MR_BURST_SAMPLES; i++)
        mr_burst_whole(&b, memory, 4096 * KIB, true);
    ck_assert_uint_eq(b.copied, MR_BURST_SAMPLES * MR_BURST_SAMPLE);
}
END_TEST

/* ... and never, if copies take no time. */
START_TEST(worth_nothing)
{
    copied_ns = 0;
    for (unsigned i = 0; i < 100000; i++, clock_ns += MR_BURST_PACE_NS) {
        ck_assert_int_eq(mr_burst_alone(&b, memory, 64 * KIB), MR_BURST_COPY);
        ck_assert_int_eq(mr_burst_join(&b, memory, 64 * KIB, true), MR_BURST_COPY);
        ck_assert(!mr_burst_offered(&b, memory, 64 * KIB));
    }
}
END_TEST

START_TEST(one_by_one)
{
    for (int i = 0; i < 1000; i++)
        ck_assert_uint_eq(send(64, 8 * KIB, 0, true), 0);
}
END_TEST

/* Many bursts of 512 KiB. Number of messages to be read, of 64 in each. */
static unsigned many(unsigned bursts)
{
    unsigned read = 0;

    for (unsigned i = 0; i < bursts; i++)
        read += send(64, 8 * KIB, 0, false);
    return read;
}

/*
 * The number of bursts until all 64 buffers are registered, eight of them one in 1 ms and the others one in 0.1, and
 * both protocols have been timed; a burst takes 24 us at least.
 */
enum { LEARN = 16 + 8 * 1000 / 24 + 56 * 100 / 24 + 64 };

START_TEST(bursts_of_the_same_buffers)
{
    ck_assert_uint_eq(many(16), 0);            /* 128 KiB from each */
    ck_assert_uint_le(many(6 * 1000 / 48), 7); /* one in 1 ms: eagerly a burst takes 47 us */
    many(LEARN);
    ck_assert_uint_eq(many(10), 640);
    ck_assert_uint_eq(send(1, 8 * KIB, 0, false), 1); /* a single message cannot be known as such, */
    ck_assert_uint_eq(send(1, 8 * KIB, 0, false), 0); /* and then it is */
    /* but as much is under way as at the time of the finding, except for the first part of the burst */
    ck_assert_uint_eq(send(64, 8 * KIB, 0, false), 64 - 4 * model.shallow / (8 * KIB) + 1);
    ck_assert_uint_eq(send(64, 8 * KIB, 0, false), 64);
}
END_TEST

/* Each is offered for the first time, and in trials that become rare. */
START_TEST(reading_that_is_slower)
{
    read_ns = 700; /* not enough to be sure */
    many(LEARN);
    ck_assert_uint_le(many(20000), 20000 * 64 / 50);
}
END_TEST

START_TEST(times_that_change)
{
    many(LEARN);
    ck_assert_uint_ge(many(10000), 10000 * 64 / 100 * 97); /* the other way is tried now and then */
    read_ns = 1500;                                        /* somebody else is on the wire */
    many(24);                                              /* 12 MiB */
    ck_assert_uint_le(many(10000), 10000 * 64 / 33);
    read_ns = 370;
    many(128 * 5);
    ck_assert_uint_ge(many(10000), 10000 * 64 / 100 * 97);
    eager_ns = 700;
    read_ns = 720;
    many(128 * 5);
    ck_assert_uint_le(many(10000), 10000 * 64 / 50);
}
END_TEST

/*
 * A sender without copies is faster than the copying receiver until the credit is used up, again and again: most
 * samples say that reading is slower, wrongly.
 */
START_TEST(faster_than_copies_for_a_while)
{
    unsigned read = 0;

    many(LEARN);
    for (unsigned i = 0; i < 2000; i++) {
        eager_ns = i % 8 ? 300 : 3600;
        read += many(1);
    }
    ck_assert_uint_ge(read, 2000 * 64 / 100 * 95);
}
END_TEST

/* None is read while messages come the other way, too, except in new buffers; all are read again afterwards. */
START_TEST(both_ways)
{
    unsigned offered = 0;

    /* and from the beginning none at all: a program that waits for its sends before receiving may depend on this */
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_eq(many(1), 0);
        for (int k = 0; k < 64; k++)
            mr_burst_filled(&b, memory + MR_BURST_BUFFERS * 4 * KIB, 8 * KIB);
    }
    setup();
    many(LEARN);
    for (int i = 0; i < 1000; i++) {
        unsigned now = many(1);

        offered += i >= 16 ? now : 0;
        for (int k = 0; k < 64; k++)
            mr_burst_filled(&b, memory + MR_BURST_BUFFERS * 4 * KIB, 8 * KIB);
    }
    ck_assert_uint_eq(offered, 0);
    many(64);
    ck_assert_uint_eq(many(10), 640);
}
END_TEST

START_TEST(bursts_that_are_too_short)
{
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(send(7, 8 * KIB, 0, false), 0);
        ck_assert_uint_eq(send(3, 16 * KIB, 0, false), 0);
        ck_assert_uint_eq(send(15, 4 * KIB, 0, false), 0);
    }
}
END_TEST

/* Always a few under way: the burst never ends. */
START_TEST(a_sliding_window)
{
    unsigned offered = 0;

    for (unsigned i = 0; i < 40000; i++) {
        bool now = join(i % 8 * 16 * KIB, 16 * KIB);

        offered += i >= 30000 && now;
        if (i >= 4)
            mr_burst_leave(&b);
    }
    ck_assert_uint_ge(offered, 9700); /* the other way is tried now and then */
}
END_TEST

START_TEST(memory_that_is_never_used_again)
{
    for (size_t i = 0; i < 100; i++)
        ck_assert_uint_eq(send(64, 8 * KIB, i * 64 * 8 * KIB, false), 0);
    /* more buffers than remembered: 8,192, in turn */
    for (int again = 0; again < 20; again++)
        for (size_t i = 0; i < 128; i++)
            ck_assert_uint_eq(send(64, 8 * KIB, i * 64 * 8 * KIB, false), 0);
}
END_TEST

START_TEST(receivers_that_refuse)
{
    unsigned offers = 0;

    many(LEARN);
    reads = false;
    mr_burst_taken(&b, false);
    for (int i = 0; i < 1000; i++) {
        unsigned offered = send(64, 8 * KIB, 0, false);

        ck_assert_uint_le(offered, 1);
        offers += offered;
    }
    ck_assert_uint_gt(offers, 16);
    ck_assert_uint_lt(offers, 25);

    /* reads at last: later buffers are read, too, after the longest rest */
    reads = true;
    many(MR_BACKOFF_MOST / 64 + 32);
    ck_assert_uint_eq(send(64, 8 * KIB, 0, false), 64);
    mr_burst_taken(&b, false);
    ck_assert_uint_eq(send(64, 8 * KIB, 0, false), 0);
    ck_assert_uint_eq(send(64, 8 * KIB, 0, false), 64);
}
END_TEST

/* The first answer comes after the burst, or never. */
START_TEST(one_offer_until_the_first_answer)
{
    answers = false;
    for (int i = 0; i < LEARN; i++)
        ck_assert_uint_le(send(64, 8 * KIB, 0, false), 1);
    mr_burst_taken(&b, true);
    many(LEARN);
    ck_assert_uint_eq(send(64, 8 * KIB, 0, false), 64);
}
END_TEST

/*
 * Buffers of adjacent pages, or one in each block of as many pages as places, are all remembered, wherever they begin.
 */
START_TEST(each_has_its_place)
{
    for (int apart = 0; apart < 2; apart++) {
        size_t step = (apart ? MR_BURST_BUFFERS : 1) * 4 * KIB;
        unsigned num = apart ? 15 : MR_BURST_BUFFERS - 1;

        for (unsigned from = 0; from < MR_BURST_BUFFERS; from += 93) {
            char *at = memory + from * 4 * KIB;

            setup();
            many(1); /* copies have been timed */
            for (unsigned k = 0; k < 8; k++)
                for (unsigned i = 0; i < num; i++)
                    mr_burst_filled(&b, at + i * step, 16 * KIB);
            for (unsigned i = 0; i < num; i++) {
                clock_ns += MR_BURST_FAST_NS;
                ck_assert(mr_burst_offered(&b, at + i * step, 16 * KIB));
            }
        }
    }
}
END_TEST

START_TEST(where_it_goes)
{
    bool first = (uintptr_t)memory / (4 * KIB) % MR_BURST_BUFFERS == 0;
    size_t apart = (MR_BURST_BUFFERS - 1) * 4 * KIB;
    char *other = first ? memory - apart : memory + apart; /* with the same place */

    many(1); /* copies have been timed */
    for (int i = 0; i < 8; i++) {
        ck_assert(!mr_burst_offered(&b, memory, 16 * KIB));
        mr_burst_filled(&b, memory + 16 * KIB, 16 * KIB);
    }
    ck_assert(mr_burst_offered(&b, memory, 16 * KIB));
    clock_ns += MR_BURST_FAST_NS - 1;
    for (unsigned i = 0; i < 100; i++)
        ck_assert(!mr_burst_offered(&b, memory + 16 * KIB, 16 * KIB)); /* too soon after the other */
    ck_assert(mr_burst_offered(&b, memory, 16 * KIB));
    clock_ns += 1;
    ck_assert(mr_burst_offered(&b, memory + 16 * KIB, 16 * KIB) || mr_burst_offered(&b, memory + 16 * KIB, 16 * KIB));
    ck_assert(!mr_burst_offered(&b, other, 16 * KIB));
    ck_assert(!mr_burst_offered(&b, memory, 16 * KIB));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("burst");

    memory = aligned_alloc(4 * KIB, 64 * KIB * KIB); /* only its addresses are used */
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, the_end_is_registered_last);
    tcase_add_test(c, no_end_is_known);
    tcase_add_test(c, worth);
    tcase_add_test(c, unmapped);
    tcase_add_test(c, soon_after_it_is_known);
    tcase_add_test(c, not_taken);
    tcase_add_test(c, worth_nothing);
    tcase_add_test(c, one_by_one);
    tcase_add_test(c, nothing_to_gain);
    tcase_add_test(c, sent_zero_copy);
    tcase_add_test(c, bursts_of_the_same_buffers);
    tcase_add_test(c, reading_that_is_slower);
    tcase_add_test(c, times_that_change);
    tcase_add_test(c, faster_than_copies_for_a_while);
    tcase_add_test(c, both_ways);
    tcase_add_test(c, bursts_that_are_too_short);
    tcase_add_test(c, crowds);
    tcase_add_test(c, wholes);
    tcase_add_test(c, long_samples);
    tcase_add_test(c, a_sliding_window);
    tcase_add_test(c, memory_that_is_never_used_again);
    tcase_add_test(c, receivers_that_refuse);
    tcase_add_test(c, one_offer_until_the_first_answer);
    tcase_add_test(c, each_has_its_place);
    tcase_add_test(c, where_it_goes);
    return check_run(c, NULL);
}
