/* SPDX-License-Identifier: BSD-3-Clause */
/* mrrun --stats: the figures of rails, over all ranks, from their records. mrrun(1) has the form of the JSON document.
 */
#ifndef MRRUN_STATS_H
#define MRRUN_STATS_H

#include "mrrun/records.h"

void stats_print_table(FILE *out, const struct records *r);
void stats_print_json(FILE *out, const struct records *r);

#endif
