/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports named by MRMPI_DEVICES, and the number of queue pairs that adapters serve well. */
#include <stddef.h>

#include "libmrmpi/verbs/contexts.h"
#include "libmrmpi/verbs/select.h"
#include "tests/check.h"

static const struct {
    const char *list, *device;
    unsigned port;
    bool selected;
} cases[] = {
    {"", "mlx5_0", 1, true},
    {NULL, "mlx5_0", 1, true},
    {"mlx5_0", "mlx5_0", 2, true},
    {"mlx5_0:1", "mlx5_0", 1, true},
    {"mlx5_0:1", "mlx5_0", 2, false},
    {"mlx5_0:1", "mlx5_0", 0, true},
    {"mlx5_0:11", "mlx5_0", 1, false},
    {"mlx5_1", "mlx5_0", 1, false},
    {"mlx5_10", "mlx5_1", 1, false},
    {"mlx5_1", "mlx5_10", 1, false},
    {"mlx5_1,mlx5_0:2", "mlx5_0", 2, true},
    {"mlx5_1,mlx5_0:2", "mlx5_0", 1, false},
    {",,mlx5_0,", "mlx5_0", 1, true},
    {",", "mlx5_0", 1, false},
    {"mlx5_0:", "mlx5_0", 1, false},
};

START_TEST(one)
{
    ck_assert_int_eq(mr_device_selected(cases[_i].list, cases[_i].device, cases[_i].port), cases[_i].selected);
}
END_TEST

static const struct {
    const char *type;
    unsigned contexts;
} adapters[] = {
    {"MT23108", 128},
    {"MT25418\n", 128},
    {"MT26428", 128},
    {"MT4099", 1024},
    {"MT4103\n", 1024},
    {"MT4113", MR_CONTEXTS_CURRENT},
    {"MT4123\n", MR_CONTEXTS_CURRENT},
    {"MT", MR_CONTEXTS_CURRENT},
    {"23108", MR_CONTEXTS_CURRENT},
    {"", MR_CONTEXTS_CURRENT},
    {NULL, MR_CONTEXTS_CURRENT},
};

START_TEST(contexts)
{
    ck_assert_uint_eq(mr_contexts_of(adapters[_i].type), adapters[_i].contexts);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("select");

    tcase_add_loop_test(t, contexts, 0, sizeof(adapters) / sizeof(adapters[0]));

    tcase_add_loop_test(t, one, 0, sizeof(cases) / sizeof(cases[0]));
    return check_run(t, NULL);
}
