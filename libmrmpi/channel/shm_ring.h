/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of packets in memory shared by two processes: one writes, one reads, no locks.
 *
 * A packet takes one slot of two cache lines: sequence word, length, packet header, and the payload if it is short, so
 * that a small message is one line moved from core to core. A longer payload lies in the data area behind the slots,
 * and the slot says where. A slot is full when its sequence word is the slot's index (counted without end) + 1: the
 * reader polls the line that the packet itself arrives in, and nothing has to be cleared.
 *
 * The reader gives space back through one line of its own, in portions; the writer looks at it only when what it knows
 * of is used up. Each side keeps its cursors in private memory. The reader trusts nothing that it reads: lengths and
 * positions are taken once and checked against the ring.
 *
 * A payload may also lie elsewhere (shm_pool.h): then the slot carries a number that means something to both sides.
 */
#ifndef MRMPI_SHM_RING_H
#define MRMPI_SHM_RING_H

#include <stdbool.h>
#include <string.h>

#include "libmrmpi/channel/shm_ring_shared.h"

struct mr_ring_writer {
    struct mr_ring *ring;
    uint8_t *data;
    uint64_t slot, position;          /* next to be written */
    uint64_t slots_freed, data_freed; /* as last seen */
    struct mr_ring_shape shape;
};

struct mr_ring_reader {
    struct mr_ring *ring;
    const uint8_t *data;
    uint64_t slot;                  /* next to be read */
    uint64_t data_used;             /* end of the last payload read */
    uint64_t slots_told, data_told; /* given back so far */
    struct mr_ring_shape shape;
};

static inline void mr_ring_writer_init(struct mr_ring_writer *w, void *memory, struct mr_ring_shape shape)
{
    *w = (struct mr_ring_writer){.ring = memory, .data = mr_ring_data(memory, shape), .shape = shape};
}

static inline void mr_ring_reader_init(struct mr_ring_reader *r, void *memory, struct mr_ring_shape shape)
{
    *r = (struct mr_ring_reader){.ring = memory, .data = mr_ring_data(memory, shape), .shape = shape};
}

/* Where the next payload of len bytes would start and end; payloads are never split at the end of the area. */
static inline uint64_t mr_ring_place(const struct mr_ring_writer *w, size_t len)
{
    uint64_t at = w->position;
    uint64_t left = w->shape.data_bytes - (at & (w->shape.data_bytes - 1));

    return len > left ? at + left : at;
}

static inline uint64_t mr_ring_end(uint64_t at, size_t len)
{
    return (at + len + 63) & ~(uint64_t)63;
}

static inline bool mr_ring_fits(const struct mr_ring_writer *w, size_t len)
{
    return w->slot - w->slots_freed < w->shape.num_slots &&
           (len <= MR_RING_INLINE || mr_ring_end(mr_ring_place(w, len), len) - w->data_freed <= w->shape.data_bytes);
}

/* Where the payload of the next packet goes, for the caller to write; NULL: the ring is full. len <=
 * mr_ring_max_payload. */
static inline void *mr_ring_begin(struct mr_ring_writer *w, size_t len)
{
    struct mr_ring_slot *s;
    uint64_t at;

    if (__builtin_expect(!mr_ring_fits(w, len), 0)) {
        w->slots_freed = __atomic_load_n(&w->ring->slots_freed, __ATOMIC_ACQUIRE);
        w->data_freed = __atomic_load_n(&w->ring->data_freed, __ATOMIC_ACQUIRE);
        if (!mr_ring_fits(w, len))
            return NULL;
    }
    s = &w->ring->slots[w->slot & (w->shape.num_slots - 1)];
    if (len <= MR_RING_INLINE)
        return s->bytes;
    at = mr_ring_place(w, len);
    s->position = at;
    w->position = mr_ring_end(at, len);
    return w->data + (at & (w->shape.data_bytes - 1));
}

/* The packet that was begun is there. */
static inline void mr_ring_commit(struct mr_ring_writer *w, const struct mr_hdr *hdr, size_t len)
{
    struct mr_ring_slot *s = &w->ring->slots[w->slot & (w->shape.num_slots - 1)];

    s->len = (uint32_t)len;
    s->hdr = *hdr;
    __atomic_store_n(&s->seq, (uint32_t)(w->slot + 1), __ATOMIC_RELEASE);
    w->slot++;
}

/* Both at once. False: the ring is full. */
static inline bool mr_ring_write(struct mr_ring_writer *w, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    void *to = mr_ring_begin(w, len);

    if (__builtin_expect(!to, 0))
        return false;
    if (len)
        memcpy(to, payload, len);
    mr_ring_commit(w, hdr, len);
    return true;
}

/* Begun with length 0: a packet whose payload of more than MR_RING_INLINE bytes lies elsewhere, at `number`. */
static inline void mr_ring_commit_far(struct mr_ring_writer *w, const struct mr_hdr *hdr, uint32_t number, size_t len)
{
    w->ring->slots[w->slot & (w->shape.num_slots - 1)].position = MR_RING_FAR | number;
    mr_ring_commit(w, hdr, len);
}

static inline bool mr_ring_ready(const struct mr_ring_reader *r)
{
    const struct mr_ring_slot *s = &r->ring->slots[r->slot & (r->shape.num_slots - 1)];

    return __atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) == (uint32_t)(r->slot + 1);
}

/*
 * The packet at the head: 1 and *hdr (a copy), *payload (in the ring, valid until mr_ring_release), *len. 0: none.
 * -1: what stands there cannot be; the writer has gone mad and the ring is of no use any more. If the payload lies
 * elsewhere *payload is NULL and *far its number, which the caller has to check, as the length.
 */
static inline int mr_ring_peek(struct mr_ring_reader *r, struct mr_hdr *hdr, const void **payload, size_t *len,
                               uint32_t *far)
{
    const struct mr_ring_slot *s = &r->ring->slots[r->slot & (r->shape.num_slots - 1)];
    uint64_t at;

    if (__atomic_load_n(&s->seq, __ATOMIC_ACQUIRE) != (uint32_t)(r->slot + 1))
        return 0;
    *len = *(volatile const uint32_t *)&s->len;
    *hdr = s->hdr;
    if (*len <= MR_RING_INLINE) {
        *payload = s->bytes;
        return 1;
    }
    at = *(volatile const uint64_t *)&s->position;
    if (at & MR_RING_FAR) {
        *payload = NULL;
        *far = (uint32_t)at;
        return 1;
    }
    if (*len > mr_ring_max_payload(r->shape) || (at & (r->shape.data_bytes - 1)) + *len > r->shape.data_bytes)
        return -1;
    *payload = r->data + (at & (r->shape.data_bytes - 1));
    r->data_used = mr_ring_end(at, *len);
    return 1;
}

/* Tell the writer what is free; all of it counts only once it is told. */
static inline void mr_ring_tell(struct mr_ring_reader *r)
{
    if (r->slots_told == r->slot)
        return;
    r->slots_told = r->slot;
    r->data_told = r->data_used;
    __atomic_store_n(&r->ring->data_freed, r->data_used, __ATOMIC_RELEASE);
    __atomic_store_n(&r->ring->slots_freed, r->slot, __ATOMIC_RELEASE);
}

/* Done with the packet at the head. */
static inline void mr_ring_release(struct mr_ring_reader *r)
{
    r->slot++;
    if (r->slot - r->slots_told >= r->shape.num_slots / 8 || r->data_used - r->data_told >= r->shape.data_bytes / 8)
        mr_ring_tell(r);
}

#endif
