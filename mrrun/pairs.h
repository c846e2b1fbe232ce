/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mrrun --explain: for each pair of hosts the paired rails, the links and service levels of messages, and the reasons.
 */
#ifndef MRRUN_PAIRS_H
#define MRRUN_PAIRS_H

#include "libmrmpi/verbs/verbs.h"
#include "libmrmpi/conn/route/rules.h"
#include "mrrun/rails.h"

struct pairs {
    const struct hosts *hosts;
    int num; /* of them are in use */
    const struct host_rails *of;
    const struct mr_kinds *kinds;
    const struct mr_rules *rules; /* in force */
    bool by_ring;                 /* large messages go through rings, if rings carry them */
    bool simulated;
    char *const *env; /* of the ranks */
};

/* Pairs that are alike are printed once. */
void pairs_print(const struct pairs *p);

#endif
