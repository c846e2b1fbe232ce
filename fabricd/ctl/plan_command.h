/* SPDX-License-Identifier: BSD-3-Clause */
/* `fabricctl policy plan`: loads and fabric from the command line, and the printed predictions. */
#ifndef FABRICD_PLAN_COMMAND_H
#define FABRICD_PLAN_COMMAND_H

#include "fabricd/policy/plan.h"

#define PLAN_LOADS_MAX 16

struct plan_options {
    const char *load[PLAN_LOADS_MAX]; /* names or files; none: bulk, small, many-to-one */
    unsigned num_loads;
    const char *fabric; /* "mtu=2048,rate=16000"; NULL: only the facts of the lock and of this host's adapters */
    bool json;
};

/*
 * The value of --fabric for the compiler: vls, low, high, mtu, rate, hops. False: wrong, and the error was printed.
 * text NULL: no value.
 */
bool plan_caps(const char *text, struct fabric_caps *caps);

/*
 * path: the policy's, for messages. Prints the plan on standard output, errors and warnings on standard error. The exit
 * status: 0 or 2.
 */
int plan_command(const struct plan_options *o, const char *path, const struct policy *p, const struct qos_tables *t,
                 const struct fabric_caps *caps);

#endif
