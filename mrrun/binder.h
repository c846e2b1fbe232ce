/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processors of an agent's ranks, chosen in a process of its own: hwloc, the adapters and fabricd may take longer
 * than an agent may be silent.
 */
#ifndef MRRUN_BINDER_H
#define MRRUN_BINDER_H

#include "mrrun/processors.h"
#include "mrrun/watch.h"

struct binder {
    int set;
    struct watch answer;
    char *got;
    size_t len, room;
    int ranks;
    struct processors *to;
    /* The processors are there; or why not. */
    void (*done)(struct binder *b, const char *why);
};

/* env: that of the ranks. The other fields, but set, to and done, are the binder's. */
void binder_start(struct binder *b, const struct binding_wish *wish, char *host, char *const *env, int ranks);
void binder_close(struct binder *b);

#endif
