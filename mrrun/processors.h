/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processors of this machine, from hwloc, among those allowed for mrrun; their distances from adapters; and sets of
 * processors for ranks.
 */
#ifndef MRRUN_PROCESSORS_H
#define MRRUN_PROCESSORS_H

#include <sched.h>
#include <stdbool.h>

#include "mrrun/binding.h"

struct processors {
    cpu_set_t **set; /* [ranks] for sched_setaffinity() */
    size_t bytes;    /* of each */
    int ranks;
};

/*
 * Sets for the ranks, in their order; devices[rank] are the adapters that a rank uses, separated by commas, NULL or
 * empty: any. 0, or -1 with a message in *why.
 */
int processors_choose(struct processors *p, const struct binding_wish *wish, int ranks, const char *const *devices,
                      char *why, size_t cap);
/* A rank's set as a list: "0-3,8". */
void processors_text(const struct processors *p, int rank, char *text, size_t cap);
void processors_clear(struct processors *p);
/* True if mrrun may run on fewer processors than ranks: then ranks share processors, and yield while waiting. */
bool processors_are_fewer(int ranks);

#endif
