/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost model: its inputs by text and by file, the thresholds that follow, and the bounds of both. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/base/base.h"
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

int main(void)
{
    TCase *c = tcase_create("model");

    tcase_add_test(c, thresholds_by_default);
    tcase_add_test(c, inputs_by_text);
    tcase_add_test(c, wrong_text_is_refused);
    tcase_add_test(c, bounds);
    tcase_add_test(c, costs);
    tcase_add_test(c, by_setting);
    return check_run(c, NULL);
}
