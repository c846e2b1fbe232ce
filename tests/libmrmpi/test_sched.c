/* SPDX-License-Identifier: BSD-3-Clause */
/* The communication scheduler's plans, and the completion filter that puts the stripes together again. */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/net/stripe/filter.h"
#include "libmrmpi/conn/route/sched.h"
#include "tests/check.h"

#define KIB 1024u

static struct mr_policy soonest, fair, adaptive;

static void set(struct mr_load *load, unsigned n, uint32_t weight)
{
    for (unsigned i = 0; i < n; i++)
        load[i] = (struct mr_load){.up = true, .weight = weight};
}

/* Picks and charges. */
static unsigned take(struct mr_sched *s, const struct mr_load *load, unsigned n, uint64_t len)
{
    unsigned i = mr_sched_pick(&fair, s, load, n, 0, len);

    mr_sched_charge(&fair, s, load, n, i, len);
    return i;
}

START_TEST(round_robin_skips_those_that_are_down)
{
    struct mr_load load[4];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned seen[8];

    set(load, 4, 1);
    load[2].up = false;
    for (unsigned i = 0; i < 8; i++)
        seen[i] = take(&s, load, 4, 100);
    for (unsigned i = 0; i < 8; i++)
        ck_assert_uint_eq(seen[i], i % 3 == 2 ? 3 : i % 3);
    load[0].up = load[1].up = load[3].up = false;
    ck_assert_uint_eq(mr_sched_pick(&fair, &s, load, 4, 0, 4096), 4);
    ck_assert_uint_eq(mr_sched_pick(&fair, &s, load, 1, 0, 4096), 1);
    ck_assert_uint_eq(mr_sched_pick(&fair, &s, load, 0, 0, 4096), 0);
}
END_TEST

/* Picks and charges a short packet in a few instructions where that is possible. */
static unsigned take_even(struct mr_sched *s, const struct mr_load *load, unsigned n, unsigned len, unsigned *few)
{
    unsigned last = mr_sched_last(s, n);

    ++*few;
    if (s->answers && mr_sched_takes_again(s, load, last)) {
        mr_sched_take_again(s, last, len);
        return last;
    }
    if (!s->answers && (mr_sched_is_turn(s) || mr_sched_find_least(s, load)))
        return mr_sched_take_turn(s, n, len);
    --*few;
    return take(s, load, n, len);
}

static uint32_t up_of(const struct mr_load *load, unsigned n)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < n; i++)
        set |= (uint32_t)load[i].up << i;
    return set;
}

/* Packets of one length without answers: the turns are those of pick, from the first on. */
START_TEST(even_ones_take_turns)
{
    enum { ROUNDS = 2000 };
    unsigned n = 2 + (unsigned)_i, few = 0;
    struct mr_sched a = {.due = (uint64_t[MR_SUBS_MAX]){0}}, b = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    struct mr_load load[MR_SUBS_MAX];

    set(load, n, MR_WEIGHT_MAX);
    mr_sched_even(&fair, &b, up_of(load, n), n);
    for (unsigned r = 0; r < ROUNDS; r++)
        ck_assert_uint_eq(take_even(&b, load, n, 8, &few), take(&a, load, n, 8));
    ck_assert_uint_eq(few, ROUNDS);
    load[0].weight = MR_WEIGHT_MAX / 2;
    ck_assert(!mr_sched_find_least(&b, load)); /* no longer even */
}
END_TEST

/* The subchannel that gets the longest packet in each round is passed over after carrying a quantum more. */
START_TEST(even_ones_are_passed_over)
{
    unsigned n = 2 + (unsigned)_i, few = 0;
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    struct mr_load load[MR_SUBS_MAX];

    set(load, n, MR_WEIGHT_MAX);
    mr_sched_even(&fair, &s, up_of(load, n), n);
    for (unsigned r = 0; r < 2000 * n; r++) {
        uint64_t most = 0, least = UINT64_MAX;

        take_even(&s, load, n, s.next == 0 ? 199 : 8, &few);
        for (unsigned i = 0; i < n; i++) {
            most = s.due[i] > most ? s.due[i] : most;
            least = s.due[i] < least ? s.due[i] : least;
        }
        ck_assert_uint_le(most - least, MR_SCHED_QUANTUM + MR_SCHED_PACKET + 199);
    }
    ck_assert_uint_gt(few, 1700 * n);
}
END_TEST

/*
 * Packets of all lengths, answers among them, while subchannels go down and come back: the bytes carried since then by
 * open subchannels differ by two quanta and the longest packet at most, plus an equal initial difference, and all
 * packets go over open subchannels.
 */
START_TEST(even_ones_carry_the_same)
{
    enum { ROUNDS = 20000, LONGEST = 20000 + MR_SCHED_PACKET };
    unsigned n = 2 + (unsigned)_i, few = 0;
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    uint64_t carried[MR_SUBS_MAX] = {0};
    struct mr_load load[MR_SUBS_MAX];

    srand((unsigned)_i + 1);
    set(load, n, MR_WEIGHT_MAX);
    mr_sched_even(&fair, &s, up_of(load, n), n);
    for (unsigned r = 0; r < ROUNDS; r++) {
        unsigned len = rand() % 8 ? 8 : rand() % 2 ? (unsigned)rand() % 200 : (unsigned)rand() % 20000, got;
        uint64_t most = 0, least = UINT64_MAX;

        if (rand() % 100 == 0) {
            load[(unsigned)rand() % n].up = rand() % 3;
            mr_sched_even(&fair, &s, up_of(load, n), n);
            memset(carried, 0, sizeof carried);
        }
        s.answers = rand() % 5 == 0;
        if (!up_of(load, n))
            continue;
        got = len < 200 ? take_even(&s, load, n, len, &few) : take(&s, load, n, len);
        ck_assert(load[got].up);
        carried[got] += len + MR_SCHED_PACKET;
        for (unsigned i = 0; i < n; i++) {
            if (!load[i].up)
                continue;
            most = carried[i] > most ? carried[i] : most;
            least = carried[i] < least ? carried[i] : least;
        }
        ck_assert_uint_le(most - least, 2 * (2 * MR_SCHED_QUANTUM + LONGEST));
    }
    ck_assert_uint_gt(few, ROUNDS / 5);
}
END_TEST

/* The first subchannel posted to has an advantage. */
START_TEST(each_is_the_first_in_turn)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_load load[3];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned first[3] = {0};

    set(load, 3, 1);
    for (unsigned i = 0; i < 30; i++) {
        ck_assert_uint_eq(mr_sched_plan(&adaptive, &s, load, 3, 1024 * KIB, 16 * KIB, 4096, plan), 3);
        first[plan[0].sub]++;
    }
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_eq(first[i], 10);
}
END_TEST

START_TEST(short_ones_stay_whole_and_take_turns)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_load load[2];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};

    set(load, 2, 1);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_uint_eq(mr_sched_plan(&adaptive, &s, load, 2, 16 * KIB - 1, 16 * KIB, 4096, plan), 1);
        ck_assert_uint_eq(plan[0].sub, i % 2);
        ck_assert_uint_eq(plan[0].len, 16 * KIB - 1);
    }
}
END_TEST

/*
 * A rail of a quarter of the rate gets the packets that the fast rail, with two under way, would carry later; not the
 * first ones.
 */
START_TEST(short_ones_go_where_they_are_done_first)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_load load[2];
    struct mr_sched s = {.kib_time = mr_sched_kib_time(8000), .due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned slow = 0;

    set(load, 2, 1024);
    load[1].weight = 256;
    for (unsigned i = 0; i < 10; i++) {
        mr_sched_plan(&adaptive, &s, load, 2, 10 * KIB, 16 * KIB, 4096, plan);
        load[plan[0].sub].queued += 10 * KIB;
        ck_assert(i > 1 || plan[0].sub == 0);
        slow += plan[0].sub;
    }
    ck_assert_uint_eq(slow, 2);
    load[0].queued = load[1].queued = 0;
    for (unsigned i = 0; i < 8; i++) { /* one after the other */
        mr_sched_plan(&adaptive, &s, load, 2, 10 * KIB, 16 * KIB, 4096, plan);
        ck_assert_uint_eq(plan[0].sub, 0);
    }
}
END_TEST

/* A fast rail busy for no longer than the latency is as good as an idle rail. */
START_TEST(a_short_queue_does_not_count)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_load load[2];
    struct mr_sched s = {.kib_time = mr_sched_kib_time(200000), .due = (uint64_t[MR_SUBS_MAX]){0}};

    set(load, 2, 1024);
    load[1].weight = 256;
    load[0].queued = 30 * KIB;
    mr_sched_plan(&adaptive, &s, load, 2, 10 * KIB, 16 * KIB, 4096, plan);
    ck_assert_uint_eq(plan[0].sub, 0);
    load[0].queued = 300 * KIB;
    mr_sched_plan(&adaptive, &s, load, 2, 10 * KIB, 16 * KIB, 4096, plan);
    ck_assert_uint_eq(plan[0].sub, 1);
}
END_TEST

/* Four messages that fill the fast rail for less than the slow rail's time for one of them all go to the fast rail. */
START_TEST(a_few_wait_for_no_slow_rail)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_load load[2];
    struct mr_sched s = {.kib_time = mr_sched_kib_time(200000), .due = (uint64_t[MR_SUBS_MAX]){0}};

    set(load, 2, 1024);
    load[1].weight = 256;
    for (unsigned i = 0; i < 8; i++) {
        mr_sched_plan(&adaptive, &s, load, 2, 32 * KIB, 64 * KIB, 4096, plan);
        load[plan[0].sub].queued += 32 * KIB;
        ck_assert(i > 3 || plan[0].sub == 0);
    }
    ck_assert_uint_eq(load[1].queued, 64 * KIB);
}
END_TEST

/* Of equal rails the idle one is next, though a faster rail was there before. */
START_TEST(equal_slow_ones_take_turns)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_load load[3];
    struct mr_sched s = {.kib_time = mr_sched_kib_time(200000), .due = (uint64_t[MR_SUBS_MAX]){0}};

    set(load, 3, 256);
    load[0].up = false;
    load[0].weight = 1024;
    load[1].queued = 16 * KIB;
    for (unsigned i = 0; i < 2; i++) {
        mr_sched_plan(&adaptive, &s, load, 3, 32 * KIB, 64 * KIB, 4096, plan);
        load[plan[0].sub].queued += 32 * KIB;
        ck_assert_uint_eq(plan[0].sub, 2 - i);
    }
}
END_TEST

START_TEST(cuts_are_the_nearest)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_load load[2];

    set(load, 2, 1);
    load[0].weight = 4;
    for (unsigned first = 0; first < 2; first++) {
        struct mr_sched s = {.next = first, .due = (uint64_t[MR_SUBS_MAX]){0}};

        ck_assert_uint_eq(mr_sched_plan(&adaptive, &s, load, 2, 64 * KIB, 16 * KIB, 4096, plan), 2);
        ck_assert_uint_eq(plan[first].sub, 0);
        ck_assert_uint_eq(plan[first].len, 52 * KIB);
    }
}
END_TEST

START_TEST(weights)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_load load[2];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};

    set(load, 2, 1);
    load[0].weight = 4;
    ck_assert_uint_eq(mr_sched_plan(&adaptive, &s, load, 2, 1000 * KIB, 16 * KIB, 4096, plan), 2);
    ck_assert_uint_eq(plan[0].sub, 0);
    ck_assert_uint_eq(plan[0].len, 800 * KIB);
    load[0].weight = 0; /* up, but with weight 0: gets nothing */
    ck_assert_uint_eq(mr_sched_plan(&adaptive, &s, load, 2, 1000 * KIB, 16 * KIB, 4096, plan), 1);
    ck_assert_uint_eq(plan[0].len, 1000 * KIB);
    load[0].weight = load[1].weight = MR_WEIGHT_MAX;
    load[1].sick = MR_WEIGHT_MAX * 3 / 4; /* the same weights, but one rail is sick */
    ck_assert_uint_eq(mr_sched_plan(&adaptive, &s, load, 2, 1000 * KIB, 16 * KIB, 4096, plan), 2);
    ck_assert_uint_eq(plan[0].len + plan[1].len, 1000 * KIB);
    ck_assert_uint_eq(plan[plan[0].sub].len, 800 * KIB);
    load[0].sick = load[1].sick = MR_WEIGHT_MAX; /* nothing better is there */
    ck_assert_uint_eq(mr_sched_plan(&adaptive, &s, load, 2, 1000 * KIB, 16 * KIB, 4096, plan), 2);
    ck_assert_uint_eq(plan[0].len, 500 * KIB);
}
END_TEST

/* Each comes as often as its weight says, and spread out. */
START_TEST(turns_by_weight)
{
    struct mr_load load[3];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned seen[3] = {0}, last = 0;

    set(load, 3, 1024);
    load[1].weight = 256;
    load[2].weight = 512;
    for (unsigned i = 1; i <= 700; i++) {
        unsigned k = take(&s, load, 3, 1000);

        seen[k]++;
        if (k != 1)
            continue;
        ck_assert(!last || (i - last >= 6 && i - last <= 8));
        last = i;
    }
    ck_assert_uint_eq(seen[0], 400);
    ck_assert_uint_eq(seen[1], 100);
    ck_assert_uint_eq(seen[2], 200);
    load[0].up = false;
    for (unsigned i = 0; i < 300; i++)
        seen[take(&s, load, 3, 1000)]++;
    ck_assert_uint_eq(seen[0], 400);
    ck_assert_uint_eq(seen[1], 200);
}
END_TEST

/* Long and short ones in turn, with any number of short ones for a long one: all rails carry the same. */
START_TEST(bytes_are_even)
{
    struct mr_load load[4];

    for (unsigned n = 2; n <= 4; n++)
        for (unsigned period = 2; period <= 9; period++) {
            struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
            uint64_t carried[4] = {0}, most = 0, least = UINT64_MAX;

            set(load, n, MR_WEIGHT_MAX);
            for (unsigned i = 0; i < 7200; i++) {
                uint64_t len = i % period ? 8 : 8192;

                carried[take(&s, load, n, len)] += len;
            }
            for (unsigned k = 0; k < n; k++) {
                most = carried[k] > most ? carried[k] : most;
                least = carried[k] < least ? carried[k] : least;
            }
            ck_assert_msg(most - least <= 2 * 8192 + most / 50, "%u rails, a long one in %u: %llu and %llu bytes", n,
                          period, (unsigned long long)most, (unsigned long long)least);
        }
}
END_TEST

/* Messages that wait for each other: one rail for a quantum, then another. */
START_TEST(answers_stay)
{
    struct mr_load load[3];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned last, moved = 0, carried[3] = {0};

    set(load, 3, MR_WEIGHT_MAX);
    last = take(&s, load, 3, 8);
    s.answers = true;
    for (unsigned i = 0; i < 300; i++) {
        unsigned now = take(&s, load, 3, 8);

        moved += now != last;
        carried[now]++;
        last = now;
    }
    ck_assert_uint_le(moved, 300 / 7);
    ck_assert_uint_ge(moved, 300 / 18);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_uint_ge(carried[i], 80);
    ck_assert_uint_ne(mr_sched_pick(&fair, &s, load, 3, 1u << last, 8), last); /* without room */
    load[last].up = false;
    ck_assert_uint_ne(mr_sched_pick(&fair, &s, load, 3, 0, 8), last);
    load[last].up = true;
    take(&s, load, 3, 8192); /* more than a quantum, on any rail */
    last = (s.next + 2) % 3;
    ck_assert_uint_ne(mr_sched_pick(&fair, &s, load, 3, 0, 8), last);
    ck_assert_uint_eq(mr_sched_pick(&fair, &s, load, 3, 7, 8), 3);
}
END_TEST

START_TEST(others_take_turns)
{
    struct mr_load load[2];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned last = 2;

    set(load, 2, MR_WEIGHT_MAX);
    for (unsigned i = 0; i < 100; i++) {
        unsigned now = take(&s, load, 2, 8);

        ck_assert_uint_ne(now, last);
        last = now;
    }
}
END_TEST

/* ---- earliest completion ----------------------------------------------------------------------------------------- */

/* A program that sends a message of len bytes each gap_ns, count times. How many each has carried. */
static void soonest_at(uint64_t gap_ns, uint64_t len, unsigned count, struct mr_sched *s, const struct mr_load *load,
                       unsigned n, unsigned carried[])
{
    static uint64_t ns = 1000;

    for (unsigned i = 0; i < count; i++, ns += gap_ns) {
        unsigned k;

        if (mr_sched_wants_time(&soonest, s, n, len))
            mr_sched_tell_time(s, ns);
        k = mr_sched_pick(&soonest, s, load, n, 0, len);
        ck_assert_uint_lt(k, n);
        ck_assert(load[k].up);
        mr_sched_charge(&soonest, s, load, n, k, len);
        carried[k]++;
    }
}

/* Ports of 200 Gb/s: 25 bytes in a ns. The last of n is a quarter as fast, if slow. */
static struct mr_sched ports(struct mr_load *load, uint64_t *until, unsigned n, bool slow)
{
    set(load, n, MR_WEIGHT_MAX);
    for (unsigned i = 0; i < n; i++)
        load[i].until = &until[i];
    if (slow)
        load[n - 1].weight = MR_WEIGHT_MAX / 4;
    return (struct mr_sched){.kib_time = mr_sched_kib_time(200000), .used = MR_SCHED_QUANTUM};
}

/* Does the work of mr_packet_turn (conn/peer/peer.h): messages of count packets, each an answer. */
static void answer(struct mr_sched *s, const struct mr_load *load, unsigned n, uint64_t ns, unsigned count,
                   uint64_t len, unsigned carried[])
{
    for (unsigned i = 0; i < count; i++) {
        s->answers = !i;
        if (mr_sched_wants_time(&fair, s, n, len))
            mr_sched_tell_time(s, ns);
        carried[take(s, load, n, len)]++;
    }
}

START_TEST(alone_it_goes_over_the_fast_one)
{
    static const unsigned lengths[] = {600, 1024, 4096, 8192};

    for (unsigned k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        uint64_t until[2] = {0}, due[2] = {0};
        unsigned carried[2] = {0}, packets = lengths[k] < MR_SCHED_LONG ? 1 : 2;
        struct mr_load load[2];
        struct mr_sched s = ports(load, until, 2, true);

        s.due = due;
        s.uneven = true;
        for (unsigned i = 0; i < 1000; i++)
            answer(&s, load, 2, 1000 + 3000 * i, packets, lengths[k], carried);
        ck_assert_uint_eq(carried[0], 1000 * packets);
        load[0].up = false;
        answer(&s, load, 2, 4000000, packets, lengths[k], carried);
        ck_assert_uint_eq(carried[1], packets);
    }
}
END_TEST

/* Short ones may go over either; over like ports the second packet finds the other one free. */
START_TEST(alone_it_takes_both_that_are_alike)
{
    uint64_t until[2] = {0}, due[2] = {0};
    unsigned carried[2] = {0};
    struct mr_load load[2];
    struct mr_sched s = ports(load, until, 2, false);

    s.due = due;
    for (unsigned i = 0; i < 1000; i++)
        answer(&s, load, 2, 1000 + 3000 * i, 2, 8192, carried);
    ck_assert_uint_eq(carried[0], 1000);
    ck_assert_uint_eq(carried[1], 1000);
}
END_TEST

/* Bursts are shared by weight, and so are answers while ports are busy. */
START_TEST(not_alone_the_slow_one_has_its_share)
{
    for (unsigned burst = 2; burst <= 64; burst += 62) {
        uint64_t until[2] = {0}, due[2] = {0};
        unsigned carried[2] = {0};
        struct mr_load load[2];
        struct mr_sched s = ports(load, until, 2, true);

        s.due = due;
        s.uneven = true;
        for (unsigned i = 0; i < 6400 / burst; i++)
            answer(&s, load, 2, 1000 + 200 * burst * i, burst, 8192, carried); /* 41 bytes in a ns of 31 */
        ck_assert_uint_ge(carried[1], 6400 / 5 - 6400 / 50);
        ck_assert_uint_le(carried[1], 6400 / 5 + 6400 / 50);
    }
}
END_TEST

/*
 * Windows of packets that the processor copies first, more slowly than the fast port: none goes over the slow port, and
 * the clock is hardly read. Without copies, the slow port has its share again.
 */
START_TEST(copies_that_are_slower_than_the_fast_one)
{
    static const unsigned lengths[] = {1500, 2048, 4096, 8192};

    for (unsigned k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        uint64_t until[2] = {0}, due[2] = {0}, ns = 1000, copy = 50 + lengths[k] / 12;
        unsigned carried[2] = {0}, asked = 0, learned;
        struct mr_load load[2];
        struct mr_sched s = ports(load, until, 2, true);

        s.due = due;
        s.uneven = true;
        for (unsigned i = 0; i < 32000; i++, ns += i % 16 ? copy : 2000) {
            bool wants = mr_sched_wants_time(&fair, &s, 2, lengths[k]);

            if (i == 1600)
                learned = carried[1];
            s.answers = !(i % 16);
            if (wants)
                mr_sched_tell_time(&s, ns);
            asked += wants;
            carried[take(&s, load, 2, lengths[k])]++;
        }
        ck_assert_uint_eq(carried[1], learned);
        ck_assert_uint_lt(asked, 32000 / 6);
        carried[0] = carried[1] = 0;
        for (unsigned i = 0; i < 1000; i++, ns += lengths[k] / 100) {
            s.answers = false;
            if (mr_sched_wants_time(&fair, &s, 2, lengths[k]))
                mr_sched_tell_time(&s, ns);
            carried[take(&s, load, 2, lengths[k])]++;
        }
        ck_assert_uint_gt(carried[1], 150);
    }
}
END_TEST

/*
 * The same over equal ports: while the processor is slower than a port, all packets go over one port, home, except
 * while home is down. Without copies all have their share again; also if copies were never slower.
 */
START_TEST(copies_that_are_slower_than_any)
{
    static const unsigned lengths[] = {8, 1500, 4096, 8192};

    for (unsigned k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        uint64_t until[3] = {0}, due[3] = {0}, ns = 1000, copy = 50 + lengths[k] / 12;
        unsigned carried[3] = {0}, asked = 0;
        struct mr_load load[3];
        struct mr_sched s = ports(load, until, 3, false);

        s.due = due;
        s.home = 1;
        mr_sched_even(&fair, &s, 7, 3);
        for (unsigned i = 0; i < 32000; i++, ns += i % 16 ? copy : 2000) {
            bool wants = mr_sched_wants_time(&fair, &s, 3, lengths[k]);

            if (i == 3200)
                carried[0] = carried[2] = 0;
            s.answers = !(i % 16);
            if (wants)
                mr_sched_tell_time(&s, ns);
            asked += wants;
            carried[take(&s, load, 3, lengths[k])]++;
        }
        ck_assert_uint_eq(carried[0] + carried[2], 0);
        ck_assert_uint_lt(asked, 32000 / 10);
        load[1].up = false;
        mr_sched_even(&fair, &s, 5, 3);
        ck_assert_uint_ne(take(&s, load, 3, lengths[k]), 1);
        load[1].up = true;
        mr_sched_even(&fair, &s, 7, 3);
        for (unsigned i = 0; i < 3000; i++, ns += 15) {
            if (i == 1500)
                memset(carried, 0, sizeof carried);
            s.answers = false;
            if (mr_sched_wants_time(&fair, &s, 3, lengths[k]))
                mr_sched_tell_time(&s, ns);
            carried[take(&s, load, 3, lengths[k])]++;
        }
        for (unsigned i = 0; i < 3; i++)
            ck_assert_uint_ge(carried[i], 499);
    }
}
END_TEST

/* Short packets: home takes several without a check, but no more when one is to be timed, or home is down. */
START_TEST(home_takes_those_that_follow)
{
    uint64_t until[3] = {0}, due[3] = {0};
    struct mr_load load[3];
    struct mr_sched s = ports(load, until, 3, false);
    unsigned asked = 0;

    s.due = due;
    s.home = 1;
    s.bound = MR_SCHED_BOUND;
    mr_sched_even(&fair, &s, 7, 3);
    for (unsigned i = 0; i < 800; i++) {
        if (mr_sched_stays_on(&s, 8))
            continue;
        ck_assert(mr_sched_stays(&s, load));
        mr_sched_stay(&fair, &s, load, 3, 8);
        asked++;
    }
    ck_assert_uint_le(asked, 100);
    ck_assert_uint_ge(due[1], 800 * (8 + MR_SCHED_PACKET));
    ck_assert_uint_le(due[1], 800 * (8 + MR_SCHED_PACKET) + asked * 3 * MR_SCHED_PACKET + MR_SCHED_QUANTUM);
    mr_sched_stay(&fair, &s, load, 3, 8);
    mr_sched_even(&fair, &s, 5, 3);
    ck_assert(!mr_sched_stays_on(&s, 8));
    mr_sched_even(&fair, &s, 7, 3);
    mr_sched_stay(&fair, &s, load, 3, 8);
    mr_sched_tell_time(&s, 1000);
    ck_assert(!mr_sched_stays_on(&s, 8));
    ck_assert(s.again);
    mr_sched_stay(&fair, &s, load, 3, 8);
    ck_assert(!mr_sched_stays_on(&s, 8));
    ck_assert_uint_eq(s.packets, 1);
}
END_TEST

/* The fast port has no room: a packet waits for it, but not when it carries nothing. */
START_TEST(a_burst_waits_for_the_fast_one)
{
    enum { ROOM = 64, LEN = 8192 };
    uint64_t until[2] = {0}, due[2] = {0};
    struct mr_load load[2];
    struct mr_sched s = ports(load, until, 2, true);
    unsigned carried[2] = {0};

    s.due = due;
    s.uneven = true;
    for (unsigned i = 0; i < 1000; i++) { /* all at once */
        unsigned k;

        mr_sched_tell_time(&s, 1000);
        k = mr_sched_pick(&fair, &s, load, 2, 0, LEN);
        if (carried[k] == ROOM && mr_sched_waits(&fair, &s, load, 2, 0, k, LEN, ROOM, 1000))
            break;
        ck_assert_uint_lt(carried[k], ROOM);
        mr_sched_charge(&fair, &s, load, 2, k, LEN);
        carried[k]++;
    }
    ck_assert_uint_eq(carried[0], ROOM);
    ck_assert(carried[1] >= ROOM / 4 - 2 && carried[1] <= ROOM / 4 + 2);
    /* a ms later its queue is as full as before: the other takes packets for half of that time, again and again */
    for (unsigned ms = 1; ms <= 10; ms++) {
        unsigned taken = 0;

        mr_sched_tell_time(&s, 1000 + 1000000 * ms);
        while (!mr_sched_waits(&fair, &s, load, 2, 0, 0, LEN, ROOM, 1000 + 1000000 * ms)) {
            ck_assert_uint_eq(mr_sched_pick(&fair, &s, load, 2, 1, LEN), 1);
            mr_sched_charge(&fair, &s, load, 2, 1, LEN);
            taken++;
        }
        ck_assert(taken >= ROOM / 8 - 2 && taken <= ROOM / 8 + 2);
    }
    s.uneven = false;
    ck_assert(!mr_sched_waits(&fair, &s, load, 2, 0, 0, LEN, ROOM, 0));
}
END_TEST

/*
 * A queue of short packets is about equal to the packets on their way: the slow port takes a few, however often asked.
 */
START_TEST(what_is_on_its_way_is_no_backlog)
{
    enum { ROOM = 64, LEN = 512, NOW = 1000, LATER_NS = 20 };
    uint64_t until[2] = {0}, due[2] = {0};
    struct mr_load load[2];
    struct mr_sched s = ports(load, until, 2, true);
    unsigned taken = 0, i = 0;

    s.due = due;
    s.uneven = true;
    ck_assert(mr_sched_waits(&fair, &s, load, 2, 0, 0, LEN, ROOM / 2, NOW));
    for (; i < 100 && !mr_sched_waits(&fair, &s, load, 2, 0, 0, LEN, ROOM, NOW + i * LATER_NS); i++) {
        mr_sched_charge(&fair, &s, load, 2, 1, LEN);
        taken++;
    }
    ck_assert_uint_ge(taken, 1);
    ck_assert_uint_le(taken, ROOM / 16);
    ck_assert_uint_eq(s.clock, (NOW + i * LATER_NS) * MR_SCHED_NS); /* packet times were a guess */
}
END_TEST

/* Another process has half of each port; this process only sees its own packets under way at each poll. */
START_TEST(ports_that_another_uses)
{
    enum { ROOM = 64, LEN = 8192, NS = 330 }; /* NS: the fast port's time for a packet */
    uint64_t until[2] = {0}, due[2] = {0}, free_ns[2] = {0}, done_ns[2][ROOM] = {0}, behind = 0;
    struct mr_load load[2];
    struct mr_sched s = ports(load, until, 2, true);
    unsigned carried[2] = {0};

    s.due = due;
    s.uneven = true;
    for (unsigned now = 1000, i = 0; i < 2000; now += 150) {
        unsigned under_way[2] = {0}, k;
        uint64_t since = s.clock;

        mr_sched_tell_time(&s, now);
        for (unsigned p = 0; p < 2; p++) {
            for (unsigned at = 0; at < ROOM; at++)
                under_way[p] += done_ns[p][at] > now;
            mr_sched_tell_backlog(&s, load, p, LEN, under_way[p], since);
        }
        k = mr_sched_pick(&fair, &s, load, 2, 0, LEN);
        if (under_way[k] == ROOM && mr_sched_waits(&fair, &s, load, 2, 0, k, LEN, ROOM, now))
            continue;
        k = under_way[k] == ROOM ? !k : k;
        ck_assert_uint_lt(under_way[k], ROOM);
        free_ns[k] = (free_ns[k] > now ? free_ns[k] : now) + 2 * NS * (k ? 4 : 1);
        done_ns[k][carried[k]++ % ROOM] = free_ns[k];
        mr_sched_charge(&fair, &s, load, 2, k, LEN);
        i++;
        if (free_ns[1] > now && free_ns[1] - now > behind)
            behind = free_ns[1] - now;
    }
    ck_assert_uint_le(behind, 2 * NS * ROOM * 5 / 4); /* about as full as the fast port */
    ck_assert_uint_ge(carried[1], 2000 / 5 - 2000 / 50);
}
END_TEST

/* Two ports of one rate, one of them at another socket. */
START_TEST(a_far_one_helps_in_bursts)
{
    static const unsigned lengths[] = {8, 1024, 4096};
    struct mr_load load[2];

    for (unsigned k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        uint64_t until[2] = {0}, due[2] = {0};
        unsigned carried[2] = {0};
        struct mr_sched s = ports(load, until, 2, false);

        s.due = due;
        s.uneven = true;
        load[0].after = MR_SCHED_FAR;
        for (unsigned i = 0; i < 1000; i++)
            answer(&s, load, 2, 1000 + 3000 * i, 1, lengths[k], carried);
        ck_assert_uint_eq(carried[1], 1000);
        for (unsigned i = 0; i < 100; i++) /* 64 at once */
            answer(&s, load, 2, 10000000 + 20000 * i, 64, 8192, carried);
        ck_assert_msg(carried[0] >= 3000 && carried[0] <= 3200, "%u", carried[0]);
    }
}
END_TEST

START_TEST(one_port_is_enough)
{
    uint64_t until[4] = {0};
    unsigned carried[4] = {0};
    struct mr_load load[4];
    struct mr_sched s = ports(load, until, 4, false);

    soonest_at(100, 64, 10000, &s, load, 4, carried);
    ck_assert_uint_eq(carried[s.next], 10000);
}
END_TEST

START_TEST(in_hurry_all_carry_the_same)
{
    for (unsigned n = 2; n <= 4; n++) {
        uint64_t until[4] = {0};
        unsigned carried[4] = {0};
        struct mr_load load[4];
        struct mr_sched s = ports(load, until, n, false);

        soonest_at(60, 8192, 4000, &s, load, n, carried); /* 136 bytes in a ns: more than all can send */
        for (unsigned i = 0; i < n; i++)
            ck_assert(carried[i] >= 4000 / n - 2 && carried[i] <= 4000 / n + 2);
    }
}
END_TEST

START_TEST(a_slow_port_is_for_what_the_fast_one_has_no_time_for)
{
    uint64_t until[2] = {0};
    unsigned carried[2] = {0};
    struct mr_load load[2];
    struct mr_sched s = ports(load, until, 2, true);

    s.next = 1;
    soonest_at(1000, 8192, 1000, &s, load, 2, carried); /* the fast port has sent it before the next comes */
    ck_assert_uint_eq(carried[1], 0);
    soonest_at(60, 8192, 1000, &s, load, 2, carried);
    ck_assert_msg(carried[1] >= 195 && carried[1] <= 205, "%u", carried[1]);
    load[0].up = false;
    carried[1] = 0;
    soonest_at(60, 8192, 100, &s, load, 2, carried);
    ck_assert_uint_eq(carried[1], 100);
}
END_TEST

/* Paths of one port: all are used, though the port is always idle. */
START_TEST(paths_of_a_port_take_turns)
{
    uint64_t until[2] = {0};
    unsigned carried[4] = {0};
    struct mr_load load[4];
    struct mr_sched s = ports(load, until, 2, false);

    set(load, 4, MR_WEIGHT_MAX);
    for (unsigned i = 0; i < 4; i++)
        load[i].until = &until[i % 2];
    soonest_at(1000, 1024, 9000, &s, load, 4, carried);
    ck_assert_uint_eq(carried[s.next % 2] + carried[s.next % 2 + 2], 9000);
    ck_assert_uint_eq(carried[s.next % 2], carried[s.next % 2 + 2]);
}
END_TEST

/* A port that was down, or full, for long does not get all packets afterwards. */
START_TEST(nobody_catches_up)
{
    struct mr_load load[2];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned seen[2] = {0};

    set(load, 2, MR_WEIGHT_MAX);
    load[1].up = false;
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_uint_eq(take(&s, load, 2, 4096), 0);
    load[1].up = true;
    for (unsigned i = 0; i < 100; i++)
        seen[take(&s, load, 2, 4096)]++;
    ck_assert(seen[0] >= 49 && seen[1] >= 49);
    for (unsigned i = 0; i < 1000;
         i++) { /* 1 is full: asked first as often as not, and the other port takes the packet */
        unsigned k = mr_sched_pick(&fair, &s, load, 2, 1u << 1, 4096);

        ck_assert_uint_eq(k, 0);
        mr_sched_charge(&fair, &s, load, 2, k, 4096);
    }
    ck_assert_uint_eq(mr_sched_pick(&fair, &s, load, 2, 3, 4096), 2);
    seen[0] = seen[1] = 0;
    for (unsigned i = 0; i < 100; i++)
        seen[take(&s, load, 2, 4096)]++;
    ck_assert(seen[0] >= 49 && seen[1] >= 49);
}
END_TEST

/* A part too short to be worth while goes to the others, but for one message in MR_PLANS_PROBE. */
START_TEST(light_ones_are_left_out)
{
    struct mr_stripe plan[MR_SUBS_MAX];
    struct mr_load load[3];
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned probes = 0;

    set(load, 3, 1024);
    load[1].weight = 32;
    for (unsigned i = 0; i < 3 * MR_PLANS_PROBE; i++) {
        unsigned n = mr_sched_plan(&adaptive, &s, load, 3, 128 * KIB, 16 * KIB, 4096, plan);

        ck_assert(n == 2 || n == 3);
        probes += n == 3;
        for (unsigned k = 0; k < n; k++) {
            if (n == 2)
                ck_assert(plan[k].sub != 1 && plan[k].len == 64 * KIB);
            else if (plan[k].sub == 1)
                ck_assert(plan[k].len >= 4096 && plan[k].len <= 12 * KIB);
        }
    }
    ck_assert_uint_eq(probes, 3);
    /* its part of a longer message is worth it */
    ck_assert_uint_eq(mr_sched_plan(&adaptive, &s, load, 3, 1024 * KIB, 16 * KIB, 4096, plan), 3);
}
END_TEST

/* For any numbers: no gaps, each subchannel once, open subchannels only. */
START_TEST(covers)
{
    srand((unsigned)_i);
    for (int k = 0; k < 500; k++) {
        struct mr_stripe plan[MR_SUBS_MAX];
        struct mr_load load[MR_SUBS_MAX];
        struct mr_sched s = {.next = (unsigned)rand() % 40, .due = (uint64_t[MR_SUBS_MAX]){0}};
        unsigned n = 1 + (unsigned)rand() % MR_SUBS_MAX, up = 0, used = 0, num;
        uint64_t len = 1 + (uint64_t)rand() * (uint64_t)rand() % (1ull << (1 + rand() % 40)), at = 0;
        uint64_t align = 1u << rand() % 14, min = 1 + (uint64_t)rand() % 100000;

        for (unsigned i = 0; i < n; i++) {
            load[i] = (struct mr_load){.up = rand() % 3, .weight = (uint32_t)rand() % 5};
            up += load[i].up;
        }
        num = mr_sched_plan(&adaptive, &s, load, n, len, min, align, plan);
        ck_assert(up ? num >= 1 && num <= up : num == 0);
        for (unsigned i = 0; i < num; i++) {
            ck_assert_uint_lt(plan[i].sub, n);
            ck_assert(load[plan[i].sub].up);
            ck_assert(!(used & 1u << plan[i].sub));
            used |= 1u << plan[i].sub;
            ck_assert_uint_eq(plan[i].offset, at);
            ck_assert_uint_eq(plan[i].offset % align, 0);
            ck_assert_uint_gt(plan[i].len, 0);
            at += plan[i].len;
        }
        if (up)
            ck_assert_uint_eq(at, len);
        if (len < min)
            ck_assert_uint_le(num, 1);
    }
}
END_TEST

/* ---- the completion filter -------------------------------------------------------------------------------------- */

START_TEST(sender_is_told_once)
{
    struct mr_filter f = {.open = 3};

    ck_assert(!mr_filter_done(&f, 0));
    ck_assert(!mr_filter_done(&f, -5));
    ck_assert(mr_filter_done(&f, -7));
    ck_assert_int_eq(f.error, -5);
}
END_TEST

START_TEST(receiver_counts_stripes)
{
    struct mr_targets t = {0};
    uint32_t a, b;
    int x, y;
    bool stray;

    ck_assert_int_eq(mr_target_open(&t, &x, &a), 0);
    ck_assert_int_eq(mr_target_open(&t, &y, &b), 0);
    ck_assert_uint_ne(a, b);
    ck_assert_ptr_null(mr_target_arrived(&t, mr_target_imm(a, 1, 2), &stray));
    ck_assert(!stray);
    ck_assert_ptr_eq(mr_target_arrived(&t, mr_target_imm(b, 0, 1), &stray), &y);
    ck_assert_ptr_null(mr_target_arrived(&t, mr_target_imm(a, 1, 3), &stray));
    ck_assert(stray); /* not the number of stripes announced first */
    ck_assert_ptr_eq(mr_target_arrived(&t, mr_target_imm(a, 0, 2), &stray), &x);
    mr_target_close(&t, a);
    ck_assert_ptr_null(mr_target_arrived(&t, mr_target_imm(a, 0, 1), &stray));
    ck_assert(stray);
    mr_targets_free(&t);
}
END_TEST

START_TEST(a_stripe_counts_once)
{
    struct mr_targets t = {0};
    uint32_t a;
    int x;
    bool stray;

    ck_assert_int_eq(mr_target_open(&t, &x, &a), 0);
    for (unsigned i = 0; i < 31; i++) {
        ck_assert(mr_target_waits(&t, mr_target_imm(a, i, 32)));
        ck_assert_ptr_null(mr_target_arrived(&t, mr_target_imm(a, i, 32), &stray));
        ck_assert(!stray && !mr_target_waits(&t, mr_target_imm(a, i, 32)));
        ck_assert_ptr_null(mr_target_arrived(&t, mr_target_imm(a, i, 32), &stray));
        ck_assert(stray);
    }
    ck_assert_ptr_eq(mr_target_arrived(&t, mr_target_imm(a, 31, 32), &stray), &x);
    ck_assert_ptr_null(mr_target_arrived(&t, mr_target_imm(a, 5, 3), &stray)); /* of three stripes none is the sixth */
    ck_assert(stray);
    mr_target_close(&t, a);
    ck_assert(!mr_target_waits(&t, mr_target_imm(a, 0, 1)));
    mr_targets_free(&t);
}
END_TEST

START_TEST(a_late_notification_finds_nothing)
{
    struct mr_targets t = {0};
    uint32_t a, b;
    int x, y;
    bool stray;

    ck_assert_int_eq(mr_target_open(&t, &x, &a), 0);
    mr_target_close(&t, a);
    ck_assert_int_eq(mr_target_open(&t, &y, &b), 0); /* the same entry again */
    ck_assert_ptr_null(mr_target_arrived(&t, mr_target_imm(a, 0, 1), &stray));
    ck_assert(stray);
    mr_target_close(&t, a); /* closes nothing */
    ck_assert_ptr_eq(mr_target_arrived(&t, mr_target_imm(b, 0, 1), &stray), &y);
    ck_assert_ptr_null(mr_target_arrived(&t, 0xffffffff, &stray));
    ck_assert(stray);
    mr_targets_free(&t);
}
END_TEST

START_TEST(many_receives)
{
    enum { N = 5000 };
    struct mr_targets t = {0};
    static uint32_t token[N];
    static int owner[N];
    bool stray;

    for (int i = 0; i < N; i++)
        ck_assert_int_eq(mr_target_open(&t, &owner[i], &token[i]), 0);
    for (int i = N; i-- > 0;) {
        ck_assert_ptr_eq(mr_target_arrived(&t, mr_target_imm(token[i], 0, 1), &stray), &owner[i]);
        mr_target_close(&t, token[i]);
    }
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(mr_target_open(&t, &owner[i], &token[i]), 0);
    ck_assert_uint_le(t.num, 8192);
    mr_targets_free(&t);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sched");
    char what[MR_POLICY_TEXT];

    if (!mr_policy_parse("soonest", MR_POLICY_SMALL, &soonest, what, sizeof what) ||
        !mr_policy_parse("fair", MR_POLICY_SMALL, &fair, what, sizeof what) ||
        !mr_policy_parse("adaptive", MR_POLICY_LARGE, &adaptive, what, sizeof what))
        return 1;
    tcase_add_test(t, round_robin_skips_those_that_are_down);
    tcase_add_test(t, each_is_the_first_in_turn);
    tcase_add_test(t, short_ones_stay_whole_and_take_turns);
    tcase_add_test(t, short_ones_go_where_they_are_done_first);
    tcase_add_test(t, a_short_queue_does_not_count);
    tcase_add_test(t, a_few_wait_for_no_slow_rail);
    tcase_add_test(t, equal_slow_ones_take_turns);
    tcase_add_test(t, cuts_are_the_nearest);
    tcase_add_test(t, weights);
    tcase_add_test(t, turns_by_weight);
    tcase_add_test(t, bytes_are_even);
    tcase_add_test(t, answers_stay);
    tcase_add_test(t, others_take_turns);
    tcase_add_test(t, alone_it_goes_over_the_fast_one);
    tcase_add_test(t, alone_it_takes_both_that_are_alike);
    tcase_add_test(t, not_alone_the_slow_one_has_its_share);
    tcase_add_test(t, copies_that_are_slower_than_the_fast_one);
    tcase_add_test(t, copies_that_are_slower_than_any);
    tcase_add_test(t, home_takes_those_that_follow);
    tcase_add_test(t, a_burst_waits_for_the_fast_one);
    tcase_add_test(t, what_is_on_its_way_is_no_backlog);
    tcase_add_test(t, ports_that_another_uses);
    tcase_add_test(t, a_far_one_helps_in_bursts);
    tcase_add_test(t, one_port_is_enough);
    tcase_add_test(t, in_hurry_all_carry_the_same);
    tcase_add_test(t, a_slow_port_is_for_what_the_fast_one_has_no_time_for);
    tcase_add_test(t, paths_of_a_port_take_turns);
    tcase_add_test(t, nobody_catches_up);
    tcase_add_loop_test(t, even_ones_take_turns, 0, 7);
    tcase_add_loop_test(t, even_ones_are_passed_over, 0, 7);
    tcase_add_loop_test(t, even_ones_carry_the_same, 0, 7);
    tcase_add_test(t, light_ones_are_left_out);
    tcase_add_loop_test(t, covers, 0, 10);
    tcase_add_test(t, sender_is_told_once);
    tcase_add_test(t, receiver_counts_stripes);
    tcase_add_test(t, a_stripe_counts_once);
    tcase_add_test(t, a_late_notification_finds_nothing);
    tcase_add_test(t, many_receives);
    return check_run(t, NULL);
}
