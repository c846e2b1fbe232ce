/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory shared by the ranks of a node: a nameless file of the first rank (base/memfile.h).
 *
 * The file holds a box for each rank (shm_box.h), a ring for each ordered pair of ranks (shm_ring.h), and a pool for
 * each rank (shm_pool.h). Unused rings cost addresses, not memory.
 */
#ifndef MRMPI_SHM_SEGMENT_H
#define MRMPI_SHM_SEGMENT_H

#include "libmrmpi/channel/shm_box.h"
#include "libmrmpi/channel/shm_cores.h"
#include "libmrmpi/channel/shm_pool.h"
#include "libmrmpi/channel/shm_ring.h"

struct mr_launch;

#define MR_BELL_ALWAYS (1u << 31)

/* At the file's beginning. */
struct mr_segment_header {
    uint64_t magic, bytes;
    uint32_t num_ranks;
    struct mr_ring_shape shape;
    struct mr_pool_shape pool;
    struct mr_node_cores cores;
    /* How many ranks sleep or will soon, and MR_BELL_ALWAYS with more ranks than cores. 0: senders need not check */
    _Alignas(64) uint32_t bell;
};

/* This rank's view. */
struct mr_segment {
    int fd; /* -1: none */
    int ranks;
    uint8_t *base; /* NULL: not mapped */
    struct mr_segment_header *header;
    struct mr_box *boxes;
};

/* More ranks than cores: receivers soon sleep, senders always check for sleepers. False until all ranks are here. */
static inline bool mr_segment_is_crowded(const struct mr_segment *s)
{
    return s->header && __atomic_load_n(&s->header->bell, __ATOMIC_RELAXED) & MR_BELL_ALWAYS;
}

/* By the first rank of the node: makes the file, and publishes its place. 0 or a negative errno, already logged. */
int mr_segment_create(struct mr_segment *s, const struct mr_launch *launch);
/*
 * By all, after the publication: maps the file. The first rank returns when all have mapped it. 0 or a negative errno.
 * -EOWNERDEAD: the first rank has ended within MPI_Init. This is no fault of this node: the launcher has the reason.
 */
int mr_segment_open(struct mr_segment *s, const struct mr_launch *launch);
void mr_segment_close(struct mr_segment *s);

/* The ring written by one rank of the node and read by another; the pool of a rank. */
void *mr_segment_ring(const struct mr_segment *s, int from, int to);
void *mr_segment_pool(const struct mr_segment *s, int local);

#endif
