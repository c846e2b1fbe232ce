/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets as several datagrams (verbs.h): the sender's side. Pure: tested alone. */
#ifndef MRMPI_ASSEMBLY_H
#define MRMPI_ASSEMBLY_H

#include <stdint.h>

#include "libmrmpi/verbs/verbs.h"

#define MR_ASSEMBLIES_MAX 64 /* packets with some arrived parts; the packet touched least recently goes */

/* Writes the header of each part of the packet of size bytes at data, which begins with the header of base/wire.h. */
void mr_part_header(const void *data, uint32_t size, void *out);
/*
 * The length of all parts of a packet but the last, at most most bytes: its last ack_len bytes, an ACK
 * (conn/reliable/ack.h) that may differ in a repetition, go in one part. An ACK is thus never put together from two
 * sendings.
 */
static inline uint32_t mr_part_chunk(uint32_t size, uint32_t ack_len, uint32_t most)
{
    uint32_t before = (size + most - 1) / most - 1; /* parts before the last */

    return size - ack_len < before * most ? (size - ack_len) / before : most;
}
static inline uint32_t mr_part_imm(unsigned part, uint32_t chunk)
{
    return part << 16 | chunk;
}

#endif
