/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of settings, for config.c only: others ask mr_config_setting(). */
#ifndef MRMPI_CONFIG_TABLE_H
#define MRMPI_CONFIG_TABLE_H

#include "libmrmpi/base/base.h"

struct mr_config_row {
    const char *name; /* in the environment */
    const char *also; /* asked when name is not set; NULL: none */
    size_t offset;
    enum mr_setting_kind kind;
    const char *standard; /* the default, parsed like a value */
    long long min, max;
    const char *unit;
    const char *help;
    enum mr_topic topic;
    bool live; /* read on each use, so a change works at once; others are read at mr_init */
};

extern const struct mr_config_row mr_config_rows[];
extern const size_t mr_config_num_rows;

#endif
