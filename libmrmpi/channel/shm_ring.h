/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of packets in memory shared by two processes: one writes, one reads, no locks.
 *
 * A packet takes one slot of eight cache lines: sequence number, length, packet header, and the payload if it is short.
 * A small message is thus one line moved from core to core, and a slightly longer message uses the following lines,
 * which cores fetch along. A longer payload lies in the data area behind the slots, at the place named in the slot: its
 * lines are requested only after the slot's line has arrived, which takes as long again. A slot is full when its
 * sequence number is the slot's index (counted without end) + 1: the reader polls the line in which the packet itself
 * arrives, and nothing has to be cleared.
 *
 * The reader gives space back through one line of its own, in portions; the writer reads that line only when its known
 * space is used up. Each side keeps its cursors in private memory. The reader trusts nothing in the ring: lengths and
 * positions are read once and checked against the ring.
 *
 * Most packets are whole messages. Only the meaningful parts of their headers are written (struct mr_ring_brief), so a
 * few bytes are one line with the header.
 *
 * A payload may also lie elsewhere (shm_pool.h): then the slot carries a number known to both sides.
 *
 * Here is the reader; the writer is in shm_ring_writer.h.
 */
#ifndef MRMPI_SHM_RING_H
#define MRMPI_SHM_RING_H

#include <stdbool.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/channel/shm_ring_shared.h"

struct mr_ring_reader {
    uint32_t src; /* the sender: in the headers of brief packets */
    struct mr_ring *ring;
    const uint8_t *data;
    uint64_t slot;                  /* next to be read */
    uint64_t data_used;             /* end of the last payload read */
    uint64_t slots_told, data_told; /* given back so far */
    uint64_t far;                   /* bytes of payloads elsewhere read since */
    struct mr_ring_shape shape;
};

/* src: the world rank of the writer */
static inline void mr_ring_reader_init(struct mr_ring_reader *r, void *memory, struct mr_ring_shape shape, uint32_t src)
{
    *r = (struct mr_ring_reader){.src = src, .ring = memory, .data = mr_ring_data(memory, shape), .shape = shape};
}

static inline bool mr_ring_ready(const struct mr_ring_reader *r)
{
    const struct mr_ring_slot *s = &r->ring->slots[r->slot & (r->shape.num_slots - 1)];

    return __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) == (uint32_t)(r->slot + 1);
}

/* The payload in the data area: NULL, there can be none. */
static inline const void *mr_ring_data_at(struct mr_ring_reader *r, uint64_t at, size_t len)
{
    uint64_t begin = at & (r->shape.data_bytes - 1);

    if (len > mr_ring_max_payload(r->shape) || begin + len > r->shape.data_bytes)
        return NULL;
    r->data_used = mr_ring_end(at, len);
    return r->data + begin;
}

/* The payload of the packet at the front, at another place than its slot. -1, *far: as mr_ring_peek */
static inline int mr_ring_peek_at(struct mr_ring_reader *r, uint64_t at, const void **payload, size_t len,
                                  uint32_t *far)
{
    if (at & MR_RING_FAR) {
        *payload = NULL;
        *far = (uint32_t)at;
        return 1;
    }
    *payload = mr_ring_data_at(r, at, len);
    return *payload ? 1 : -1;
}

/* -1, *far: as mr_ring_peek */
static inline int mr_ring_peek_brief(struct mr_ring_reader *r, const struct mr_ring_slot *s, uint32_t word,
                                     struct mr_hdr *hdr, const void **payload, size_t *len, uint32_t *far)
{
    *len = word & MR_RING_BRIEF_MOST;
    *hdr = (struct mr_hdr){.kind = MR_VC_KIND_EAGER,
                           .note = (uint8_t)(word >> 16),
                           .seq = s->brief.seq,
                           .src = r->src,
                           .rank = s->brief.rank,
                           .tag = s->brief.tag,
                           .ctx = s->brief.ctx,
                           .len = *len};
    if (likely(*len <= MR_RING_BRIEF_INLINE)) {
        *payload = s->brief.bytes;
        return 1;
    }
    return mr_ring_peek_at(r, *(volatile const uint64_t *)&s->brief.position, payload, *len, far);
}

/*
 * The packet at the front, if short with this context, rank and tag (negative: any): 1 and *hdr, *payload or *far as
 * mr_ring_peek. 0: none; -1: another packet, or an impossible one.
 */
static inline int mr_ring_peek_wanted(struct mr_ring_reader *r, int rank, int tag, uint32_t ctx, struct mr_hdr *hdr,
                                      const void **payload, uint32_t *far)
{
    const struct mr_ring_slot *s = &r->ring->slots[r->slot & (r->shape.num_slots - 1)];
    uint32_t word;
    size_t len;

    if (__atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) != (uint32_t)(r->slot + 1))
        return 0;
    word = *(volatile const uint32_t *)&s->len;
    if (!(word & MR_RING_BRIEF) || s->brief.ctx != ctx || s->brief.rank != rank || (tag >= 0 && s->brief.tag != tag))
        return -1;
    return mr_ring_peek_brief(r, s, word, hdr, payload, &len, far);
}

/*
 * The packet at the front: 1 and *hdr (a copy), *payload (in the ring, valid until mr_ring_release), *len. 0: none. -1:
 * impossible contents; the writer is broken and the ring unusable. If the payload lies elsewhere, *payload is NULL and
 * *far its number, which the caller must check, like the length.
 */
static inline int mr_ring_peek(struct mr_ring_reader *r, struct mr_hdr *hdr, const void **payload, size_t *len,
                               uint32_t *far)
{
    const struct mr_ring_slot *s = &r->ring->slots[r->slot & (r->shape.num_slots - 1)];
    uint32_t word;

    if (__atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) != (uint32_t)(r->slot + 1))
        return 0;
    word = *(volatile const uint32_t *)&s->len;
    if (likely(word & MR_RING_BRIEF))
        return mr_ring_peek_brief(r, s, word, hdr, payload, len, far);
    *len = word;
    *hdr = s->hdr;
    if (*len <= MR_RING_INLINE) {
        *payload = s->bytes;
        return 1;
    }
    return mr_ring_peek_at(r, *(volatile const uint64_t *)&s->position, payload, *len, far);
}

/* Reports free space to the writer; space counts as free only after the report. */
static inline void mr_ring_tell(struct mr_ring_reader *r)
{
    if (r->slots_told == r->slot)
        return;
    r->slots_told = r->slot;
    r->data_told = r->data_used;
    r->far = 0;
    __atomic_store_n(&r->ring->data_freed, r->data_used, __ATOMIC_RELEASE);
    __atomic_store_n(&r->ring->slots_freed, r->slot, __ATOMIC_RELEASE);
}

/* Done with the packet at the front. */
static inline void mr_ring_release(struct mr_ring_reader *r)
{
    r->slot++;
    if (r->slot - r->slots_told >= r->shape.num_slots / 8 || r->data_used - r->data_told >= r->shape.data_bytes / 8)
        mr_ring_tell(r);
}

/* The same for a packet with a payload of len bytes elsewhere; at most the size of one payload is unreported. */
static inline void mr_ring_release_far(struct mr_ring_reader *r, size_t len)
{
    r->far += len;
    mr_ring_release(r);
    if (r->far >= mr_ring_max_payload(r->shape))
        mr_ring_tell(r);
}

#endif
