/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cores of a node's ranks, all together, and whether there is one for each. One rank's set says nothing about the
 * others: the rank may be bound to a core, or to the few threads of a core, of its own.
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

/* The cores of the calling thread. */
void mr_cores_mine(struct mr_cores *mine);
/* By each rank, once. True for the last of so many ranks, if there are more ranks than cores. */
bool mr_cores_join(struct mr_node_cores *c, const struct mr_cores *mine, int ranks);
/* Waits until so many ranks have joined, or until alive() returns false: called every few seconds. */
void mr_cores_await(struct mr_node_cores *c, int ranks, bool (*alive)(void));

#endif
