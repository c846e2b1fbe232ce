/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of the compiler: policies made of a few numbers, and the messages of a compilation. */
#ifndef TESTS_COMPILE_HELP_H
#define TESTS_COMPILE_HELP_H

#include "fabricd/policy/compile.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static const struct fabric_caps small_tables = {.vls = 8, .low_cap = 8, .high_cap = 8, .mtu = 4096};

static struct policy base(unsigned n, const uint32_t *shares, const uint32_t *priorities, const uint32_t *lanes)
{
    struct policy p = {.vls = 8, .high_limit = -1, .num_classes = n};
    for (unsigned i = 0; i < n; i++) {
        snprintf(p.classes[i].name, sizeof(p.classes[i].name), "c%u", i);
        p.classes[i].share = shares[i];
        p.classes[i].priority = priorities[i];
        p.classes[i].has_priority = true;
        p.classes[i].lanes = lanes[i];
        p.classes[i].small_max = 1024;
    }
    return p;
}

static struct text last; /* messages of the last compilation */

static bool compile(const struct policy *p, const struct fabric_caps *caps, struct qos_tables *t, unsigned *warnings)
{
    struct diag d = {.file = "p"};
    struct policy_lock lock;
    bool ok = lock_next(p, &(struct policy_lock){0}, caps, &lock, &d) && policy_compile(p, &lock, t, &d);
    if (warnings)
        *warnings = d.warnings;
    ck_assert_uint_eq(ok, d.errors == 0);
    text_free(&last);
    last = d.out;
    return ok;
}

static bool said(const char *what)
{
    return strstr(text_str(&last), what) != NULL;
}

#endif
