/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readers of numbered things in shared memory, as their writer sees them: the slots of a ring with one reader
 * (channel/shm_ring_writer.h), the pieces of a node area with several (coll/node). Memory that a thing lies in is free
 * for others once the thing has been read.
 */
#ifndef MRMPI_BASE_READER_H
#define MRMPI_BASE_READER_H

#include <stdint.h>

struct mr_reader {
    uint64_t freed;                    /* things with lesser numbers have been read, as last seen */
    void (*poll)(struct mr_reader *r); /* reads the number anew */
};

#endif
