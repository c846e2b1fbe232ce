/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job's small ratio, "SMALL:LARGE". Of the traffic that a process may send over a rail, the part SMALL of SMALL +
 * LARGE may go ahead of the bulk in small (and medium) messages; further small messages go with the bulk. A job never
 * sends more ahead than its class (ahead.h). Pure.
 */
#ifndef FABRICD_RATIO_H
#define FABRICD_RATIO_H

#include "fabricd/proto/proto.h"

#define RATIO_NONE "none" /* in orders: the job loses its ratio */

struct ratio {
    unsigned small, large; /* 0 to 1000, 1 to 1000; 0:0 is none */
};

/* False: not "SMALL:LARGE" in whole numbers of this range; out is none then. */
bool ratio_parse(const char *s, struct ratio *out);
/* The form for ratio_parse; none is "". */
void ratio_text(const struct ratio *r, char out[FD_RATIO_MAX]);
/* In range, or none. */
bool ratio_good(const struct ratio *r);
/* The part of a rail for small messages, in percent. Not for none. */
double ratio_percent(const struct ratio *r);

#endif
