/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of a file that a view shows (MPI-4.1 section 14.3): a filetype, again and again, from a displacement on.
 * They are numbered from 0 in the order of the file; here are where each is, how many are before a place, and the
 * stretches that some of them fill. Pure.
 */
#ifndef MRMPI_IO_TILING_H
#define MRMPI_IO_TILING_H

#include "libmrmpi/core/objects.h"
#include "libmrmpi/core/pieces/pieces.h"

struct mr_tiling {
    int64_t disp; /* bytes from the beginning of the file */
    const struct mr_type *type;
};

/* Without holes, so that data in one piece is one piece of the file. */
static inline bool mr_tiling_dense(const struct mr_tiling *t)
{
    return t->type->contiguous;
}

/*
 * The type's data is in the order of the file, no byte of it twice, and none before its origin. MR_TILING_OVERLAPS:
 * some bytes are there twice, but no piece begins before an earlier one: such types are for reading, and of the
 * functions below mr_tiling_at and mr_tiling_stretches alone tell of them byte by byte.
 */
enum mr_tiling_order { MR_TILING_DECREASES, MR_TILING_OVERLAPS, MR_TILING_GROWS };
enum mr_tiling_order mr_tiling_order(const struct mr_type *type);
/* Its copies are, too. If not, the first one is all that there is (HDF5 makes such types). */
bool mr_tiling_repeats(const struct mr_type *type);
/* Are there as many bytes, at offsets that are numbers of 63 bits? */
bool mr_tiling_reaches(const struct mr_tiling *t, uint64_t bytes);
/* The type must be one that is allowed, and have data; nth is within reach. Offsets are those of the file. */
int64_t mr_tiling_at(const struct mr_tiling *t, uint64_t nth);
uint64_t mr_tiling_before(const struct mr_tiling *t, int64_t offset);

/* Stretches of a file, `at` counted from its beginning, in order. The caller frees `piece`. */
struct mr_stretches {
    struct mr_rma_piece *piece;
    size_t num, cap;
    size_t first; /* of this call: earlier ones are not made longer */
};
/* Appends those that len bytes of the view fill, from the nth on; regular ones are one piece. False: no memory. */
bool mr_tiling_stretches(const struct mr_tiling *t, uint64_t nth, uint64_t len, struct mr_stretches *to);

/* len bytes of the view, from the nth on, to or from an image of the file from offset `from` on. */
void mr_tiling_gather(const struct mr_tiling *t, uint64_t nth, size_t len, const char *image, int64_t from, void *data);
void mr_tiling_scatter(const struct mr_tiling *t, uint64_t nth, size_t len, char *image, int64_t from,
                       const void *data);

#endif
