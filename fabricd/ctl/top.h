/* SPDX-License-Identifier: BSD-3-Clause */
/* `fabricctl top`: the policy, this host's rails with their rates, classes and jobs, again and again. */
#ifndef FABRICD_TOP_H
#define FABRICD_TOP_H

#include <stdbool.h>
#include <stdint.h>

struct top_options {
    uint32_t interval_s; /* between two pictures; rates are of this time */
    uint32_t count;      /* of pictures; 0: until the terminal or the daemon goes */
    bool json;           /* each picture is an object on a line */
};

/* 0, or a negative errno of the conversation with the daemon. */
int top_run(const char *socket, const struct top_options *o);

#endif
