/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that the ranks of a node share: a nameless file of the first of them (base/memfile.h).
 *
 * It holds a box for each rank (shm_box.h), a ring for each ordered pair of ranks (shm_ring.h), and a pool for each
 * rank (shm_pool.h). Rings that are never used cost addresses, not memory.
 */
#ifndef MRMPI_SHM_SEGMENT_H
#define MRMPI_SHM_SEGMENT_H

#include "libmrmpi/channel/shm_box.h"
#include "libmrmpi/channel/shm_cores.h"
#include "libmrmpi/channel/shm_pool.h"
#include "libmrmpi/channel/shm_ring.h"

struct mr_launch;

#define MR_BELL_ALWAYS (1u << 31)

/* At its beginning. */
struct mr_segment_header {
    uint64_t magic, bytes;
    uint32_t num_ranks;
    struct mr_ring_shape shape;
    struct mr_pool_shape pool;
    struct mr_node_cores cores;
    /* How many ranks sleep or will soon, and MR_BELL_ALWAYS with more ranks than cores. 0: senders need not look */
    _Alignas(64) uint32_t bell;
};

/* As this rank sees it. */
struct mr_segment {
    int fd; /* -1: none */
    int ranks;
    uint8_t *base; /* NULL: not mapped */
    struct mr_segment_header *header;
    struct mr_box *boxes;
};

/* More ranks than cores: receivers soon sleep, senders always look whether they do. False until all ranks are here. */
static inline bool mr_segment_is_crowded(const struct mr_segment *s)
{
    return s->header && __atomic_load_n(&s->header->bell, __ATOMIC_RELAXED) & MR_BELL_ALWAYS;
}

/* By the first rank of the node: make it, and publish where it is. 0 or a negative errno, which was logged. */
int mr_segment_create(struct mr_segment *s, const struct mr_launch *launch);
/*
 * By all, when that has been published: map it. The first rank returns when all have mapped it. 0 or a negative errno.
 * -EOWNERDEAD: the first rank has ended within MPI_Init. That is no fault of this node: the launcher says why.
 */
int mr_segment_open(struct mr_segment *s, const struct mr_launch *launch);
void mr_segment_close(struct mr_segment *s);

/* The ring that one rank of the node writes and another one reads; the pool of a rank. */
void *mr_segment_ring(const struct mr_segment *s, int from, int to);
void *mr_segment_pool(const struct mr_segment *s, int local);

#endif
