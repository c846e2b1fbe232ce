/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory shared by the two processes of a ring: see shm_ring.h. */
#ifndef MRMPI_SHM_RING_SHARED_H
#define MRMPI_SHM_RING_SHARED_H

#include <stddef.h>
#include <stdint.h>

#include "libmrmpi/base/packet.h"

#define MR_RING_INLINE       456
#define MR_RING_FAR          (UINT64_C(1) << 63)
#define MR_RING_BRIEF        0x80000000u /* in the length: and bits 16 to 23 are the note */
#define MR_RING_BRIEF_INLINE 488
#define MR_RING_BRIEF_MOST   0xffffu
#define MR_RING_FIRST_LINE   40 /* bytes of a brief packet's payload in its slot's first cache line */

/* The header of an eager message of one packet. 40 bytes of the payload are in the first cache line. */
struct mr_ring_brief {
    int32_t rank, tag;
    uint32_t ctx, seq;
    union {
        uint8_t bytes[MR_RING_BRIEF_INLINE];
        uint64_t position; /* as below */
    };
};

struct mr_ring_slot {
    uint32_t seq;
    uint32_t len;
    union {
        struct {
            struct mr_hdr hdr;
            union {
                uint8_t bytes[MR_RING_INLINE];
                uint64_t position; /* in the data area, counted without end; or MR_RING_FAR | number */
            };
        };
        struct mr_ring_brief brief; /* MR_RING_BRIEF in the length */
    };
};
_Static_assert(sizeof(struct mr_ring_slot) == 512, "eight cache lines");
_Static_assert(offsetof(struct mr_ring_slot, brief.bytes) + MR_RING_FIRST_LINE == 64, "one cache line");

/* The shared memory, in this order: this line, the slots, the data area. */
struct mr_ring {
    _Alignas(64) uint64_t slots_freed; /* written by the reader */
    uint64_t data_freed;
    uint8_t pad[48];
    struct mr_ring_slot slots[];
};

/* The geometry is the same for all rings of a segment; both numbers are powers of two. */
struct mr_ring_shape {
    uint32_t num_slots;
    uint32_t data_bytes;
};

static inline size_t mr_ring_bytes(struct mr_ring_shape s)
{
    return sizeof(struct mr_ring) + (size_t)s.num_slots * sizeof(struct mr_ring_slot) + s.data_bytes;
}

static inline size_t mr_ring_max_payload(struct mr_ring_shape s)
{
    return s.data_bytes / 2;
}

/* The end of a payload that begins there: the next payload begins in another cache line. */
static inline uint64_t mr_ring_end(uint64_t at, size_t len)
{
    return (at + len + 63) & ~(uint64_t)63;
}

static inline uint8_t *mr_ring_data(struct mr_ring *ring, struct mr_ring_shape s)
{
    return (uint8_t *)&ring->slots[s.num_slots];
}

#endif
