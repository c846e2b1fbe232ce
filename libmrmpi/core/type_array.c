/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of multidimensional arrays (MPI-3.1 sections 4.1.3 and 4.1.4): built from the fastest dimension outwards, one
 * intermediate type per dimension, shifted to the beginning of the part. The extent is the whole array's.
 */
#include "libmrmpi/core/maker.h"

/* dimension number k counted from the fastest */
static int dimension(struct mr_order order, int ndims, int k)
{
    return order.fortran ? k : ndims - 1 - k;
}

struct mr_type *mr_type_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                                 struct mr_order order, struct mr_type *t, bool large)
{
    struct mr_type *inner = mr_type_get(t);
    ptrdiff_t stride = t->extent, shift = 0;
    for (int k = 0; k < ndims && inner; k++) {
        int d = dimension(order, ndims, k);
        struct mr_type *outer = k == 0 ? mr_type_contiguous(subsizes[d], inner, false)
                                       : mr_type_hvector(subsizes[d], 1, stride, inner, false);
        mr_type_put(inner);
        inner = outer;
        shift += starts[d] * stride;
        stride *= sizes[d];
    }
    struct maker m = maker_begin(
        (struct shape){MR_COMBINER_SUBARRAY, large, .ints = 2, .counts = 3 * (int64_t)ndims, .types = 1}, &t);
    maker_int(&m, ndims);
    maker_counts(&m, ndims, sizes);
    maker_counts(&m, ndims, subsizes);
    maker_counts(&m, ndims, starts);
    maker_int(&m, order.constant);
    if (maker_hide(&m, inner))
        maker_block(&m, shift, 1, inner);
    maker_bounds(&m, 0, stride);
    return maker_end(&m);
}

/*
 * A process's part of one dimension: `blocks` of `length`, `stride` apart from `start` on, then `last_length` in one
 * more place.
 */
struct distribution {
    int64_t start, blocks, length, stride, last_length;
};

static int64_t at_most(int64_t n, int64_t max)
{
    return n < 0 ? 0 : n < max ? n : max;
}

static struct distribution distribution_of(enum mr_distribution kind, int64_t size, int64_t block, int64_t nprocs,
                                           int64_t coord)
{
    struct distribution s = {.length = block, .start = coord * block, .stride = nprocs * block};
    if (kind == MR_DISTRIBUTE_NONE)
        return (struct distribution){.blocks = 1, .length = size};
    if (kind == MR_DISTRIBUTE_BLOCK) {
        s.last_length = at_most(size - s.start, block);
        return s;
    }
    int64_t rest = at_most(size - s.start, size); /* from the first block to the end of the dimension */
    s.blocks = rest / s.stride;
    s.last_length = at_most(rest - s.blocks * s.stride, block);
    return s;
}

/* One dimension of the array: its part, elements `step` bytes apart, with the extent of the whole dimension. */
static struct mr_type *distribute(struct distribution s, int64_t size, ptrdiff_t step, struct mr_type *inner)
{
    struct mr_type *body = mr_type_hvector(s.blocks, s.length, s.stride * step, inner, false);
    if (!body)
        return NULL;
    int64_t lengths[2] = {1, s.last_length}, at[2] = {s.start * step, (s.start + s.blocks * s.stride) * step};
    struct mr_type *types[2] = {body, inner};
    if (s.blocks == 0)
        lengths[0] = 0;
    struct mr_type *both = mr_type_struct(2, lengths, at, types, false);
    mr_type_put(body);
    if (!both)
        return NULL;
    struct mr_type *out = mr_type_resized(both, 0, size * step, false);
    mr_type_put(both);
    return out;
}

struct mr_type *mr_type_darray(const struct mr_darray *a, struct mr_order order, struct mr_type *t, bool large)
{
    /* ranks fill the process grid in row-major order, whatever the order of the array */
    int coords[a->ndims], rest = a->rank;
    for (int d = a->ndims - 1; d >= 0; d--) {
        coords[d] = rest % a->psizes[d];
        rest /= a->psizes[d];
    }
    struct mr_type *inner = mr_type_resized(t, 0, t->extent, false);
    ptrdiff_t step = t->extent;
    for (int k = 0; k < a->ndims && inner; k++) {
        int d = dimension(order, a->ndims, k);
        struct distribution s = distribution_of(a->kinds[d], a->gsizes[d], a->blocks[d], a->psizes[d], coords[d]);
        struct mr_type *outer = distribute(s, a->gsizes[d], step, inner);
        mr_type_put(inner);
        inner = outer;
        step *= a->gsizes[d];
    }
    struct maker m = maker_begin(
        (struct shape){MR_COMBINER_DARRAY, large, .ints = 3 * (int64_t)a->ndims + 4, .counts = a->ndims, .types = 1},
        &t);
    maker_int(&m, a->size);
    maker_int(&m, a->rank);
    maker_int(&m, a->ndims);
    maker_counts(&m, a->ndims, a->gsizes);
    const int *const lists[3] = {a->distribs, a->dargs, a->psizes};
    for (int l = 0; l < 3; l++)
        for (int d = 0; d < a->ndims; d++)
            maker_int(&m, lists[l][d]);
    maker_int(&m, order.constant);
    if (maker_hide(&m, inner))
        maker_block(&m, 0, 1, inner);
    maker_bounds(&m, 0, step);
    return maker_end(&m);
}
