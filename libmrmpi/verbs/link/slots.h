/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of slots: one process writes packets into the memory of another by RDMA, and the other process polls. Counters
 * of both ends and the layout of a slot, after J. Liu et al., "Design and Implementation of MPICH2 over InfiniBand with
 * RDMA Support", IPDPS 2004, section 4. Pure: tests/libmrmpi/test_slots.c.
 *
 * A packet lies at the bottom of its slot ("bottom fill"), so its trailer always has the same place, the slot's last 8
 * bytes, which never hold anything but trailers. The trailer counts packets, so the trailer of an earlier round is not
 * taken for a new one, whatever was in the slot. One write brings packet and trailer. Adapters store the bytes of a
 * write in the order of their addresses; verbs does not promise this, but all adapters whose memory MPI libraries poll
 * do so. For adapters without this order, a second write sets a counter after the first, and the trailer's number is
 * ignored.
 *
 * The reader's count of read packets comes back in the trailers of the other direction, as its lower 16 bits, or as a
 * write of its own. All counts go on as long as the link lives, also from one ring to the next.
 */
#ifndef MRMPI_SLOTS_H
#define MRMPI_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libmrmpi/base/idioms.h"

#define MR_SLOTS_MOST 4096 /* of a ring; a power of two, far below 2^15 */

struct mr_slot_trailer {
    uint16_t len;    /* of the packet before */
    uint16_t freed;  /* packets that the sender has read of its own ring, the lower bits */
    uint32_t number; /* packets so far, including this one; written last */
};
_Static_assert(sizeof(struct mr_slot_trailer) == 8, "on the wire");
#define MR_SLOT_TRAILER sizeof(struct mr_slot_trailer)

/* Is this a ring that both ends can count in? */
static inline bool mr_slots_sane(uint32_t num, uint32_t size)
{
    return num && num <= MR_SLOTS_MOST && !(num & (num - 1)) && size >= 64 && size <= 1u << 20 && !(size % 64);
}

/* So many a ring has, if asked for num: a power of two. */
static inline uint32_t mr_slots_num(unsigned num)
{
    uint32_t n = 1;

    while (2 * n <= num && n < MR_SLOTS_MOST)
        n *= 2;
    return n;
}

/* Bytes of the slots that hold packets of this length. */
static inline uint32_t mr_slots_size(size_t packet)
{
    return (uint32_t)((packet + MR_SLOT_TRAILER + 63) & ~(size_t)63);
}

/* ---- the writer -------------------------------------------------------------------------------------------------- */

struct mr_slots_out {
    uint32_t num, size;
    uint32_t sent, freed; /* packets, and packets known to be read; wrap */
};

/* A trailer has room for 16 bits of length, whatever the slot has. */
static inline bool mr_slots_fits(const struct mr_slots_out *o, size_t len)
{
    return len <= UINT16_MAX && len + MR_SLOT_TRAILER <= o->size;
}

static inline bool mr_slots_full(const struct mr_slots_out *o)
{
    return o->sent - o->freed >= o->num;
}

/* The reader's count. An old or impossible count changes nothing. */
static inline void mr_slots_freed(struct mr_slots_out *o, uint32_t freed)
{
    if (freed - o->freed <= o->sent - o->freed)
        o->freed = freed;
}

static inline void mr_slots_freed16(struct mr_slots_out *o, uint16_t freed)
{
    mr_slots_freed(o, o->freed + (uint16_t)(freed - (uint16_t)o->freed));
}

/* The beginning of the next packet of len bytes, in the ring; its trailer follows. */
static inline uint64_t mr_slots_place(const struct mr_slots_out *o, size_t len)
{
    return (uint64_t)((o->sent & (o->num - 1)) + 1) * o->size - MR_SLOT_TRAILER - len;
}

/* The trailer of the next packet, to out. freed: the packets that the writer has read of the other direction's ring. */
static inline void mr_slots_trailer(const struct mr_slots_out *o, size_t len, uint32_t freed, void *out)
{
    struct mr_slot_trailer t = {.len = (uint16_t)len, .freed = (uint16_t)freed, .number = o->sent + 1};

    memcpy(out, &t, sizeof t);
}

/* ---- the reader -------------------------------------------------------------------------------------------------- */

struct mr_slots_in {
    uint32_t num, size;
    uint32_t read, told;    /* read packets, and the count told to the writer; wrap */
    uint32_t tell;          /* unreported packets before the writer is told */
    unsigned char *at;      /* the ring */
    unsigned char *trailer; /* the place of the next packet's trailer */
};

static inline unsigned char *mr_slots_trailer_of(const struct mr_slots_in *in, uint32_t packet)
{
    return in->at + (size_t)((packet & (in->num - 1)) + 1) * in->size - MR_SLOT_TRAILER;
}

/*
 * The ring begins, in memory of num * size bytes: no trailer there is the expected one. every: the writer is told of
 * each packet, not of half a ring.
 */
static inline void mr_slots_begin(struct mr_slots_in *in, uint32_t num, uint32_t size, bool every, void *at)
{
    in->tell = every || num < 2 ? 1 : num / 2;
    in->num = num;
    in->size = size;
    in->at = at;
    in->told = in->read;
    for (uint32_t i = 0; i < num; i++) {
        struct mr_slot_trailer t = {.number = in->read + i + 1 - num};

        memcpy(mr_slots_trailer_of(in, in->read + i), &t, sizeof t);
    }
    in->trailer = mr_slots_trailer_of(in, in->read);
}

/*
 * True if the next packet has arrived. counter: NULL, or the counter written after it, used instead of the trailer. The
 * trailer is read at once: with its upper half, which is written last, the lower half is there.
 */
static inline bool mr_slots_poll(const struct mr_slots_in *in, const uint32_t *counter, struct mr_slot_trailer *out)
{
    const uint64_t *trailer = (const uint64_t *)(const void *)in->trailer;
    uint64_t word;

    if (unlikely(counter != NULL)) {
        if (__atomic_load_n(counter, __ATOMIC_ACQUIRE) == in->read)
            return false;
        word = __atomic_load_n(trailer, __ATOMIC_ACQUIRE);
    } else {
        word = __atomic_load_n(trailer, __ATOMIC_ACQUIRE);
        if ((uint32_t)(word >> 32) != in->read + 1)
            return false;
    }
    memcpy(out, &word, sizeof *out);
    return true;
}

/* Its place; NULL: an impossible length. */
static inline const void *mr_slots_packet(const struct mr_slots_in *in, const struct mr_slot_trailer *t)
{
    return t->len <= in->size - MR_SLOT_TRAILER ? in->trailer - t->len : NULL;
}

/* Its slot may be written again, as soon as the writer knows. */
static inline void mr_slots_next(struct mr_slots_in *in)
{
    in->read++;
    in->trailer = in->read & (in->num - 1) ? in->trailer + in->size : mr_slots_trailer_of(in, in->read);
}

/*
 * True if the writer is to be told in a write of its own: of every packet, or when half of the ring is free unknown to
 * the writer.
 */
static inline bool mr_slots_owes(const struct mr_slots_in *in)
{
    return in->read - in->told >= in->tell;
}

#endif
