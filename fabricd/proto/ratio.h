/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job's small ratio, "SMALL:LARGE": of what a process of it may send over a rail, so much goes ahead of the bulk in
 * small (and medium) messages, SMALL of SMALL + LARGE; the rest of them goes with the bulk. It never lets a job send
 * more ahead than its class does (ahead.h). Pure.
 */
#ifndef FABRICD_RATIO_H
#define FABRICD_RATIO_H

#include "fabricd/proto/proto.h"

#define RATIO_NONE "none" /* in orders: it is to have none any more */

struct ratio {
    unsigned small, large; /* 0 to 1000, 1 to 1000; 0:0 is none */
};

/* False: it is not "SMALL:LARGE" in whole numbers of this range; out is none then. */
bool ratio_parse(const char *s, struct ratio *out);
/* As ratio_parse takes it; none is "". */
void ratio_text(const struct ratio *r, char out[FD_RATIO_MAX]);
/* In range, or none. */
bool ratio_good(const struct ratio *r);
/* The part of a rail that small messages have, in percent. Not of none. */
double ratio_percent(const struct ratio *r);

#endif
