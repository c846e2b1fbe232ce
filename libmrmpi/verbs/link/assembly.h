/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that arrive as several datagrams. Each part begins with MR_PART_HEAD bytes, equal in all parts of a packet
 * (sender, number, length); its immediate data has the number of the part and the length of all parts but the last.
 * Parts may arrive in any order, twice, or not at all, and from anybody: parts that do not fit are dropped. A repeated
 * packet begins anew with another length, and fills the gaps with the same length. Pure: tested alone.
 */
#ifndef MRMPI_ASSEMBLY_H
#define MRMPI_ASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MR_PART_HEAD      16
#define MR_PARTS_MAX      64 /* of one packet */
#define MR_ASSEMBLIES_MAX 64 /* packets with some arrived parts; the packet touched least recently goes */

/*
 * Writes the head of each part of the packet of size bytes at data, which begins with the header of base/wire.h.
 */
void mr_part_head(const void *data, uint32_t size, void *out);
/*
 * The length of all parts of a packet but the last, at most most bytes: its last tail bytes, an ACK
 * (conn/reliable/ack.h) that may differ in a repetition, go in one part. An ACK is thus never put together from two
 * sendings.
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
    struct mr_assembly *whole;  /* given out last */
    unsigned num;
    uint64_t dropped; /* parts that do not fit, and packets given up */
};

/* packet_max: longer packets are dropped. Allocates nothing. */
void mr_assemblies_init(struct mr_assemblies *as, size_t packet_max);
void mr_assemblies_free(struct mr_assemblies *as);
/* A part has arrived. Returns the packet if it is complete, else NULL; valid until the next call. */
const void *mr_assemblies_add(struct mr_assemblies *as, const void *data, size_t len, uint32_t imm, size_t *size);

#endif
