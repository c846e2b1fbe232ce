/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ports MRMPI_DEVICES names. */
#include <stddef.h>

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

int main(void)
{
    TCase *t = tcase_create("select");

    tcase_add_loop_test(t, one, 0, sizeof(cases) / sizeof(cases[0]));
    return check_run(t, NULL);
}
