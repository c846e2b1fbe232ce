/* SPDX-License-Identifier: BSD-3-Clause */
/* The cut of an eager message into packets, by p2p/parts.c and in fabricd's predictions. Pure. */
#ifndef MRMPI_BASE_PARTS_H
#define MRMPI_BASE_PARTS_H

#include <stddef.h>

#define MR_PART_UNIT ((size_t)64) /* all parts but the last have a multiple of so many bytes, if there is room */

/*
 * Bytes of each part but the last, which has the rest, of a message of total bytes; most: the room of a packet. As few
 * packets as possible, all of about the same length, so that parts arriving together end together.
 */
static inline size_t mr_part_size(size_t total, size_t most)
{
    size_t parts = (total + most - 1) / most, part = (total + parts - 1) / parts;

    part = (part + MR_PART_UNIT - 1) / MR_PART_UNIT * MR_PART_UNIT;
    return part < most ? part : most;
}

#endif
