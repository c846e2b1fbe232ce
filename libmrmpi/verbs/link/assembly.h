/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that come as several datagrams. Each part begins with MR_PART_HEAD bytes that are the same in all parts of a
 * packet (who sent it, its number, its length); its immediate data says which part it is and how long all but the last
 * are. Parts may come in any order, twice, or not at all, and from anybody: what does not fit is dropped. A packet that
 * is sent again begins anew where it has another length, and fills the gaps where it has not. Pure: tested alone.
 */
#ifndef MRMPI_ASSEMBLY_H
#define MRMPI_ASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_PART_HEAD      16
#define MR_PARTS_MAX      64 /* of one packet */
#define MR_ASSEMBLIES_MAX 64 /* packets of which some parts have come; the one that was touched least recently goes */

/* Writes what goes before each part of the packet of size bytes at data, which begins with the header of
 * verbs/link/wire.h.
 */
void mr_part_head(const void *data, uint32_t size, void *out);
/*
 * How long all parts of a packet but the last are, at most bytes: its last tail bytes, an ACK (verbs/reliable/ack.h)
 * that may be another one when the packet is sent again, go in one part. So no ACK is put together from two sendings.
 */
static inline uint32_t mr_part_chunk(uint32_t size, uint32_t tail, uint32_t most)
{
    uint32_t before = (size + most - 1) / most - 1; /* parts before the last */

    return size - tail < before * most ? (size - tail) / before : most;
}
static inline uint32_t mr_part_imm(unsigned part, uint32_t chunk)
{
    return part << 16 | chunk;
}

struct mr_assembly;
struct mr_assemblies {
    size_t packet_max;
    struct mr_assembly *recent; /* a ring: the last is the one before it */
    struct mr_assembly *whole;  /* the one that was given out last */
    unsigned num;
    uint64_t dropped; /* parts that do not fit, and packets that were given up */
};

/* packet_max: longer packets are dropped. Allocates nothing. */
void mr_assemblies_init(struct mr_assemblies *as, size_t packet_max);
void mr_assemblies_free(struct mr_assemblies *as);
/* A part has come. Returns the packet if it is whole now, NULL if not; it is valid until the next call. */
const void *mr_assemblies_add(struct mr_assemblies *as, const void *data, size_t len, uint32_t imm, size_t *size);

#endif
