/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data with holes in a window: a datatype is cut into lists of pieces, one for each packet, and an operation is applied
 * to the memory that such a list describes. Pure.
 *
 * Data is packed: the bytes of the pieces, one after the other. A type is cut into whole numbers of basic elements.
 */
#ifndef MRMPI_PIECES_H
#define MRMPI_PIECES_H

#include "libmrmpi/core/objects.h"

/* count stretches of elem bytes, stride bytes apart, the first `at` bytes from the operation's addr. */
struct mr_rma_piece {
    int64_t at, stride;
    uint32_t count, elem;
};
_Static_assert(sizeof(struct mr_rma_piece) == 24, "on the wire");

#define MR_PIECES_MAX 64

/* A list: pieces of memory relative to an address, and their number of bytes. num 0: one piece of `bytes`. */
struct mr_pieces {
    size_t bytes;
    unsigned num;
    struct mr_rma_piece piece[MR_PIECES_MAX];
};

/* A function of a list: offset is the place of its data in the packed form of all. An error ends the cutting. */
typedef enum mr_err mr_pieces_fn(const struct mr_pieces *p, size_t offset, void *arg);

/* The number of pieces in a packet of `room` bytes: in half of it. At least 2. */
static inline unsigned mr_pieces_most(size_t room)
{
    size_t n = room / 2 / sizeof(struct mr_rma_piece);

    return n < 2 ? 2 : n < MR_PIECES_MAX ? (unsigned)n : MR_PIECES_MAX;
}
/*
 * Cuts count elements of t into lists of at most `most` bytes (a multiple of unit, the size of a basic element) in at
 * most `pieces` pieces.
 */
enum mr_err mr_pieces_cut(const struct mr_type *t, size_t count, size_t most, size_t unit, unsigned pieces,
                          mr_pieces_fn *each, void *arg);

/* From the first byte to behind the last; false: the list makes no sense. */
bool mr_pieces_span(const struct mr_rma_piece *piece, unsigned num, size_t bytes, int64_t *lo, int64_t *hi);
void mr_pieces_gather(const char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, void *out);
void mr_pieces_scatter(char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, const void *in);

/* Elements as they lie in memory are at most 1.6 times as long as packed (MPI_LONG_DOUBLE_INT). */
#define MR_PIECES_SCRATCH(bytes) (5 * (bytes) + 96)
#define MR_PIECES_SWAP           MR_OP_COUNT /* on one element: in has the new value and the value to replace */

/*
 * mem = mem op in, for the pieces; the former values go to old (NULL: nowhere). scratch: MR_PIECES_SCRATCH(bytes),
 * aligned like malloc's memory. bytes is a multiple of the basic type's size.
 */
void mr_pieces_apply(char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, unsigned op,
                     struct mr_type *basic, const void *in, void *old, void *scratch);

#endif
