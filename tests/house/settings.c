/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the settings and counters that the library has, a line each, for comparison with its man page. */
#include <stdio.h>

#include "libmrmpi/base/base.h"

int main(void)
{
    char line[512];

    for (size_t i = 0; i < mr_config_count(); i++)
        printf("setting %s\n", mr_config_describe(i, line, sizeof line));
    for (int s = 0; s < MR_STAT_COUNT; s++)
        printf("counter %s\n", mr_stat_name((enum mr_stat)s));
    return 0;
}
