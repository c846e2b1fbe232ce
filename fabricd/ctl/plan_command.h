/* SPDX-License-Identifier: BSD-3-Clause */
/* `fabricctl policy plan`: what the command line says of loads and fabric, and the predictions, printed. */
#ifndef FABRICD_PLAN_COMMAND_H
#define FABRICD_PLAN_COMMAND_H

#include "fabricd/policy/plan.h"

#define PLAN_LOADS_MAX 16

struct plan_options {
    const char *load[PLAN_LOADS_MAX]; /* names or files; none: bulk, small, many-to-one */
    unsigned num_loads;
    const char *fabric; /* "mtu=2048,rate=16000"; NULL: only what the lock and this host's adapters tell */
    bool json;
};

/*
 * What --fabric says, into what the compiler goes by: vls, low, high, mtu, rate, hops. False: wrong, which was printed.
 * text NULL: nothing is said.
 */
bool plan_caps(const char *text, struct fabric_caps *caps);

/* path: the policy's, for messages. Prints the plan on standard output, what is wrong and warnings on standard error.
 * The exit status: 0 or 2. */
int plan_command(const struct plan_options *o, const char *path, const struct policy *p, const struct qos_tables *t,
                 const struct fabric_caps *caps);

#endif
