/* SPDX-License-Identifier: BSD-3-Clause */
/* mrrun --explain: for each pair of hosts which rails are paired, which links carry what, on which service levels, and
 * why. */
#ifndef MRRUN_PAIRS_H
#define MRRUN_PAIRS_H

#include "libmrmpi/link/kinds.h"
#include "libmrmpi/route/rules.h"
#include "mrrun/rails.h"

struct pairs {
    const struct hosts *hosts;
    int num; /* of them are in use */
    const struct host_rails *of;
    const struct mr_kinds *kinds;
    const struct mr_rules *rules; /* in force */
    bool simulated;
};

/* Pairs that are alike are printed once. */
void pairs_print(const struct pairs *p);
/* A number of bytes as 8K; the text is one of a few. */
const char *pairs_bytes(unsigned long long n);
unsigned long long pairs_unasked(void); /* the longest message between hosts that is sent eagerly */

#endif
