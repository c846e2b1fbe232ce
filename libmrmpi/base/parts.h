/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a message that is sent at once is cut into packets. p2p/parts.c cuts so, and fabricd predicts it. Pure.
 */
#ifndef MRMPI_BASE_PARTS_H
#define MRMPI_BASE_PARTS_H

#include <stddef.h>

#define MR_PART_UNIT ((size_t)64) /* bytes of which all parts but the last have a multiple, if there is room for that */

/*
 * Bytes of each part but the last, which has the rest, of a message of total bytes; most: that a packet has room for.
 * As few packets as are needed, and all of about the same length: what comes at the same time shall end so.
 */
static inline size_t mr_part_size(size_t total, size_t most)
{
    size_t parts = (total + most - 1) / most, part = (total + parts - 1) / parts;

    part = (part + MR_PART_UNIT - 1) / MR_PART_UNIT * MR_PART_UNIT;
    return part < most ? part : most;
}

#endif
