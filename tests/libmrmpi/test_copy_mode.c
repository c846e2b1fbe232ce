/* SPDX-License-Identifier: BSD-3-Clause */
/* Copy modes inside a node: the choice on different machines, its speed and cost, and its changes. */
#include <stdlib.h>

#include "libmrmpi/p2p/choice/copy_mode.h"
#include "tests/check.h"

#define KIB 1024u

static struct mr_copy_modes w;
static uint64_t now_ns;
static uint64_t spent_ns; /* in messages */
static uint64_t pool_ns;  /* for new pages of the pool */
static unsigned gone[MR_COPY_MODES];

static void setup(void)
{
    w = (struct mr_copy_modes){0};
    now_ns = 1000000;
    spent_ns = pool_ns = 0;
    for (int i = 0; i < MR_COPY_MODES; i++)
        gone[i] = 0;
}

/* A message that takes ps[mode] per byte, with a pause behind; times jitter by a tenth. */
static enum mr_copy_mode message(size_t len, enum mr_copy_load load, const unsigned ps[MR_COPY_MODES],
                                 uint64_t pause_ns)
{
    struct mr_copy_choice c;
    enum mr_copy_mode mode = mr_copy_mode_choose(&w, &c, len, load, pool_ns);
    uint64_t ns = len * ps[mode] / 1000;

    if (mode != c.mode)
        ck_abort_msg("%d chosen, %d noted", mode, c.mode);
    gone[mode]++;
    c.begin_ns = now_ns;
    ns += ns * ((unsigned)rand() % 11) / 100;
    now_ns += ns;
    spent_ns += ns;
    mr_copy_mode_ended(&w, &c, now_ns);
    now_ns += pause_ns;
    return mode;
}

/* Runs count messages; returns how many of the last hundred used the mode. */
static unsigned run(unsigned count, size_t len, enum mr_copy_load load, const unsigned ps[MR_COPY_MODES],
                    enum mr_copy_mode mode)
{
    unsigned of_the_last = 0;

    for (unsigned i = 0; i < count; i++)
        if (message(len, load, ps, load == MR_LOAD_ONE ? 5000 : 0) == mode && i + 100 >= count)
            of_the_last++;
    return of_the_last;
}

/* The best mode: machines as measured (ps per byte), and their mirror images. */
static const unsigned machines[][MR_COPY_MODES] = {{22, 78, 41}, {62, 79, 70}, {150, 36, 40},
                                                   {75, 35, 20}, {80, 60, 59}, {20, 100, 30}};

static enum mr_copy_mode least(const unsigned ps[MR_COPY_MODES])
{
    enum mr_copy_mode best = 0;

    for (int i = 1; i < MR_COPY_MODES; i++)
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

            if (ps[least(ps)] + ps[least(ps)] / 5 < ps[(least(ps) + 1) % MR_COPY_MODES] &&
                ps[least(ps)] + ps[least(ps)] / 5 < ps[(least(ps) + 2) % MR_COPY_MODES])
                ck_assert_uint_ge(best, 80);
        }
}
END_TEST

/* Compared with a machine whose best mode is known beforehand. */
START_TEST(finding_it_costs_little)
{
    const unsigned *ps = machines[_i];

    for (int load = 0; load < MR_LOADS; load++) {
        uint64_t ideal = 10000 * (256 * KIB * (uint64_t)ps[least(ps)] / 1000);

        setup();
        run(10000, 256 * KIB, load, ps, 0);
        ck_assert_uint_le(spent_ns, ideal + ideal / 10); /* half of which is the jitter */
    }
}
END_TEST

/* The best is kept after these messages of a size, and the next size begins with it. */
START_TEST(it_is_found_soon)
{
    static const unsigned ps[MR_COPY_MODES] = {90, 60, 30};
    unsigned count = 0;

    while (w.cell[MR_LOAD_ONE][1].kept != MR_COPY_SPLIT) {
        message(64 * KIB, MR_LOAD_ONE, ps, 5000);
        count++;
    }
    ck_assert_uint_le(count, MR_COPY_WARM / (64 * KIB) + MR_COPY_MODES * 2 * MR_LEARN_SAMPLES + 1);
    for (unsigned i = 0; i < 40; i++)
        ck_assert_int_eq(message(128 * KIB, MR_LOAD_ONE, ps, 5000), MR_COPY_SPLIT);
}
END_TEST

/* Of a way that is pushed the first bytes do not count: its memory is cold. */
START_TEST(cold_memory_decides_nothing)
{
    static const unsigned cold[MR_COPY_MODES] = {400, 80, 90}, warm[MR_COPY_MODES] = {30, 80, 90};
    struct mr_copy_choice c;

    for (int load = 0; load < MR_LOADS; load++) {
        setup();
        for (uint64_t pushed = 0; pushed < 2u << 20;) {
            enum mr_copy_mode mode = mr_copy_mode_choose(&w, &c, 64 * KIB, load, 0);

            c.begin_ns = now_ns;
            now_ns += 64 * KIB * cold[mode] / 1000;
            mr_copy_mode_ended(&w, &c, now_ns);
            pushed += mode == MR_COPY_PUSH ? 64 * KIB : 0;
        }
        ck_assert_uint_ge(run(300, 64 * KIB, load, warm, MR_COPY_PUSH), 90);
        ck_assert_int_eq(w.cell[load][1].kept, MR_COPY_PUSH);
    }
}
END_TEST

/* Pages of the pool are worth a trial behind messages that took far longer; then the fastest mode is found. */
START_TEST(pages_are_made_when_they_are_worth_it)
{
    static const unsigned ps[MR_COPY_MODES] = {30, 80, 90};

    for (int load = 0; load < MR_LOADS; load++) {
        setup();
        pool_ns = 1000000;
        while (!gone[MR_COPY_PUSH]) {
            run(1, 256 * KIB, load, ps, 0);
            ck_assert_uint_le(spent_ns, 22 * pool_ns);
        }
        ck_assert_uint_ge(spent_ns, 20 * pool_ns);
        ck_assert_uint_ge(run(300, 256 * KIB, load, ps, MR_COPY_PUSH), 90);
        ck_assert_uint_ge(run(300, 1 << 20, load, ps, MR_COPY_PUSH), 90);
        pool_ns = 0;
        ck_assert_uint_ge(run(300, 256 * KIB, load, ps, MR_COPY_PUSH), 90);
    }
    setup();
    mr_copy_mode_refuse(&w, MR_COPY_READ);
    mr_copy_mode_refuse(&w, MR_COPY_SPLIT);
    pool_ns = UINT32_MAX;
    ck_assert_uint_eq(run(100, 256 * KIB, MR_LOAD_BOTH, ps, MR_COPY_PUSH), 100); /* nothing else is possible */
}
END_TEST

/* Reads cost a system call: pushes are faster up to 120 KB, reads beyond, whichever sizes come first. */
START_TEST(each_size_has_its_best)
{
    const bool grows = _i < MR_LOADS;
    const enum mr_copy_load load = (enum mr_copy_load)(_i % MR_LOADS);

    for (int k = 0; k < 6; k++) {
        size_t len = 32 * KIB << (grows ? k : 5 - k);
        const unsigned ps[MR_COPY_MODES] = {60, 35 + (unsigned)(3000000 / len), 200};

        if (len <= 64 * KIB)
            ck_assert_uint_ge(run(250, len, load, ps, MR_COPY_PUSH), 80);
        else if (len >= 256 * KIB)
            ck_assert_uint_ge(run(250, len, load, ps, MR_COPY_READ), 80);
    }
}
END_TEST

/* One late sample, for any reason: the next messages keep their mode. Also if the sample is one of several. */
START_TEST(one_late_sample_decides_nothing)
{
    static const unsigned ps[MR_COPY_MODES] = {60, 40, 70}, late[MR_COPY_MODES] = {60000, 10000, 70000};

    for (int load = 0; load < MR_LOADS; load++) {
        setup();
        run(700, 256 * KIB, load, ps, 0);
        for (int i = 0; i < 20; i++) {
            while (w.cell[load][3].left || w.cell[load][3].due || w.cell[load][3].rest.left < 40)
                message(256 * KIB, load, ps, 0);
            ck_assert_int_eq(message(256 * KIB, load, late, 0), MR_COPY_READ);
            for (int k = 0; k < 30; k++)
                ck_assert_int_eq(message(256 * KIB, load, ps, 0), MR_COPY_READ);
        }
    }
}
END_TEST

/* The machine changes: ranks move to cores that share a cache, and back. */
START_TEST(what_changes_is_noticed)
{
    static const unsigned apart[MR_COPY_MODES] = {85, 40, 66}, together[MR_COPY_MODES] = {22, 78, 41};

    for (int load = 0; load < MR_LOADS; load++) {
        setup();
        ck_assert_uint_ge(run(2000, 256 * KIB, load, apart, MR_COPY_READ), 90);
        ck_assert_uint_ge(run(2200, 256 * KIB, load, together, MR_COPY_PUSH), 90);
        ck_assert_uint_ge(run(300, 256 * KIB, load, apart, MR_COPY_READ), 80); /* slower than before: at once */
    }
}
END_TEST

/* Messages under way finish together: of three that end at once, two took no time. */
START_TEST(bunches_are_no_speed)
{
    static const unsigned ps[MR_COPY_MODES] = {60, 50, 80};
    struct mr_copy_choice c[3];

    for (unsigned i = 0; i < 3000; i += 3) {
        uint64_t ns = 0;

        for (int k = 0; k < 3; k++) {
            mr_copy_mode_choose(&w, &c[k], 64 * KIB, MR_LOAD_STREAM, 0);
            c[k].begin_ns = now_ns;
        }
        for (int k = 0; k < 3; k++)
            ns += 64 * KIB * (uint64_t)ps[c[k].mode] / 1000;
        now_ns += ns;
        for (int k = 0; k < 3; k++)
            mr_copy_mode_ended(&w, &c[k], now_ns);
        gone[c[0].mode] += i >= 1500;
    }
    ck_assert_uint_ge(gone[MR_COPY_READ], 400);
}
END_TEST

START_TEST(refused_ways_are_not_gone)
{
    static const unsigned ps[MR_COPY_MODES] = {60, 20, 10};

    run(500, 256 * KIB, MR_LOAD_ONE, ps, 0);
    mr_copy_mode_refuse(&w, MR_COPY_SPLIT);
    ck_assert_uint_eq(run(100, 256 * KIB, MR_LOAD_ONE, ps, MR_COPY_SPLIT), 0);
    ck_assert_uint_ge(run(100, 1 << 20, MR_LOAD_STREAM, ps, MR_COPY_READ), 50);
    mr_copy_mode_refuse(&w, MR_COPY_READ);
    ck_assert_uint_eq(run(100, 256 * KIB, MR_LOAD_BOTH, ps, MR_COPY_PUSH), 100);
    mr_copy_mode_refuse(&w, MR_COPY_PUSH);
    ck_assert_uint_eq(run(100, 256 * KIB, MR_LOAD_BOTH, ps, MR_COPY_PUSH), 100); /* something has to be */
}
END_TEST

START_TEST(what_follows_is_a_stream)
{
    static const unsigned ps[MR_COPY_MODES] = {60, 60, 60};

    message(1 << 20, MR_LOAD_ONE, ps, 0);
    ck_assert(mr_copy_mode_follows(&w, now_ns));
    ck_assert(mr_copy_mode_follows(&w, now_ns + 10000));
    ck_assert(!mr_copy_mode_follows(&w, now_ns + 20000));
}
END_TEST

START_TEST(sizes_and_clocks_at_their_ends)
{
    static const unsigned nothing[MR_COPY_MODES] = {0, 0, 0};
    struct mr_copy_choice c;

    ck_assert_uint_eq(mr_copy_mode_size(1), 0);
    ck_assert_uint_eq(mr_copy_mode_size(32 * KIB), 0);
    ck_assert_uint_eq(mr_copy_mode_size(32 * KIB + 1), 1);
    ck_assert_uint_eq(mr_copy_mode_size(2 << 20), 6);
    ck_assert_uint_eq(mr_copy_mode_size((2 << 20) + 1), 7);
    ck_assert_uint_eq(mr_copy_mode_size(SIZE_MAX), 7);
    run(1000, 64 * KIB, MR_LOAD_STREAM, nothing, 0); /* a simulated clock that stands still */
    setup();
    mr_copy_mode_choose(&w, &c, 64 * KIB, MR_LOAD_ONE, 0);
    c.begin_ns = now_ns + 5;
    mr_copy_mode_ended(&w, &c, now_ns); /* or goes back */
    ck_assert_uint_eq(w.cell[MR_LOAD_ONE][1].time[c.mode].num, 0);
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
    tcase_add_test(c, pages_are_made_when_they_are_worth_it);
    tcase_add_loop_test(c, each_size_has_its_best, 0, 2 * MR_LOADS);
    tcase_add_test(c, one_late_sample_decides_nothing);
    tcase_add_test(c, what_changes_is_noticed);
    tcase_add_test(c, bunches_are_no_speed);
    tcase_add_test(c, refused_ways_are_not_gone);
    tcase_add_test(c, what_follows_is_a_stream);
    tcase_add_test(c, sizes_and_clocks_at_their_ends);
    return check_run(c, NULL);
}
