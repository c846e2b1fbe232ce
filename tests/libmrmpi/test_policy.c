/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduling policies: their texts, a host's rails, turns and stripes of each, and the paper's adaptive striping. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/net/stripe/feedback.h"
#include "libmrmpi/conn/route/policy.h"
#include "libmrmpi/conn/route/sched.h"
#include "tests/check.h"

#define KIB 1024u

static struct mr_policy parsed(const char *text, enum mr_policy_class c)
{
    char what[MR_POLICY_TEXT] = "";
    struct mr_policy p;

    ck_assert_msg(mr_policy_parse(text, c, &p, what, sizeof what), "%s: %s", text, what);
    return p;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    bool small, large;
} texts[] = {
    {"fair", true, true},
    {"fair:", false, false},
    {"fair:1", false, false},
    {"", false, false},
    {"Fair", false, false},
    {"fairly", false, false},
    {"soonest", true, false},
    {"round-robin", true, true},
    {"weighted-round-robin", true, true},
    {"weighted-round-robin:4,1", true, true},
    {"weighted-round-robin:", false, false},
    {"weighted-round-robin:4,", true, true}, /* as of a list that ends */
    {"weighted-round-robin:4,,1", false, false},
    {"weighted-round-robin:0", false, false},
    {"weighted-round-robin:-1", false, false},
    {"weighted-round-robin:1000001", false, false},
    {"weighted-round-robin:99999999999999999999", false, false},
    {"weighted-round-robin:mlx5_0=4,mlx5_1:2=1", true, true},
    {"weighted-round-robin:mlx5_0=4,1", false, false},
    {"weighted-round-robin:=4", false, false},
    {"weighted-round-robin:1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", true, true},
    {"weighted-round-robin:1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", false, false},
    {"window", false, false},
    {"window:16", true, true},
    {"window:64K", true, true},
    {"window:1024M", true, true},
    {"window:1025M", false, false},
    {"window:64KB", false, false},
    {"window:0", false, false},
    {"window:0x10", false, false},
    {"binding", true, true},
    {"binding:spread", true, true},
    {"binding:near", true, true},
    {"binding:mlx5_0", true, true},
    {"binding:mlx5_0:1,mlx5_1:1", true, true},
    {"binding:,", false, false},
    {"binding:a-name-of-a-device-that-is-much-too-long-for-one", false, false},
    {"near", true, false},
    {"even", false, true},
    {"weighted", false, true},
    {"weighted:4,1", false, true},
    {"adaptive", false, true},
    {"eq3", false, true},
    {"eq3:100", false, true},
    {"eq3:0", false, false},
    {"eq3:65537", false, false},
    {"eq4", false, true},
    {"eq4:0.25", false, true},
    {"eq4:1:64", false, true},
    {"eq4:.5", false, true},
    {"eq4:0", false, false},
    {"eq4:1.01", false, false},
    {"eq4:nan", false, false},
    {"eq4:0.5:", false, true},
    {"eq4:0.5:x", false, false},
    {"eq4:0.5.5", false, false},
};

START_TEST(texts_are_read)
{
    for (enum mr_policy_class c = 0; c < MR_POLICY_CLASSES; c++) {
        struct mr_policy p, before;
        char what[MR_POLICY_TEXT] = "";
        bool good = c == MR_POLICY_SMALL ? texts[_i].small : texts[_i].large;

        memset(&p, 0x5a, sizeof p);
        before = p;
        ck_assert_msg(mr_policy_parse(texts[_i].text, c, &p, what, sizeof what) == good, "\"%s\": %s", texts[_i].text,
                      what);
        ck_assert_int_eq(*what != '\0', !good);
        ck_assert(good || !memcmp(&p, &before, sizeof p));
    }
}
END_TEST

START_TEST(arguments_are_kept)
{
    struct mr_policy p = parsed("eq4:0.25:64", MR_POLICY_LARGE);

    ck_assert_double_eq(p.alpha, 0.25);
    ck_assert_uint_eq(p.total, 64);
    p = parsed("eq3:32", MR_POLICY_LARGE);
    ck_assert_double_eq(p.alpha, 1);
    ck_assert_uint_eq(p.total, 32);
    p = parsed("window:64K", MR_POLICY_SMALL);
    ck_assert_uint_eq(p.window_bytes, 64 * KIB);
    ck_assert_uint_eq(p.window_messages, 0);
    p = parsed("window:64", MR_POLICY_SMALL);
    ck_assert_uint_eq(p.window_messages, 64);
}
END_TEST

/* ---- a host's rails ---------------------------------------------------------------------------------------------- */

static const struct mr_policy_port ports[] = {
    {"mlx5_0", 1, 21}, {"mlx5_0", 2, 21}, {"mlx5_1", 1, 10}, {"mlx5_2", 1, 10}, {"mlx5_3", 1, 21}};
#define PORTS (sizeof ports / sizeof ports[0])

static uint32_t rails(const char *text, unsigned local_rank)
{
    struct mr_policy p = parsed(text, MR_POLICY_SMALL);

    return mr_policy_rails(&p, ports, PORTS, local_rank);
}

START_TEST(rails_are_chosen)
{
    ck_assert_uint_eq(rails("fair", 3), 0x1f);
    ck_assert_uint_eq(rails("near", 0), 0x0c);
    for (unsigned k = 0; k < 12; k++) {
        ck_assert_uint_eq(rails("binding", k), 1u << k % 5);
        ck_assert_uint_eq(rails("binding:near", k), k % 2 ? 8 : 4);
        ck_assert_uint_eq(rails("binding:mlx5_3,mlx5_9,mlx5_0:2", k), k % 2 ? 2 : 16);
    }
    ck_assert_uint_eq(rails("binding:mlx5_0", 7), 3); /* both ports of a device */
    ck_assert_uint_eq(rails("binding:mlx5_9,mlx5_0:3", 0), 0);
}
END_TEST

START_TEST(weights_are_given)
{
    struct mr_policy p = parsed("weighted:4,2", MR_POLICY_LARGE);

    ck_assert_uint_eq(mr_policy_weight(&p, ports, PORTS, 0), 4);
    ck_assert_uint_eq(mr_policy_weight(&p, ports, PORTS, 1), 2);
    ck_assert_uint_eq(mr_policy_weight(&p, ports, PORTS, 2), 0);
    p = parsed("weighted:mlx5_3=7,mlx5_0:2=3", MR_POLICY_LARGE);
    ck_assert_uint_eq(mr_policy_weight(&p, ports, PORTS, 0), 0);
    ck_assert_uint_eq(mr_policy_weight(&p, ports, PORTS, 1), 3);
    ck_assert_uint_eq(mr_policy_weight(&p, ports, PORTS, 4), 7);
    p = parsed("weighted", MR_POLICY_LARGE);
    ck_assert_uint_eq(mr_policy_weight(&p, ports, PORTS, 0), 0);
}
END_TEST

/* ---- turns ------------------------------------------------------------------------------------------------------- */

static unsigned take(const struct mr_policy *p, struct mr_sched *s, const struct mr_load *load, unsigned n,
                     uint64_t len)
{
    unsigned i = mr_sched_pick(p, s, load, n, 0, 100);

    mr_sched_charge(p, s, load, n, i, len);
    return i;
}

START_TEST(weights_must_fit)
{
    static const struct {
        const char *text;
        enum mr_policy_class of;
        unsigned rails;
        bool fits;
    } cases[] = {
        {"weighted:4,2", MR_POLICY_LARGE, 2, true},
        {"weighted:4", MR_POLICY_LARGE, 2, true},
        {"weighted:4,2,1", MR_POLICY_LARGE, 2, false},
        {"weighted:4,2", MR_POLICY_LARGE, 1, false},
        {"weighted:mlx5_0:2=3,mlx5_3=7", MR_POLICY_LARGE, PORTS, true},
        {"weighted:mlx5_0:2=3,mlx5_3=7", MR_POLICY_LARGE, 2, false},
        {"weighted:mlx5_0:3=3", MR_POLICY_LARGE, PORTS, false},
        {"weighted-round-robin:mlx5_9=1", MR_POLICY_SMALL, PORTS, false},
        {"binding:mlx5_9", MR_POLICY_SMALL, PORTS, true}, /* has words of its own */
        {"weighted", MR_POLICY_LARGE, 1, true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct mr_policy p = parsed(cases[i].text, cases[i].of);
        char what[MR_POLICY_TEXT] = "";

        ck_assert_msg(mr_policy_fits(&p, ports, cases[i].rails, what, sizeof what) == cases[i].fits, "%s",
                      cases[i].text);
        ck_assert_int_eq(!*what, cases[i].fits);
    }
}
END_TEST

START_TEST(round_robin_counts_messages)
{
    struct mr_policy p = parsed("round-robin", MR_POLICY_SMALL);
    struct mr_load load[3] = {
        {true, 1024, 1024, 0, NULL, 0, 0, 0}, {true, 32, 1, 0, NULL, 0, 0, 0}, {true, 512, 7, 0, NULL, 0, 0, 0}};
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};

    for (unsigned i = 0; i < 30; i++)
        ck_assert_uint_eq(take(&p, &s, load, 3, i % 2 ? 8 : 8192), i % 3);
    load[1].up = false;
    for (unsigned i = 0; i < 30; i++)
        ck_assert_uint_eq(take(&p, &s, load, 3, 1), i % 2 * 2);
    ck_assert_uint_eq(mr_sched_pick(&p, &s, load, 3, 5, 100), 3);
}
END_TEST

START_TEST(weighted_round_robin_counts_messages)
{
    struct mr_policy small = parsed("weighted-round-robin:4,1", MR_POLICY_SMALL);
    struct mr_policy large = parsed("weighted-round-robin", MR_POLICY_LARGE);
    struct mr_load load[2] = {{true, 1024, 1024, 0, NULL, 0, 0, 0}, {true, 512, 256, 0, NULL, 0, 0, 0}};
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};
    unsigned seen[2] = {0}, row = 0;

    for (unsigned i = 0; i < 500; i++) {
        unsigned k = take(&small, &s, load, 2, i % 5 ? 8 : 8192);

        seen[k]++;
        row = k ? 0 : row + 1;
        ck_assert_uint_le(row, 5); /* and well spread */
    }
    ck_assert_uint_eq(seen[0], 400);
    ck_assert_uint_eq(seen[1], 100);
    s = (struct mr_sched){.due = (uint64_t[MR_SUBS_MAX]){0}};
    memset(seen, 0, sizeof seen);
    for (unsigned i = 0; i < 300; i++)
        seen[take(&large, &s, load, 2, 1 << 20)]++;
    ck_assert_uint_eq(seen[0], 200);
    ck_assert_uint_eq(seen[1], 100);
}
END_TEST

START_TEST(a_window_stays)
{
    struct mr_policy p = parsed("window:4", MR_POLICY_SMALL);
    struct mr_load load[3] = {
        {true, 1, 1, 0, NULL, 0, 0, 0}, {true, 1, 1, 0, NULL, 0, 0, 0}, {true, 1, 1, 0, NULL, 0, 0, 0}};
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};

    for (unsigned i = 0; i < 48; i++)
        ck_assert_uint_eq(take(&p, &s, load, 3, 100 * i), i / 4 % 3);
    ck_assert_uint_eq(take(&p, &s, load, 3, 1), 0);
    load[0].up = false; /* its window is then another's, a whole window */
    for (unsigned i = 0; i < 8; i++)
        ck_assert_uint_eq(take(&p, &s, load, 3, 1), 1 + i / 4);
}
END_TEST

START_TEST(a_window_of_bytes)
{
    struct mr_policy p = parsed("window:64K", MR_POLICY_SMALL);
    struct mr_load load[2] = {{true, 1, 1, 0, NULL, 0, 0, 0}, {true, 1, 1, 0, NULL, 0, 0, 0}};
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};

    for (unsigned i = 0; i < 64; i++)
        ck_assert_uint_eq(take(&p, &s, load, 2, 8 * KIB), i / 8 % 2);
    for (unsigned i = 0; i < 10; i++) /* a message as long as a window is one window */
        ck_assert_uint_eq(take(&p, &s, load, 2, 100 * KIB), i % 2);
}
END_TEST

/* ---- stripes ----------------------------------------------------------------------------------------------------- */

static const char *const large[] = {"fair",     "round-robin", "weighted-round-robin:3,1", "window:3", "window:16K",
                                    "binding",  "even",        "weighted:1,1000000",       "adaptive", "eq3",
                                    "eq4:0.1:7"};

/*
 * Whatever the weights: all bytes once, in order, cuts aligned, only subchannels that are up, each once; whole where
 * the policy does not stripe.
 */
START_TEST(all_bytes_once)
{
    struct mr_policy p = parsed(large[_i], MR_POLICY_LARGE);
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};

    srand((unsigned)_i);
    for (int k = 0; k < 4000; k++) {
        struct mr_stripe plan[MR_SUBS_MAX];
        struct mr_load load[MR_SUBS_MAX];
        unsigned n = 1 + (unsigned)rand() % MR_SUBS_MAX, up = 0, num;
        uint64_t len = (uint64_t)rand() * (uint64_t)rand() % (1ull << (1 + rand() % 40)), at = 0;
        uint64_t align = 1u << rand() % 14, min = 1 + (uint64_t)rand() % 100000;
        uint32_t used = 0;

        for (unsigned i = 0; i < n; i++) {
            load[i] = (struct mr_load){.up = rand() % 3,
                                       .weight = rand() % 4 ? (uint32_t)rand() % 1025 : (uint32_t)rand() % 2};
            load[i].small_weight = load[i].weight;
            up += load[i].up;
        }
        num = mr_sched_plan(&p, &s, load, n, len, min, align, plan);
        ck_assert(up ? num >= 1 && num <= up : num == 0);
        ck_assert(p.kind->stripes || num <= 1);
        for (unsigned i = 0; i < num; i++) {
            ck_assert(plan[i].sub < n && load[plan[i].sub].up && !(used >> plan[i].sub & 1));
            used |= 1u << plan[i].sub;
            ck_assert_uint_eq(plan[i].offset, at);
            ck_assert_uint_eq(plan[i].offset % align, 0);
            at += plan[i].len;
        }
        ck_assert(!num || at == len);
    }
}
END_TEST

/* A stripe differs from its weight's part by less than the alignment at either end, if no rail is left out. */
START_TEST(weights_are_kept)
{
    struct mr_policy p = parsed("weighted", MR_POLICY_LARGE);
    struct mr_sched s = {.due = (uint64_t[MR_SUBS_MAX]){0}};

    srand(7);
    for (int k = 0; k < 4000; k++) {
        struct mr_stripe plan[MR_SUBS_MAX];
        struct mr_load load[8];
        unsigned n = 2 + (unsigned)rand() % 7, num;
        uint64_t len = (4u << 20) + (uint64_t)rand() % (64u << 20), sum = 0;

        for (unsigned i = 0; i < n; i++) {
            load[i] = (struct mr_load){.up = true, .weight = 64 + (uint32_t)rand() % 961};
            sum += load[i].weight;
        }
        num = mr_sched_plan(&p, &s, load, n, len, 16 * KIB, 4096, plan);
        ck_assert_uint_eq(num, n);
        for (unsigned i = 0; i < num; i++) {
            double want = (double)len * load[plan[i].sub].weight / (double)sum, off = (double)plan[i].len - want;

            ck_assert_msg(off < 4096 && off > -4096, "%f bytes off", off);
        }
    }
}
END_TEST

/* ---- the paper's adaptive striping ------------------------------------------------------------------------------- */

START_TEST(equation_3)
{
    struct mr_feedback f = {0};
    struct mr_load load[2] = {{true, 1024, 1024, 0, NULL, 0, 0, 0}, {true, 1024, 1024, 0, NULL, 0, 0, 0}};
    /* equal weights at first; the second stripe takes four times as long: 4 to 1 */
    struct mr_feedback_time t[2] = {{0, 1000}, {1, 4000}};

    ck_assert(mr_feedback_weigh(&f, load, 2, t, 2, 1, 100));
    ck_assert_uint_eq(f.weight[0], 80);
    ck_assert_uint_eq(f.weight[1], 20);
    ck_assert_uint_eq(load[0].weight, MR_WEIGHT_MAX);
    ck_assert_uint_eq(load[1].weight, MR_WEIGHT_MAX / 4);
    t[1].took_ns = 1000; /* then both take as long: nothing changes */
    ck_assert(!mr_feedback_weigh(&f, load, 2, t, 2, 1, 100));
    t[0].took_ns = 0; /* a clock that stood still must not cause a division by zero */
    ck_assert(mr_feedback_weigh(&f, load, 2, t, 2, 1, 100));
    ck_assert_uint_eq(f.weight[0] + f.weight[1], 100);
    ck_assert(!mr_feedback_weigh(&f, load, 2, t, 1, 1, 100));
}
END_TEST

START_TEST(equation_4)
{
    struct mr_feedback f = {0};
    struct mr_load load[2] = {{true, 1024, 1024, 0, NULL, 0, 0, 0}, {true, 1024, 1024, 0, NULL, 0, 0, 0}};
    struct mr_feedback_time t[2] = {{0, 1000}, {1, 4000}};

    /* half of 500, and half of 800 or 200 */
    ck_assert(mr_feedback_weigh(&f, load, 2, t, 2, 0.5, 1000));
    ck_assert_uint_eq(f.weight[0], 650);
    ck_assert_uint_eq(f.weight[1], 350);
}
END_TEST

/* Rails of fixed rates: weights come to be as the rates are, the sum stays, and nobody falls to nothing. */
START_TEST(feedback_converges)
{
    srand((unsigned)_i);
    for (int k = 0; k < 50; k++) {
        struct mr_feedback f = {0};
        struct mr_load load[8];
        unsigned n = 2 + (unsigned)rand() % 7;
        double rate[8], sum = 0, alpha = 0.1 + 0.1 * (rand() % 10);
        uint64_t weights = 0;

        for (unsigned i = 0; i < n; i++) {
            load[i] = (struct mr_load){.up = true, .weight = 1024};
            rate[i] = 1 + rand() % 16;
            sum += rate[i];
        }
        for (int step = 0; step < 120; step++) {
            struct mr_feedback_time t[8];

            for (unsigned i = 0; i < n; i++)
                t[i] = (struct mr_feedback_time){i, (uint64_t)(1e6 * (f.begun ? f.weight[i] : 8192 / n) / rate[i])};
            mr_feedback_weigh(&f, load, n, t, n, alpha, 8192);
            weights = 0;
            for (unsigned i = 0; i < n; i++) {
                ck_assert_uint_ge(f.weight[i], 1);
                weights += f.weight[i];
            }
            ck_assert_uint_eq(weights, 8192);
        }
        for (unsigned i = 0; i < n; i++) {
            double off = f.weight[i] - 8192 * rate[i] / sum;

            ck_assert_msg(off < 12 && off > -12, "%u of %u: %u instead of %.0f (alpha %.1f)", i, n, f.weight[i],
                          8192 * rate[i] / sum, alpha);
        }
    }
}
END_TEST

/* A rail without a part in the message keeps its weight; a rail with next to no weight comes back. */
START_TEST(feedback_of_a_part)
{
    struct mr_feedback f = {0};
    struct mr_load load[3] = {
        {true, 1024, 0, 0, NULL, 0, 0, 0}, {true, 1024, 0, 0, NULL, 0, 0, 0}, {true, 1024, 0, 0, NULL, 0, 0, 0}};
    struct mr_feedback_time t[2] = {{0, 1}, {2, 1000000}};

    for (int i = 0; i < 5; i++)
        mr_feedback_weigh(&f, load, 3, t, 2, 1, 99);
    ck_assert_uint_eq(f.weight[0], 65);
    ck_assert_uint_eq(f.weight[1], 33);
    ck_assert_uint_eq(f.weight[2], 1);
    t[0].took_ns = 65;
    t[1].took_ns = 1;
    for (int i = 0; i < 3; i++)
        mr_feedback_weigh(&f, load, 3, t, 2, 1, 99);
    ck_assert_uint_eq(f.weight[0] + f.weight[2], 66);
    ck_assert_uint_ge(f.weight[2], 33);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("policies");

    tcase_add_loop_test(t, texts_are_read, 0, sizeof texts / sizeof texts[0]);
    tcase_add_test(t, arguments_are_kept);
    tcase_add_test(t, rails_are_chosen);
    tcase_add_test(t, weights_are_given);
    tcase_add_test(t, weights_must_fit);
    tcase_add_test(t, round_robin_counts_messages);
    tcase_add_test(t, weighted_round_robin_counts_messages);
    tcase_add_test(t, a_window_stays);
    tcase_add_test(t, a_window_of_bytes);
    tcase_add_loop_test(t, all_bytes_once, 0, sizeof large / sizeof large[0]);
    tcase_add_test(t, weights_are_kept);
    tcase_add_test(t, equation_3);
    tcase_add_test(t, equation_4);
    tcase_add_loop_test(t, feedback_converges, 0, 4);
    tcase_add_test(t, feedback_of_a_part);
    return check_run(t, NULL);
}
