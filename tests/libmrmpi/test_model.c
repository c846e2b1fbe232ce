/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost model: its inputs by text, by file and by measurement, the thresholds that follow, and the bounds of both.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/least.h"
#include "libmrmpi/base/model.h"
#include "tests/check.h"

#define KIB 1024u

static struct mr_model m;
static char why[256];

static struct mr_model with(const char *text)
{
    struct mr_model model;

    ck_assert_msg(mr_model_parse(&model, text, why, sizeof why), "%s: %s", text, why);
    return model;
}

/* Where the figures of docs/design/protocols.md were measured. */
START_TEST(thresholds_by_default)
{
    m = with("");
    ck_assert_uint_eq(m.busy_copy_mbps, 10000);
    ck_assert_uint_eq(m.outrun_mbps, 100000);
    ck_assert_uint_eq(m.gap_ns, 3000);
    ck_assert_uint_eq(m.offer_at, 4 * KIB);
    ck_assert_uint_eq(m.rtr_prefix, 8 * KIB);
    ck_assert_uint_eq(m.prefix, 16 * KIB);
    ck_assert_uint_eq(m.zsend_at, 24 * KIB);
    ck_assert_uint_eq(m.shallow, 48 * KIB);
    ck_assert_uint_eq(m.burst_at, 64 * KIB);
    ck_assert_uint_eq(m.register_at, 128 * KIB);
    ck_assert_uint_eq(m.read_at, 160 * KIB);
}
END_TEST

START_TEST(inputs_by_text)
{
    m = with(" copy_mbps=8000,trip_ns=3000\nregister_ns=0 # pages on demand, post_ns=7\n# all\n");
    ck_assert_uint_eq(m.copy_mbps, 8000);
    ck_assert_uint_eq(m.trip_ns, 3000);
    ck_assert_uint_eq(m.register_ns, 0);
    ck_assert_uint_eq(m.post_ns, 375);
    ck_assert_uint_eq(m.outrun_mbps, 64000);
    m = with("post_ns=1,post_ns=2");
    ck_assert_uint_eq(m.post_ns, 2);
    for (unsigned i = 0; i < MR_MODEL_INPUTS; i++)
        ck_assert_uint_eq(mr_model_input(&m, i), i == 4 ? 2 : mr_model_inputs[i].standard);
}
END_TEST

START_TEST(wrong_text_is_refused)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"copy_mps=1", "\"copy_mps\" is not a cost; costs are copy_mbps, register_ns, register_byte_ps, trip_ns, "
                       "post_ns, page_ns"},
        {"trip_ns=1,fast", "\"fast\" is not a cost"},
        {"=5", "\"\" is not a cost"},
        {"copy_mbps", "copy_mbps: copy_mbps must be a whole number of MB/s from 100 to 100000"},
        {"copy_mbps=", "copy_mbps=: copy_mbps must be"},
        {"copy_mbps=99", "copy_mbps=99: copy_mbps must be"},
        {"copy_mbps=100001", "copy_mbps=100001: copy_mbps must be"},
        {"trip_ns=1.5", "trip_ns=1.5: trip_ns must be a whole number of ns from 0 to 10000000"},
        {"trip_ns=-1", "trip_ns=-1: trip_ns must be"},
        {"trip_ns=+1", "trip_ns=+1: trip_ns must be"},
        {"trip_ns=1K", "trip_ns=1K: trip_ns must be"},
        {"trip_ns=18446744073709551617", "trip_ns=18446744073709551617: trip_ns must be"},
        {"trip_ns=4294967297", "trip_ns=4294967297: trip_ns must be"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(!mr_model_parse(&m, wrong[i].text, why, sizeof why), "%s", wrong[i].text);
        ck_assert_msg(!strncmp(why, wrong[i].says, strlen(wrong[i].says)), "%s: %s", wrong[i].text, why);
    }
}
END_TEST

static void set(char *text, size_t size, unsigned extremes)
{
    *text = '\0';
    for (unsigned i = 0; i < MR_MODEL_INPUTS; i++)
        snprintf(text + strlen(text), size - strlen(text), "%s=%u ", mr_model_inputs[i].name,
                 extremes >> i & 1 ? mr_model_inputs[i].max : mr_model_inputs[i].min);
}

/* Nothing overflows, and nothing is less than a page, wherever the inputs are. */
START_TEST(bounds)
{
    char text[256];

    for (unsigned extremes = 0; extremes < 1u << MR_MODEL_INPUTS; extremes++) {
        set(text, sizeof text, extremes);
        m = with(text);
        for (const uint32_t *at = &m.offer_at; at <= &m.read_at; at++)
            ck_assert_msg(*at >= MR_MODEL_PAGE && *at % MR_MODEL_PAGE == 0, "%s: %u", text, *at);
        ck_assert_uint_ge(m.zsend_at, m.offer_at);
        ck_assert_uint_ge(m.burst_at, m.rtr_prefix);
        ck_assert_uint_ge(m.read_at, m.register_at);
        ck_assert_uint_eq(m.shallow, 2ull * m.zsend_at);
        ck_assert_uint_ge(m.gap_ns, m.trip_ns);
        ck_assert_uint_eq(m.outrun_mbps, 8ull * m.copy_mbps);
        if (m.trip_ns + m.register_ns == 20000000)
            ck_assert_double_eq_tol(m.read_at, m.copy_mbps * 25000., MR_MODEL_PAGE);
    }
}
END_TEST

/* Linear in bytes and in devices. */
START_TEST(costs)
{
    m = with("");
    ck_assert_uint_eq(mr_model_copy_ns(&m, 125000), 10000);
    ck_assert_uint_eq(mr_model_copy_ns(&m, 1ull << 40), (1ull << 40) * 1000 / 12500);
    ck_assert_uint_eq(mr_model_register_ns(&m, 1, 1), 10500);
    ck_assert_uint_eq(mr_model_register_ns(&m, 128 * KIB, 3), 31500);
    ck_assert_uint_eq(mr_model_register_ns(&m, 128 * KIB + 1000000, 2), 2 * (10500 + 15000));
}
END_TEST

/* A measured input has the same thresholds as the input by text. */
START_TEST(measurements)
{
    static const uint32_t value[MR_MODEL_INPUTS] = {6000, 39600, 73, 6065, 150, 9000};
    struct mr_model by_text =
        with("copy_mbps=6000,register_ns=39600,register_byte_ps=73,trip_ns=6065,post_ns=150,page_ns=9000");

    m = with("");
    for (unsigned i = 0; i < MR_MODEL_INPUTS; i++) {
        ck_assert_str_eq(mr_model_origin(&m, i), "default");
        ck_assert(mr_model_take(&m, i, value[i]));
        ck_assert_uint_eq(mr_model_input(&m, i), value[i]);
        ck_assert_str_eq(mr_model_origin(&m, i), "measured");
        ck_assert_str_eq(mr_model_origin(&by_text, i), "set");
    }
    ck_assert_mem_eq(&m, &by_text, offsetof(struct mr_model, origin));
    ck_assert(mr_model_take(&m, MR_MODEL_TRIP_NS, 12000)); /* the last one counts */
    ck_assert_uint_eq(m.trip_ns, 12000);
}
END_TEST

/* A hundred times too long or too short: something was interrupted, or did not happen. */
START_TEST(implausible_measurements_are_refused)
{
    struct mr_model before = with("");

    for (unsigned i = 0; i < MR_MODEL_INPUTS; i++) {
        uint64_t standard = mr_model_inputs[i].standard;
        const uint64_t wrong[] = {0, standard / 100, 100 * standard, (1ull << 32) + standard, UINT64_MAX};

        for (unsigned k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            m = before;
            ck_assert_msg(!mr_model_take(&m, i, wrong[k]), "%s=%llu", mr_model_inputs[i].name,
                          (unsigned long long)wrong[k]);
            ck_assert_mem_eq(&m, &before, sizeof m);
        }
        ck_assert(mr_model_take(&m, i, mr_model_inputs[i].least) && mr_model_take(&m, i, mr_model_inputs[i].most));
        ck_assert_uint_ge(mr_model_inputs[i].least, mr_model_inputs[i].min);
        ck_assert_uint_le(mr_model_inputs[i].most, mr_model_inputs[i].max);
    }
}
END_TEST

/* Of alike machines one measures a little more than the other. */
START_TEST(small_differences_keep_the_default)
{
    struct mr_model standard = with("");

    for (unsigned i = 0; i < MR_MODEL_INPUTS; i++) {
        uint64_t value = mr_model_inputs[i].standard, near[] = {value - value / 5, value, value + value / 5};

        m = standard;
        for (unsigned k = 0; k < 3; k++) {
            ck_assert(mr_model_take(&m, i, near[k]));
            ck_assert_mem_eq(&m, &standard, offsetof(struct mr_model, origin));
            ck_assert_str_eq(mr_model_origin(&m, i), "measured");
        }
        ck_assert(mr_model_take(&m, i, value + value / 3));
        ck_assert_uint_eq(mr_model_input(&m, i), value + value / 3);
    }
}
END_TEST

START_TEST(settings_win_over_measurements)
{
    struct mr_model before = with("trip_ns=1750,copy_mbps=3000");

    m = before;
    ck_assert(!mr_model_take(&m, MR_MODEL_TRIP_NS, 5000));
    ck_assert(!mr_model_take(&m, MR_MODEL_COPY_MBPS, 12500));
    ck_assert_mem_eq(&m, &before, sizeof m);
    ck_assert(mr_model_take(&m, MR_MODEL_REGISTER_NS, 20000));
    ck_assert_uint_eq(m.register_ns, 20000);
}
END_TEST

/* One interruption, or all but two, change nothing; a time seen once is none. */
START_TEST(the_least_counts_if_seen_twice)
{
    static const struct {
        uint64_t ns[6], least;
    } row[] = {
        {{1000, 1100}, 1000},
        {{1250, 1000}, 1000},
        {{1251, 1000}, 0},
        {{1000}, 0},
        {{0, 0, 0}, 0},
        {{0, 1000, 0, 1000}, 1000},
        {{90000, 1000, 80000, 70000, 1010, 60000}, 1000},
        {{90000, 1000, 80000, 70000, 50000, 60000}, 0},
        {{3000, 2000, 1000, 900}, 900},
    };

    for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
        struct mr_least l = {0};

        for (unsigned k = 0; k < 6; k++)
            mr_least_add(&l, row[i].ns[k]);
        ck_assert_msg(mr_least_ns(&l) == row[i].least, "row %u: %llu", i, (unsigned long long)mr_least_ns(&l));
    }
}
END_TEST

static void init_with(const char *setting)
{
    setenv("MRMPI_MODEL", setting, 1);
    ck_assert_int_eq(mr_config_init(), 0);
}

START_TEST(by_setting)
{
    char name[] = "/tmp/mrmpi-test-model-XXXXXX", setting[64], *text = malloc(5000);
    int fd = mkstemp(name);

    ck_assert_int_ge(fd, 0);
    init_with("copy_mbps=6000");
    ck_assert_int_eq(mr_model_init(why, sizeof why), 0);
    ck_assert_uint_eq(mr_model.copy_mbps, 6000);
    snprintf(setting, sizeof setting, "@%s", name);
    init_with(setting);
    ck_assert_int_eq(mr_model_init(why, sizeof why), 0); /* nothing is in the file */
    ck_assert_uint_eq(mr_model.copy_mbps, 12500);
    ck_assert_int_eq(write(fd, "# a slow machine\ncopy_mbps=3000\n", 33 - 1), 32);
    ck_assert_int_eq(mr_model_init(why, sizeof why), 0);
    ck_assert_uint_eq(mr_model.copy_mbps, 3000);
    memset(text, ' ', 5000);
    ck_assert_int_eq(write(fd, text, 5000), 5000);
    ck_assert_int_eq(mr_model_init(why, sizeof why), -EFBIG);
    ck_assert(strstr(why, "cannot be read: "));
    unlink(name);
    ck_assert_int_eq(mr_model_init(why, sizeof why), -ENOENT);
    ck_assert(strstr(why, name) && strstr(why, "cannot be read: No such file"));
    init_with("copy_mbps=none");
    ck_assert_int_eq(mr_model_init(why, sizeof why), -EINVAL);
    ck_assert(strstr(why, "copy_mbps=none: copy_mbps must be"));
    close(fd);
    free(text);
}
END_TEST

/* Counters tell the inputs in force and the measured inputs: a user can compare both. */
START_TEST(counters_tell_both)
{
    init_with("trip_ns=9000");
    ck_assert_int_eq(mr_model_init(why, sizeof why), 0);
    mr_model_measured(MR_MODEL_COPY_MBPS, 4000);
    mr_model_measured(MR_MODEL_REGISTER_NS, 1050000);
    mr_model_measured(MR_MODEL_TRIP_NS, 1700);
    ck_assert_uint_eq(mr_stat_get(MR_STAT_MODEL_COPY_MBPS), 4000);
    ck_assert_uint_eq(mr_stat_get(MR_STAT_SEEN_MEMORY_MBPS), 4000);
    ck_assert_uint_eq(mr_stat_get(MR_STAT_MODEL_REGISTER_NS), 10500);
    ck_assert_uint_eq(mr_stat_get(MR_STAT_SEEN_REGISTER_NS), 1050000);
    ck_assert_uint_eq(mr_stat_get(MR_STAT_MODEL_TRIP_NS), 9000);
    ck_assert_uint_eq(mr_stat_get(MR_STAT_SEEN_TRIP_NS), 1700);
    ck_assert_uint_eq(mr_model.outrun_mbps, 32000);
    ck_assert(mr_stat_is_level(MR_STAT_MODEL_REGISTER_BYTE_PS) && mr_stat_is_level(MR_STAT_SEEN_POST_NS));
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("model");

    tcase_add_test(c, thresholds_by_default);
    tcase_add_test(c, inputs_by_text);
    tcase_add_test(c, wrong_text_is_refused);
    tcase_add_test(c, bounds);
    tcase_add_test(c, costs);
    tcase_add_test(c, measurements);
    tcase_add_test(c, implausible_measurements_are_refused);
    tcase_add_test(c, small_differences_keep_the_default);
    tcase_add_test(c, settings_win_over_measurements);
    tcase_add_test(c, the_least_counts_if_seen_twice);
    tcase_add_test(c, by_setting);
    tcase_add_test(c, counters_tell_both);
    return check_run(c, NULL);
}
