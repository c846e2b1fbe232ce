/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of settings: defaults, values, complaints. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "tests/check.h"

static const char *complaint(size_t *count)
{
    const char *first;

    *count = mr_config_complaints(&first);
    return first;
}

static void setup(void)
{
    clearenv();
}

static void teardown(void)
{
    mr_config_finalize();
}

START_TEST(defaults)
{
    size_t n;

    ck_assert_int_eq(mr_config_init(), 0);
    ck_assert_uint_eq(mr_config.eager_max, 8192);
    ck_assert_int_eq(mr_config.log_level, 1);
    ck_assert(mr_config.single_copy);
    ck_assert_str_eq(mr_config.devices, "");
    ck_assert_str_eq(mr_config.fabricd_socket, "/run/fabricd/fabricd.sock");
    complaint(&n);
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(values)
{
    size_t n;

    setenv("MRMPI_EAGER_MAX", "4KiB", 1);
    setenv("MRMPI_REG_CACHE_MAX", "2g", 1);
    setenv("MRMPI_SINGLE_COPY", "Off", 1);
    setenv("MRMPI_RAILS_MAX", "0x2", 1);
    setenv("MRMPI_DEVICES", "mlx5_0:1", 1);
    ck_assert_int_eq(mr_config_init(), 0);
    ck_assert_uint_eq(mr_config.eager_max, 4096);
    ck_assert_uint_eq(mr_config.reg_cache_max, 2ul << 30);
    ck_assert(!mr_config.single_copy);
    ck_assert_int_eq(mr_config.rails_max, 2);
    ck_assert_str_eq(mr_config.devices, "mlx5_0:1");
    ck_assert_str_eq(complaint(&n), "");
}
END_TEST

START_TEST(job_id_from_scheduler)
{
    setenv("SLURM_JOB_ID", "4711", 1);
    ck_assert_int_eq(mr_config_init(), 0);
    ck_assert_str_eq(mr_config.job_id, "4711");
    setenv("MRMPI_JOBID", "own", 1);
    ck_assert_int_eq(mr_config_init(), 0);
    ck_assert_str_eq(mr_config.job_id, "own");
}
END_TEST

static const char *const bad[][2] = {
    {"MRMPI_EAGER_MAX", "12parsecs"},
    {"MRMPI_EAGER_MAX", "1G"},
    {"MRMPI_EAGER_MAX", "-1"},
    {"MRMPI_EAGER_MAX", ""},
    {"MRMPI_EAGER_MAX", "9999999999999999999999"},
    {"MRMPI_EAGER_MAX", "8589934592G"},
    {"MRMPI_RAILS_MAX", "2K"},
    {"MRMPI_RAILS_MAX", "65"},
    {"MRMPI_SINGLE_COPY", "maybe"},
    {"MRMPI_LOG_LEVEL", "loud"},
};

START_TEST(bad_value_keeps_default)
{
    size_t n;

    setenv(bad[_i][0], bad[_i][1], 1);
    ck_assert_int_eq(mr_config_init(), 0);
    ck_assert_ptr_nonnull(strstr(complaint(&n), bad[_i][0]));
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(mr_config.eager_max, 8192);
    ck_assert_int_eq(mr_config.rails_max, 0);
    ck_assert(mr_config.single_copy);
    ck_assert_int_eq(mr_config.log_level, 1);
}
END_TEST

START_TEST(unknown_name_gets_a_hint)
{
    size_t n;

    setenv("MRMPI_EGER_MAX", "1K", 1);
    ck_assert_int_eq(mr_config_init(), 0);
    ck_assert_ptr_nonnull(strstr(complaint(&n), "MRMPI_EGER_MAX is not a setting"));
    ck_assert_ptr_nonnull(strstr(complaint(&n), "nearest is MRMPI_EAGER_MAX"));
    ck_assert_uint_eq(n, 1);
    mr_config_complain();
    ck_assert_str_eq(complaint(&n), "");
}
END_TEST

START_TEST(every_row_describes_itself)
{
    struct mr_setting s;

    for (size_t i = 0; i < mr_config_count(); i++) {
        ck_assert(mr_config_setting(i, &s));
        ck_assert_int_eq(strncmp(s.name, "MRMPI_", 6), 0);
        ck_assert_uint_gt(strlen(s.help), 10);
        ck_assert_int_ne(s.help[strlen(s.help) - 1], '.');
        ck_assert_int_lt(s.min, s.max + (s.kind == MR_SETTING_STRING));
        ck_assert_int_eq(mr_config_set(i, s.standard), s.fixed ? -EPERM : 0);
    }
    ck_assert(!mr_config_setting(mr_config_count(), &s));
}
END_TEST

static size_t row_of(const char *name)
{
    struct mr_setting s;
    size_t i = 0;

    while (mr_config_setting(i, &s) && strcmp(s.name, name))
        i++;
    ck_assert_uint_lt(i, mr_config_count());
    return i;
}

/* Set by a tool: the values stay when the library starts, and then only some settings change. */
START_TEST(set_early_and_fixed)
{
    size_t eager = row_of("MRMPI_EAGER_MAX"), devices = row_of("MRMPI_DEVICES"), spin = row_of("MRMPI_SPIN_US"), size;
    struct mr_setting s;
    char text[16];
    int number;

    setenv("MRMPI_EAGER_MAX", "1K", 1);
    ck_assert_int_eq(mr_config_early(), 0);
    ck_assert(mr_config_get(eager, &size, sizeof(size)) && size == 1024);
    ck_assert_int_eq(mr_config_set(eager, "2K"), 0);
    ck_assert_int_eq(mr_config_set(eager, "2Kilo"), -EINVAL);
    ck_assert_int_eq(mr_config_set(devices, "mlx5_0:1,mlx5_1:1"), 0);
    ck_assert_int_eq(mr_config_set(mr_config_count(), "1"), -EINVAL);
    ck_assert(!mr_config_get(mr_config_count(), text, sizeof(text)));
    ck_assert_int_eq(mr_config_init(), 0);
    ck_assert_int_eq(mr_config_early(), 0); /* nothing any more */
    ck_assert_uint_eq(mr_config.eager_max, 2048);
    ck_assert_int_eq(mr_config_set(eager, "4K"), -EPERM);
    ck_assert_int_eq(mr_config_set(devices, ""), -EPERM);
    ck_assert(mr_config_get(devices, text, sizeof(text)));
    ck_assert_str_eq(text, "mlx5_0:1,mlx5_1"); /* cut */
    ck_assert_int_eq(mr_config_set(spin, "7"), 0);
    ck_assert(mr_config_get(spin, &number, sizeof(number)) && number == 7);
    ck_assert_int_eq(mr_config.spin_us, 7);
    ck_assert(mr_config_setting(eager, &s) && s.fixed && !s.live);
    ck_assert(mr_config_setting(spin, &s) && !s.fixed && s.live);
}
END_TEST

/* Never a part of one string and a part of another, and never freed memory. */
static void *writes_strings(void *arg)
{
    size_t row = row_of("MRMPI_DEVICES");

    for (int i = 0; i < 2000; i++)
        mr_config_set(row, i % 2 ? "aaaaaaaaaaaa" : "bb");
    return NULL;
}

START_TEST(strings_of_threads)
{
    size_t row = row_of("MRMPI_DEVICES");
    pthread_t t[2];
    char text[16];

    ck_assert_int_eq(mr_config_early(), 0);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, writes_strings, NULL);
    for (int i = 0; i < 2000; i++) {
        ck_assert(mr_config_get(row, text, sizeof(text)));
        ck_assert(!*text || !strcmp(text, "bb") || !strcmp(text, "aaaaaaaaaaaa"));
    }
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("config");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, defaults);
    tcase_add_test(c, set_early_and_fixed);
    tcase_add_test(c, strings_of_threads);
    tcase_add_test(c, values);
    tcase_add_test(c, job_id_from_scheduler);
    tcase_add_loop_test(c, bad_value_keeps_default, 0, sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(c, unknown_name_gets_a_hint);
    tcase_add_test(c, every_row_describes_itself);
    return check_run(c, NULL);
}
