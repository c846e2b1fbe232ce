/* SPDX-License-Identifier: BSD-3-Clause */
/* A bus divided among readers: by shares, completely, and no reader gets more than requested. */
#include <stdlib.h>
#include <string.h>

#include "fabricd/fabric/rails.h"
#include "fabricd/policy/pace.h"
#include "tests/check.h"

#define ROOM 1000000u /* 1 GB/s */
#define ALL  FD_READS_ALL

static const double thirds[POLICY_CLASSES_MAX] = {50, 30, 20};

START_TEST(by_share)
{
    struct pace_process p[] = {{0, ALL, 0}, {1, ALL, 0}, {2, ALL, 0}};
    pace_divide(thirds, ROOM, p, 3);
    ck_assert_double_eq_tol(p[0].part, 0.5, 1e-9);
    ck_assert_double_eq_tol(p[1].part, 0.3, 1e-9);
    ck_assert_double_eq_tol(p[2].part, 0.2, 1e-9);
}
END_TEST

START_TEST(what_is_idle_goes_to_the_others)
{
    struct pace_process p[] = {{0, 0, 0}, {1, ALL, 0}, {2, ALL, 0}, {2, ALL, 0}};
    pace_divide(thirds, ROOM, p, 4);
    ck_assert_double_eq_tol(p[1].part, 0.6, 1e-9);
    ck_assert_double_eq_tol(p[2].part, 0.2, 1e-9);
    ck_assert_double_eq_tol(p[3].part, 0.2, 1e-9);
    ck_assert_double_eq_tol(p[0].part, 0.5, 1e-9); /* at its beginning */
    p[1].want_kb = 0;
    pace_divide(thirds, ROOM, p, 4);
    ck_assert_double_eq_tol(p[2].part + p[3].part, 1, 1e-9);
}
END_TEST

/*
 * The first reader of class 0 requests a tenth, and leaves the rest to the other, whose class gets no more than its
 * part.
 */
START_TEST(who_wants_less_leaves_the_rest)
{
    struct pace_process p[] = {{0, ROOM / 10, 0}, {0, ALL, 0}, {1, ALL, 0}, {2, ROOM / 20, 0}};
    pace_divide(thirds, ROOM, p, 4);
    ck_assert_double_eq_tol(p[1].part, 0.95 * 50 / 80 - 0.1, 1e-9);
    ck_assert_double_eq_tol(p[2].part, 0.95 * 30 / 80, 1e-9);
    ck_assert_double_eq_tol(p[0].part, 0.95 * 50 / 80 / 2, 1e-9); /* if requesting all */
    ck_assert_double_eq_tol(p[3].part, 0.2, 1e-9);
}
END_TEST

/*
 * For any requests: readers that request all have all that the others leave, and no reader has less than its own share
 * of the bus.
 */
START_TEST(nothing_is_lost)
{
    srand(1);
    for (unsigned round = 0; round < 2000; round++) {
        struct pace_process p[20];
        unsigned n = 1 + (unsigned)rand() % 20, wide = 0;
        double share[POLICY_CLASSES_MAX], shares = 0, sum = 0, less = 0;
        for (unsigned c = 0; c < POLICY_CLASSES_MAX; c++)
            shares += share[c] = 1 + rand() % 90;
        for (unsigned i = 0; i < n; i++) {
            p[i] = (struct pace_process){.class_index = (unsigned)rand() % POLICY_CLASSES_MAX};
            p[i].want_kb = rand() % 3 ? rand() % 2 ? ALL : (uint32_t)rand() % (ROOM / 8) : 0;
            wide += p[i].want_kb == ALL;
        }
        pace_divide(share, ROOM, p, n);
        for (unsigned i = 0; i < n; i++) {
            double want = (double)p[i].want_kb / ROOM;
            unsigned of_class = 0;
            for (unsigned k = 0; k < n; k++)
                of_class += p[k].class_index == p[i].class_index;
            ck_assert_double_ge(p[i].part, share[p[i].class_index] / shares / of_class - 1e-9);
            ck_assert_double_le(p[i].part, 1 + 1e-9);
            sum += p[i].want_kb == ALL ? p[i].part : 0;
            less += p[i].want_kb == ALL ? 0 : want < p[i].part ? want : p[i].part;
        }
        if (wide)
            ck_assert_msg(sum + less > 1 - 1e-6 && sum + less < 1 + 1e-6, "round %u: %f and %f", round, sum, less);
    }
}
END_TEST

START_TEST(where_the_bus_is_slower)
{
    struct rails r = {.n = 4, .data_mbps = {16000, 200000, 16000, 16000}, .bus_mbytes = {1641, 28400, 1641, 0}};
    for (unsigned i = 0; i < r.n; i++) {
        strcpy(r.rail[i].device, i < 2 ? "a0" : "b0");
        r.rail[i].device[1] = (char)('0' + i);
        r.rail[i].infiniband = r.rail[i].usable = 1;
    }
    ck_assert_uint_eq(rails_bus_room(&r, 0), 1575360);
    ck_assert_uint_eq(rails_bus_room(&r, 1), 0);
    ck_assert_uint_eq(rails_bus_room(&r, 3), 0); /* nobody knows */
    strcpy(r.rail[1].device, "a0");              /* two ports, one bus */
    ck_assert_uint_eq(rails_bus_room(&r, 0), 787680);
    r.rail[1].usable = 0;
    ck_assert_uint_eq(rails_bus_room(&r, 0), 1575360);
    r.rail[2].infiniband = 0;
    ck_assert_uint_eq(rails_bus_room(&r, 2), 0);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("pace");
    tcase_add_test(c, by_share);
    tcase_add_test(c, what_is_idle_goes_to_the_others);
    tcase_add_test(c, who_wants_less_leaves_the_rest);
    tcase_add_test(c, nothing_is_lost);
    tcase_add_test(c, where_the_bus_is_slower);
    return check_run(c, NULL);
}
