/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer of a ring: see shm_ring.h. */
#ifndef MRMPI_SHM_RING_WRITER_H
#define MRMPI_SHM_RING_WRITER_H

#include <stdbool.h>
#include <string.h>

#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/reader.h"
#include "libmrmpi/channel/shm_ring_shared.h"

struct mr_ring_writer {
    struct mr_ring *ring;
    uint8_t *data;
    uint64_t slot, position; /* next to be written */
    struct mr_reader reader; /* of slots */
    uint64_t data_freed;     /* as last seen */
    struct mr_ring_shape shape;
};

/* The space freed by the reader so far. */
static inline void mr_ring_poll_freed(struct mr_ring_writer *w)
{
    w->reader.freed = __atomic_load_n(&w->ring->slots_freed, __ATOMIC_ACQUIRE);
    w->data_freed = __atomic_load_n(&w->ring->data_freed, __ATOMIC_ACQUIRE);
}

static inline void mr_ring_poll_reader(struct mr_reader *r)
{
    mr_ring_poll_freed(container_of(r, struct mr_ring_writer, reader));
}

static inline void mr_ring_writer_init(struct mr_ring_writer *w, void *memory, struct mr_ring_shape shape)
{
    *w = (struct mr_ring_writer){
        .ring = memory, .data = mr_ring_data(memory, shape), .reader.poll = mr_ring_poll_reader, .shape = shape};
}

/* Where the next payload of len bytes would start and end; payloads are never split at the end of the area. */
static inline uint64_t mr_ring_place(const struct mr_ring_writer *w, size_t len)
{
    uint64_t at = w->position;
    uint64_t left = w->shape.data_bytes - (at & (w->shape.data_bytes - 1));

    return len > left ? at + left : at;
}

/* in_slot: so many bytes lie in the slot itself */
static inline bool mr_ring_fits(const struct mr_ring_writer *w, size_t len, size_t in_slot)
{
    return w->slot - w->reader.freed < w->shape.num_slots &&
           (len <= in_slot || mr_ring_end(mr_ring_place(w, len), len) - w->data_freed <= w->shape.data_bytes);
}

static inline bool mr_ring_has_room(struct mr_ring_writer *w, size_t len, size_t in_slot)
{
    if (likely(mr_ring_fits(w, len, in_slot)))
        return true;
    mr_ring_poll_freed(w);
    return mr_ring_fits(w, len, in_slot);
}

/* A place in the data area; *at: where, as slots say it. There is room. */
static inline void *mr_ring_take(struct mr_ring_writer *w, size_t len, uint64_t *at)
{
    *at = mr_ring_place(w, len);
    w->position = mr_ring_end(*at, len);
    return w->data + (*at & (w->shape.data_bytes - 1));
}

static inline struct mr_ring_slot *mr_ring_slot(const struct mr_ring_writer *w)
{
    return &w->ring->slots[w->slot & (w->shape.num_slots - 1)];
}

/* Where the payload of the next packet goes, for the caller to write; NULL: the ring is full. len <=
 * mr_ring_max_payload. */
static inline void *mr_ring_begin(struct mr_ring_writer *w, size_t len)
{
    struct mr_ring_slot *s;

    if (!mr_ring_has_room(w, len, MR_RING_INLINE))
        return NULL;
    s = mr_ring_slot(w);
    return len <= MR_RING_INLINE ? s->bytes : mr_ring_take(w, len, &s->position);
}

/* The packet under construction is complete. */
static inline void mr_ring_commit(struct mr_ring_writer *w, const struct mr_hdr *hdr, size_t len)
{
    struct mr_ring_slot *s = mr_ring_slot(w);

    s->len = (uint32_t)len;
    s->hdr = *hdr;
    __atomic_store_n(&s->seq, (uint32_t)(w->slot + 1), __ATOMIC_RELEASE);
    w->slot++;
}

/* A few bytes, without a call. */
static inline void mr_ring_copy(void *to, const void *from, size_t len)
{
    uint64_t first, last;

    if (len > 16 || len < 8) {
        if (len) /* without any there may be no payload at all */
            memcpy(to, from, len);
        return;
    }
    memcpy(&first, from, 8);
    memcpy(&last, (const char *)from + len - 8, 8);
    memcpy(to, &first, 8);
    memcpy((char *)to + len - 8, &last, 8);
}

/*
 * Before a brief packet of this length is written: prefetches the lines of the packet after the next. Between cores
 * without a common cache the writer would wait for each of them, because the reader had them last. Million messages per
 * second without and with prefetch, of 1 and 256 B: 5.4 and 10.7, 5.2 and 6.9 on an AMD EPYC; 14.4 and 20.3, 9.4 and
 * 11.6 on an EPYC of family 26 model 2 (Zen 5) with cores 190 ns apart; cores 37 ns apart: 38.8 and 40.0, 23.9 and
 * 24.3. The lines of the next packet are left alone, because the reader may be polling them.
 */
#define MR_RING_AHEAD 2
static inline void mr_ring_ask_ahead(const struct mr_ring_writer *w, size_t len)
{
    const struct mr_ring_slot *s = &w->ring->slots[(w->slot + MR_RING_AHEAD) & (w->shape.num_slots - 1)];
    size_t lines = offsetof(struct mr_ring_slot, brief.bytes) + len;

    mr_own_line(s);
    for (size_t at = 64; at < lines && at < sizeof(*s); at += 64)
        mr_own_line((const char *)s + at);
}

/* The payload of a message of one packet lies at the place named in its slot. */
static inline void mr_ring_commit_brief(struct mr_ring_writer *w, struct mr_ring_slot *s, const struct mr_hdr *hdr,
                                        size_t len)
{
    s->len = MR_RING_BRIEF | (uint32_t)hdr->note << 16 | (uint32_t)len;
    s->brief.rank = hdr->rank;
    s->brief.tag = hdr->tag;
    s->brief.ctx = hdr->ctx;
    s->brief.seq = hdr->seq;
    __atomic_store_n(&s->seq, (uint32_t)(w->slot + 1), __ATOMIC_RELEASE);
    w->slot++;
}

/* A message of one packet, of at most MR_RING_BRIEF_MOST bytes. False: the ring is full. Of *hdr only some is read. */
static inline __attribute__((always_inline)) bool
mr_ring_write_brief(struct mr_ring_writer *w, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    struct mr_ring_slot *s;
    void *to;

    if (!mr_ring_has_room(w, len, MR_RING_BRIEF_INLINE))
        return false;
    s = mr_ring_slot(w);
    to = likely(len <= MR_RING_BRIEF_INLINE) ? s->brief.bytes : mr_ring_take(w, len, &s->brief.position);
    mr_ring_copy(to, payload, len);
    mr_ring_commit_brief(w, s, hdr, len);
    return true;
}

/* Both at once. False: the ring is full. */
static inline bool mr_ring_write(struct mr_ring_writer *w, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    void *to = mr_ring_begin(w, len);

    if (unlikely(!to))
        return false;
    if (len)
        memcpy(to, payload, len);
    mr_ring_commit(w, hdr, len);
    return true;
}

/* Begun with length 0: a packet with its payload of more than MR_RING_INLINE bytes elsewhere, at `number`. */
static inline void mr_ring_commit_far(struct mr_ring_writer *w, const struct mr_hdr *hdr, uint32_t number, size_t len)
{
    mr_ring_slot(w)->position = MR_RING_FAR | number;
    mr_ring_commit(w, hdr, len);
}

/* The same, brief: of more than MR_RING_BRIEF_INLINE bytes and at most MR_RING_BRIEF_MOST. */
static inline void mr_ring_commit_brief_far(struct mr_ring_writer *w, const struct mr_hdr *hdr, uint32_t number,
                                            size_t len)
{
    struct mr_ring_slot *s = mr_ring_slot(w);

    s->brief.position = MR_RING_FAR | number;
    mr_ring_commit_brief(w, s, hdr, len);
}

#endif
