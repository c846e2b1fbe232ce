/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cores that the ranks of a node may run on, all together: whether there is one for each. What one rank may run on
 * says nothing of the others: it may be bound to a core, or to the few threads of a core, of its own.
 */
#ifndef MRMPI_SHM_CORES_H
#define MRMPI_SHM_CORES_H

#include <stdbool.h>
#include <stdint.h>

#define MR_CORES_MOST 8192 /* as many as Linux can have */

/* A set. */
struct mr_cores {
    uint64_t of[MR_CORES_MOST / 64];
};

/* In memory that the ranks share; all zeros at first. */
struct mr_node_cores {
    struct mr_cores all;
    uint32_t joined; /* the last rank to join wakes waiters: a futex */
};

/* Those that the calling thread may run on. */
void mr_cores_mine(struct mr_cores *mine);
/* By each rank, once. True for the last one of so many ranks, if there are more of them than cores. */
bool mr_cores_join(struct mr_node_cores *c, const struct mr_cores *mine, int ranks);
/* Wait until so many ranks have joined, or until alive() says otherwise: it is asked every few seconds. */
void mr_cores_await(struct mr_node_cores *c, int ranks, bool (*alive)(void));

#endif
