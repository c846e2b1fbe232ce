/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways inside a node: what is learnt of machines that differ, how soon, at what cost, and how it changes again. */
#include <stdlib.h>

#include "libmrmpi/p2p/choice/way.h"
#include "tests/check.h"

#define KIB 1024u

static struct mr_ways w;
static uint64_t now_ns;
static uint64_t spent_ns; /* in messages */
static unsigned gone[MR_WAYS];

static void setup(void)
{
    w = (struct mr_ways){0};
    now_ns = 1000000;
    spent_ns = 0;
    for (int i = 0; i < MR_WAYS; i++)
        gone[i] = 0;
}

/* One message that takes ps[way] for a byte, and a pause behind it; times jitter by a tenth. */
static enum mr_way message(size_t len, enum mr_way_load load, const unsigned ps[MR_WAYS], uint64_t pause_ns)
{
    struct mr_way_choice c;
    enum mr_way way = mr_way_choose(&w, &c, len, load);
    uint64_t ns = len * ps[way] / 1000;

    ck_assert_int_eq(way, c.way);
    gone[way]++;
    c.begin_ns = now_ns;
    ns += ns * ((unsigned)rand() % 11) / 100;
    now_ns += ns;
    spent_ns += ns;
    mr_way_ended(&w, &c, now_ns);
    now_ns += pause_ns;
    return way;
}

/* So many messages; how many of the last hundred went that way. */
static unsigned run(unsigned count, size_t len, enum mr_way_load load, const unsigned ps[MR_WAYS], enum mr_way way)
{
    unsigned of_the_last = 0;

    for (unsigned i = 0; i < count; i++)
        if (message(len, load, ps, load == MR_LOAD_ONE ? 5000 : 0) == way && i + 100 >= count)
            of_the_last++;
    return of_the_last;
}

/* Which is best: machines as they were measured (ps for a byte), and their mirror images. */
static const unsigned machines[][MR_WAYS] = {{22, 78, 41}, {62, 79, 70}, {150, 36, 40},
                                             {75, 35, 20}, {80, 60, 59}, {20, 100, 30}};

static enum mr_way least(const unsigned ps[MR_WAYS])
{
    enum mr_way best = 0;

    for (int i = 1; i < MR_WAYS; i++)
        if (ps[i] < ps[best])
            best = i;
    return best;
}

START_TEST(the_best_is_found)
{
    const unsigned *ps = machines[_i];
    static const size_t sizes[] = {20000, 64 * KIB, 300000, 1 << 20, 4 << 20, 64 << 20};

    for (int load = 0; load < MR_LOADS; load++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            unsigned best = run(600, sizes[s], load, ps, least(ps));

            if (ps[least(ps)] + ps[least(ps)] / 5 < ps[(least(ps) + 1) % MR_WAYS] &&
                ps[least(ps)] + ps[least(ps)] / 5 < ps[(least(ps) + 2) % MR_WAYS])
                ck_assert_uint_ge(best, 80);
        }
}
END_TEST

/* Beside a machine whose best way is known beforehand. */
START_TEST(finding_it_costs_little)
{
    const unsigned *ps = machines[_i];

    for (int load = 0; load < MR_LOADS; load++) {
        uint64_t ideal = 10000 * (256 * KIB * (uint64_t)ps[least(ps)] / 1000);

        setup();
        run(10000, 256 * KIB, load, ps, 0);
        ck_assert_uint_le(spent_ns, ideal + ideal / 10); /* of which half is the jitter */
    }
}
END_TEST

/* A first choice takes at most these messages of a size. */
START_TEST(it_is_found_soon)
{
    static const unsigned ps[MR_WAYS] = {90, 60, 30};
    unsigned warm = MR_WAY_WARM / (64 * KIB), count = 0;

    while (!w.cell[MR_LOAD_ONE][1].settled) {
        message(64 * KIB, MR_LOAD_ONE, ps, 5000);
        count++;
    }
    ck_assert_uint_le(count, warm + MR_WAYS * MR_WAY_ROUNDS * MR_WAY_SAMPLES + 1);
    ck_assert_int_eq(w.cell[MR_LOAD_ONE][1].best, MR_WAY_HALVES);
    /* the next size knows what is warm, and what is far */
    count = 0;
    while (!w.cell[MR_LOAD_ONE][2].settled) {
        message(128 * KIB, MR_LOAD_ONE, ps, 5000);
        count++;
    }
    ck_assert_uint_le(count, MR_WAY_SAMPLES + 1);
}
END_TEST

/* Of a way that is pushed the first bytes do not count: its memory is cold. */
START_TEST(cold_memory_decides_nothing)
{
    static const unsigned cold[MR_WAYS] = {400, 80, 90}, warm[MR_WAYS] = {30, 80, 90};
    struct mr_way_choice c;

    for (int load = 0; load < MR_LOADS; load++) {
        setup();
        for (uint64_t pushed = 0; pushed < 2u << 20;) {
            enum mr_way way = mr_way_choose(&w, &c, 64 * KIB, load);

            c.begin_ns = now_ns;
            now_ns += 64 * KIB * cold[way] / 1000;
            mr_way_ended(&w, &c, now_ns);
            pushed += way == MR_WAY_PUSH ? 64 * KIB : 0;
        }
        ck_assert_uint_ge(run(300, 64 * KIB, load, warm, MR_WAY_PUSH), 90);
    }
}
END_TEST

/* One that was late, by whatever: the next ones go the same way. Also where it is a sample of several. */
START_TEST(one_late_sample_decides_nothing)
{
    static const unsigned ps[MR_WAYS] = {60, 40, 70}, late[MR_WAYS] = {60000, 40000, 70000};

    for (int load = 0; load < MR_LOADS; load++) {
        setup();
        run(700, 256 * KIB, load, ps, 0);
        for (int i = 0; i < 20; i++) {
            while (w.cell[load][3].trying || w.cell[load][3].left < 40)
                message(256 * KIB, load, ps, 0);
            ck_assert_int_eq(message(256 * KIB, load, late, 0), MR_WAY_READ);
            for (int k = 0; k < 30; k++)
                ck_assert_int_eq(message(256 * KIB, load, ps, 0), MR_WAY_READ);
        }
    }
}
END_TEST

/* The machine changes: ranks move to cores that share a cache, and back. */
START_TEST(what_changes_is_noticed)
{
    static const unsigned apart[MR_WAYS] = {85, 40, 66}, together[MR_WAYS] = {22, 78, 41};

    for (int load = 0; load < MR_LOADS; load++) {
        setup();
        ck_assert_uint_ge(run(2000, 256 * KIB, load, apart, MR_WAY_READ), 90);
        ck_assert_uint_ge(run(2200, 256 * KIB, load, together, MR_WAY_PUSH), 90);
        ck_assert_uint_ge(run(300, 256 * KIB, load, apart, MR_WAY_READ), 80); /* it is slower than it was: at once */
    }
}
END_TEST

/* What is under way is worked off together: of three that end at once, two took nothing. */
START_TEST(bunches_are_no_speed)
{
    static const unsigned ps[MR_WAYS] = {60, 50, 80};
    struct mr_way_choice c[3];

    for (unsigned i = 0; i < 3000; i += 3) {
        uint64_t ns = 0;

        for (int k = 0; k < 3; k++) {
            mr_way_choose(&w, &c[k], 64 * KIB, MR_LOAD_STREAM);
            c[k].begin_ns = now_ns;
        }
        for (int k = 0; k < 3; k++)
            ns += 64 * KIB * (uint64_t)ps[c[k].way] / 1000;
        now_ns += ns;
        for (int k = 0; k < 3; k++)
            mr_way_ended(&w, &c[k], now_ns);
        gone[c[0].way] += i >= 1500;
    }
    ck_assert_uint_ge(gone[MR_WAY_READ], 400);
}
END_TEST

START_TEST(refused_ways_are_not_gone)
{
    static const unsigned ps[MR_WAYS] = {60, 20, 10};

    run(500, 256 * KIB, MR_LOAD_ONE, ps, 0);
    mr_way_refuse(&w, MR_WAY_HALVES);
    ck_assert_uint_eq(run(100, 256 * KIB, MR_LOAD_ONE, ps, MR_WAY_HALVES), 0);
    ck_assert_uint_ge(run(100, 1 << 20, MR_LOAD_STREAM, ps, MR_WAY_READ), 50);
    mr_way_refuse(&w, MR_WAY_READ);
    ck_assert_uint_eq(run(100, 256 * KIB, MR_LOAD_BOTH, ps, MR_WAY_PUSH), 100);
    mr_way_refuse(&w, MR_WAY_PUSH);
    ck_assert_uint_eq(run(100, 256 * KIB, MR_LOAD_BOTH, ps, MR_WAY_PUSH), 100); /* something has to be */
}
END_TEST

START_TEST(what_follows_is_a_stream)
{
    static const unsigned ps[MR_WAYS] = {60, 60, 60};

    message(1 << 20, MR_LOAD_ONE, ps, 0);
    ck_assert(mr_way_follows(&w, now_ns));
    ck_assert(mr_way_follows(&w, now_ns + 10000));
    ck_assert(!mr_way_follows(&w, now_ns + 20000));
}
END_TEST

START_TEST(sizes_and_clocks_at_their_ends)
{
    static const unsigned nothing[MR_WAYS] = {0, 0, 0};
    struct mr_way_choice c;

    ck_assert_uint_eq(mr_way_size(1), 0);
    ck_assert_uint_eq(mr_way_size(32 * KIB), 0);
    ck_assert_uint_eq(mr_way_size(32 * KIB + 1), 1);
    ck_assert_uint_eq(mr_way_size(2 << 20), 6);
    ck_assert_uint_eq(mr_way_size((2 << 20) + 1), 7);
    ck_assert_uint_eq(mr_way_size(SIZE_MAX), 7);
    run(1000, 64 * KIB, MR_LOAD_STREAM, nothing, 0); /* a simulated clock that stands still */
    mr_way_choose(&w, &c, 64 * KIB, MR_LOAD_ONE);
    c.begin_ns = now_ns + 5;
    mr_way_ended(&w, &c, now_ns); /* or goes back */
    ck_assert_uint_eq(w.cell[MR_LOAD_ONE][1].num[c.way], 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("way");

    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_loop_test(c, the_best_is_found, 0, sizeof(machines) / sizeof(machines[0]));
    tcase_add_loop_test(c, finding_it_costs_little, 0, sizeof(machines) / sizeof(machines[0]));
    tcase_add_test(c, it_is_found_soon);
    tcase_add_test(c, cold_memory_decides_nothing);
    tcase_add_test(c, one_late_sample_decides_nothing);
    tcase_add_test(c, what_changes_is_noticed);
    tcase_add_test(c, bunches_are_no_speed);
    tcase_add_test(c, refused_ways_are_not_gone);
    tcase_add_test(c, what_follows_is_a_stream);
    tcase_add_test(c, sizes_and_clocks_at_their_ends);
    return check_run(c, NULL);
}
