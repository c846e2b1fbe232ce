/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The visible bytes of a file under a view (MPI-4.1 section 14.3): a filetype, again and again, from a displacement on.
 * The bytes are numbered from 0 in the order of the file. Functions here give the place of a byte, the number of bytes
 * before a place, and the stretches of a range. Pure.
 */
#ifndef MRMPI_IO_TILING_H
#define MRMPI_IO_TILING_H

#include "libmrmpi/core/core.h"

struct mr_tiling {
    int64_t disp; /* bytes from the beginning of the file */
    const struct mr_type *type;
};

/* Without holes: contiguous data is one piece of the file. */
static inline bool mr_tiling_dense(const struct mr_tiling *t)
{
    return t->type->contiguous;
}

/*
 * The type's data is in the order of the file, no byte twice, and none before its origin. MR_TILING_OVERLAPS: some
 * bytes occur twice, but no piece begins before an earlier piece. Such types are for reading, and only mr_tiling_at and
 * mr_tiling_stretches, below, handle them byte by byte.
 */
enum mr_tiling_order { MR_TILING_DECREASES, MR_TILING_OVERLAPS, MR_TILING_GROWS };
enum mr_tiling_order mr_tiling_order(const struct mr_type *type);
/* True if copies of the type are in order too. Otherwise the first copy is the whole view (HDF5 makes such types). */
bool mr_tiling_repeats(const struct mr_type *type);
/* Are there as many bytes, at offsets that are numbers of 63 bits? */
bool mr_tiling_reaches(const struct mr_tiling *t, uint64_t bytes);
/* The type must be allowed, and have data; nth must be within reach. Offsets are offsets of the file. */
int64_t mr_tiling_at(const struct mr_tiling *t, uint64_t nth);
uint64_t mr_tiling_before(const struct mr_tiling *t, int64_t offset);

/* Stretches of a file, `at` counted from its beginning, in order. The caller frees `piece`. */
struct mr_stretches {
    struct mr_rma_piece *piece;
    size_t num, cap;
    size_t first; /* of this call: earlier stretches are not made longer */
};
/*
 * Appends the stretches of len bytes of the view, from the nth on; regular stretches are one piece. False: no memory.
 */
bool mr_tiling_stretches(const struct mr_tiling *t, uint64_t nth, uint64_t len, struct mr_stretches *to);

/* len bytes of the view, from the nth on, to or from an image of the file from offset `from` on. */
void mr_tiling_gather(const struct mr_tiling *t, uint64_t nth, size_t len, const char *image, int64_t from, void *data);
void mr_tiling_scatter(const struct mr_tiling *t, uint64_t nth, size_t len, char *image, int64_t from,
                       const void *data);

#endif
