/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of one ring (shm_ring.h) from a process of one job to a process of another job on the same node.
 *
 * The writer makes a nameless file, seals its size, and passes the descriptor and the shape of the ring to the reader
 * (stream.c). The reader is of the same user but may run another program: the reader maps the file only if the shape is
 * possible, the file has exactly the size of the shape, and the size is sealed. No access can fail later, then. With
 * the memory mapped neither needs the descriptor. Nothing is left behind, however the processes end.
 *
 * A reader raises a flag in front of the ring before a sleep. The writer looks at the flag behind each packet.
 */
#ifndef MRMPI_JOB_RING_H
#define MRMPI_JOB_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/channel/shm_ring_shared.h"

#define MR_JOB_RING_SLOTS_LEAST 8u
#define MR_JOB_RING_SLOTS_MOST  1024u
#define MR_JOB_RING_DATA_LEAST  4096u
#define MR_JOB_RING_DATA_MOST   (4u << 20)

/* At the file's beginning; the ring follows. */
struct mr_job_ring_head {
    _Alignas(64) uint32_t asleep; /* the reader's; the writer clears it when it wakes the reader */
};

struct mr_job_ring {
    struct mr_job_ring_head *head; /* NULL: none is mapped */
    size_t bytes;
};

bool mr_job_ring_is_possible(struct mr_ring_shape shape);
/* Makes and maps the memory: the descriptor for the reader, which the caller closes, or a negative errno. */
int mr_job_ring_make(struct mr_job_ring *r, struct mr_ring_shape shape);
/* Maps the memory of another process: 0 or a negative errno (-EPROTO: not such a file). fd stays the caller's. */
int mr_job_ring_join(struct mr_job_ring *r, struct mr_ring_shape shape, int fd);
void mr_job_ring_leave(struct mr_job_ring *r); /* unmaps, if mapped */

static inline void *mr_job_ring_packets(const struct mr_job_ring *r)
{
    return r->head + 1;
}

/* By the reader, before it looks at the ring for the last time, and when it is awake. */
static inline void mr_job_ring_doze(struct mr_job_ring *r)
{
    __atomic_store_n(&r->head->asleep, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void mr_job_ring_rise(struct mr_job_ring *r)
{
    __atomic_store_n(&r->head->asleep, 0, __ATOMIC_RELAXED);
}
/* By the writer, behind a packet. True once for each sleep: the reader has to be woken. */
static inline bool mr_job_ring_must_wake(struct mr_job_ring *r)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&r->head->asleep, __ATOMIC_RELAXED) &&
           __atomic_exchange_n(&r->head->asleep, 0, __ATOMIC_ACQ_REL);
}

#endif
