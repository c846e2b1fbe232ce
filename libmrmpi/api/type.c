/* SPDX-License-Identifier: BSD-3-Clause */
/* The constructors of datatypes (MPI-4.0 chapter 5) with counts: this file is compiled twice (api.h). */
#include "libmrmpi/api/api.h"

#include <stdlib.h>
#include <string.h>

#ifdef API_LARGE
enum { LARGE = true };
typedef MPI_Count api_aint; /* displacements in bytes */
#else
enum { LARGE = false };
typedef MPI_Aint api_aint;
#endif

static enum mr_err check_counts(api_count count, const api_count *lengths, const void *disps)
{
    if (count < 0)
        return api_bad_count(count, "count");
    if (count && (!lengths || !disps))
        return api_null(lengths ? "array_of_displacements" : "array_of_blocklengths");
    for (api_count i = 0; i < count; i++)
        if (lengths[i] < 0)
            return mr_fail(MR_ERR_ARG, "array_of_blocklengths[%lld] is %lld", (long long)i, (long long)lengths[i]);
    return MR_SUCCESS;
}

static enum mr_err check_block(api_count count, api_count length)
{
    if (count < 0)
        return api_bad_count(count, "count");
    return length < 0 ? mr_fail(MR_ERR_ARG, "blocklength is %lld", (long long)length) : MR_SUCCESS;
}

static enum mr_err check_block_list(api_count count, api_count length, const void *disps)
{
    enum mr_err err = check_block(count, length);
    return !err && count && !disps ? api_null("array_of_displacements") : err;
}

/* The core takes wide counts. The user's lists are copied unless they are wide already; the caller frees. */
static int64_t *wide(int64_t n, const api_count *list)
{
    int64_t *w = malloc(((size_t)n + 1) * sizeof(*w));
    for (int64_t i = 0; w && i < n; i++)
        w[i] = list[i];
    return w;
}

/* A constructor with one old type: check, make. */
#define CONSTRUCTOR(name, params, check, make)                                                                         \
    MPI_COUNT_FN(int, name, params)                                                                                    \
    {                                                                                                                  \
        struct mr_type *t;                                                                                             \
        API_ENTER();                                                                                                   \
        NOT_NULL(newtype);                                                                                             \
        CHECK(api_type(oldtype, &t));                                                                                  \
        CHECK(check);                                                                                                  \
        err = api_new_type(make, newtype);                                                                             \
        API_LEAVE(NULL);                                                                                               \
    }

CONSTRUCTOR(Type_contiguous, (api_count count, MPI_Datatype oldtype, MPI_Datatype *newtype), check_block(count, 0),
            mr_type_contiguous(count, t, LARGE))
CONSTRUCTOR(Type_vector,
            (api_count count, api_count blocklength, api_count stride, MPI_Datatype oldtype, MPI_Datatype *newtype),
            check_block(count, blocklength), mr_type_vector(count, blocklength, stride, t, LARGE))
CONSTRUCTOR(Type_create_hvector,
            (api_count count, api_count blocklength, api_aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype),
            check_block(count, blocklength), mr_type_hvector(count, blocklength, stride, t, LARGE))
CONSTRUCTOR(Type_create_hindexed_block,
            (api_count count, api_count blocklength, const api_aint displacements[], MPI_Datatype oldtype,
             MPI_Datatype *newtype),
            check_block_list(count, blocklength, displacements),
            mr_type_hindexed_block(count, blocklength, displacements, t, LARGE))
CONSTRUCTOR(Type_create_resized, (MPI_Datatype oldtype, api_aint lb, api_aint extent, MPI_Datatype *newtype),
            MR_SUCCESS, mr_type_resized(t, lb, extent, LARGE))

static struct mr_type *make_indexed(api_count count, const api_count *lengths, const api_count *disps,
                                    struct mr_type *t)
{
    int64_t *l = wide(count, lengths), *d = wide(count, disps);
    struct mr_type *made = l && d ? mr_type_indexed(count, l, d, t, LARGE) : NULL;
    free(l);
    free(d);
    return made;
}
CONSTRUCTOR(Type_indexed,
            (api_count count, const api_count blocklengths[], const api_count displacements[], MPI_Datatype oldtype,
             MPI_Datatype *newtype),
            check_counts(count, blocklengths, displacements), make_indexed(count, blocklengths, displacements, t))

static struct mr_type *make_hindexed(api_count count, const api_count *lengths, const api_aint *disps,
                                     struct mr_type *t)
{
    int64_t *l = wide(count, lengths);
    struct mr_type *made = l ? mr_type_hindexed(count, l, disps, t, LARGE) : NULL;
    free(l);
    return made;
}
CONSTRUCTOR(Type_create_hindexed,
            (api_count count, const api_count blocklengths[], const api_aint displacements[], MPI_Datatype oldtype,
             MPI_Datatype *newtype),
            check_counts(count, blocklengths, displacements), make_hindexed(count, blocklengths, displacements, t))

static struct mr_type *make_indexed_block(api_count count, api_count length, const api_count *disps, struct mr_type *t)
{
    int64_t *d = wide(count, disps);
    struct mr_type *made = d ? mr_type_indexed_block(count, length, d, t, LARGE) : NULL;
    free(d);
    return made;
}
CONSTRUCTOR(Type_create_indexed_block,
            (api_count count, api_count blocklength, const api_count displacements[], MPI_Datatype oldtype,
             MPI_Datatype *newtype),
            check_block_list(count, blocklength, displacements),
            make_indexed_block(count, blocklength, displacements, t))

MPI_COUNT_FN(int, Type_create_struct,
             (api_count count, const api_count blocklengths[], const api_aint displacements[],
              const MPI_Datatype types[], MPI_Datatype *newtype))
{
    struct mr_type **t = NULL;
    int64_t *l = NULL;
    API_ENTER();
    NOT_NULL(newtype);
    CHECK(check_counts(count, blocklengths, displacements));
    if (count)
        NOT_NULL(types);
    if ((int64_t)count >= INT_MAX)
        CHECK(mr_fail(MR_ERR_COUNT, "a struct of %lld members is too long", (long long)count));
    t = malloc(((size_t)count + 1) * sizeof(struct mr_type *));
    l = wide(count, blocklengths);
    if (!t || !l)
        err = mr_fail(MR_ERR_NO_MEM, "no memory for %lld types", (long long)count);
    for (api_count i = 0; i < count && !err; i++)
        err = api_type(types[i], &t[i]);
    if (!err)
        err = api_new_type(mr_type_struct(count, l, displacements, t, LARGE), newtype);
    free(t);
    free(l);
    API_LEAVE(NULL);
}

/* ---- parts of arrays ---- */

static enum mr_err check_array_shape(int ndims, int order)
{
    if (ndims < 1)
        return mr_fail(MR_ERR_DIMS, "ndims is %d", ndims);
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN)
        return mr_fail(MR_ERR_ARG, "order is %d: neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
    return MR_SUCCESS;
}

static struct mr_order order_of(int order)
{
    return (struct mr_order){order == MPI_ORDER_FORTRAN, order};
}

static enum mr_err check_subarray(int ndims, const api_count *sizes, const api_count *subsizes, const api_count *starts,
                                  int order)
{
    enum mr_err err = check_array_shape(ndims, order);
    if (err)
        return err;
    if (!sizes || !subsizes || !starts)
        return api_null("array_of_sizes, array_of_subsizes or array_of_starts");
    for (int i = 0; i < ndims; i++)
        if (sizes[i] < 1 || subsizes[i] < 1 || subsizes[i] > sizes[i] || starts[i] < 0 ||
            starts[i] > sizes[i] - subsizes[i])
            return mr_fail(MR_ERR_ARG, "dimension %d: %lld elements from %lld on do not fit into %lld", i,
                           (long long)subsizes[i], (long long)starts[i], (long long)sizes[i]);
    return MR_SUCCESS;
}

static struct mr_type *make_subarray(int ndims, const api_count *sizes, const api_count *subsizes,
                                     const api_count *starts, int order, struct mr_type *t)
{
    int64_t *a = wide(ndims, sizes), *b = wide(ndims, subsizes), *c = wide(ndims, starts);
    struct mr_type *made = a && b && c ? mr_type_subarray(ndims, a, b, c, order_of(order), t, LARGE) : NULL;
    free(a);
    free(b);
    free(c);
    return made;
}
CONSTRUCTOR(Type_create_subarray,
            (int ndims, const api_count sizes[], const api_count subsizes[], const api_count starts[], int order,
             MPI_Datatype oldtype, MPI_Datatype *newtype),
            check_subarray(ndims, sizes, subsizes, starts, order),
            make_subarray(ndims, sizes, subsizes, starts, order, t))

/* One dimension of a distributed array: the meaning of the user's constants. */
static enum mr_err distribution(int d, int64_t gsize, int distrib, int darg, int psize, enum mr_distribution *kind,
                                int64_t *block)
{
    bool standard = darg == MPI_DISTRIBUTE_DFLT_DARG;
    if (gsize < 1 || psize < 1)
        return mr_fail(MR_ERR_ARG, "dimension %d: %lld elements over %d processes", d, (long long)gsize, psize);
    if (!standard && darg < 1 && distrib != MPI_DISTRIBUTE_NONE)
        return mr_fail(MR_ERR_ARG, "dimension %d: array_of_dargs is %d", d, darg);
    *block = darg;
    switch (distrib) {
    case MPI_DISTRIBUTE_NONE:
        *kind = MR_DISTRIBUTE_NONE;
        if (psize != 1)
            return mr_fail(MR_ERR_ARG, "dimension %d is not distributed, but over %d processes", d, psize);
        return MR_SUCCESS;
    case MPI_DISTRIBUTE_BLOCK:
        *kind = MR_DISTRIBUTE_BLOCK;
        if (standard)
            *block = (gsize + psize - 1) / psize;
        else if ((int64_t)darg * psize < gsize)
            return mr_fail(MR_ERR_ARG, "dimension %d: blocks of %d on %d processes do not hold %lld elements", d, darg,
                           psize, (long long)gsize);
        return MR_SUCCESS;
    case MPI_DISTRIBUTE_CYCLIC:
        *kind = MR_DISTRIBUTE_CYCLIC;
        if (standard)
            *block = 1;
        return MR_SUCCESS;
    }
    return mr_fail(MR_ERR_ARG, "dimension %d: array_of_distribs is %d, none of MPI_DISTRIBUTE_BLOCK, CYCLIC, NONE", d,
                   distrib);
}

static enum mr_err check_darray(int size, int rank, int ndims, const api_count *gsizes, const int *distribs,
                                const int *dargs, const int *psizes, enum mr_distribution *kinds, int64_t *blocks)
{
    int64_t grid = 1;
    if (size < 1)
        return mr_fail(MR_ERR_ARG, "size is %d", size);
    if (rank < 0 || rank >= size)
        return mr_fail(MR_ERR_RANK, "rank is %d, size is %d", rank, size);
    for (int d = 0; d < ndims; d++) {
        enum mr_err err = distribution(d, gsizes[d], distribs[d], dargs[d], psizes[d], &kinds[d], &blocks[d]);
        if (err)
            return err;
        grid = grid > INT_MAX ? grid : grid * psizes[d];
    }
    if (grid != size)
        return mr_fail(MR_ERR_ARG, "the process grid has %lld places, size is %d", (long long)grid, size);
    return MR_SUCCESS;
}

MPI_COUNT_FN(int, Type_create_darray,
             (int size, int rank, int ndims, const api_count gsizes[], const int distribs[], const int dargs[],
              const int psizes[], int order, MPI_Datatype oldtype, MPI_Datatype *newtype))
{
    struct mr_type *t;
    int64_t *g = NULL, *blocks = NULL;
    enum mr_distribution *kinds = NULL;
    API_ENTER();
    NOT_NULL(newtype);
    NOT_NULL(gsizes);
    NOT_NULL(distribs);
    NOT_NULL(dargs);
    NOT_NULL(psizes);
    CHECK(api_type(oldtype, &t));
    CHECK(check_array_shape(ndims, order));
    g = wide(ndims, gsizes);
    blocks = malloc((size_t)ndims * sizeof(*blocks));
    kinds = malloc((size_t)ndims * sizeof(*kinds));
    err = g && blocks && kinds ? check_darray(size, rank, ndims, gsizes, distribs, dargs, psizes, kinds, blocks)
                               : mr_fail(MR_ERR_NO_MEM, "no memory for %d dimensions", ndims);
    if (!err) {
        struct mr_darray a = {size, rank, ndims, g, distribs, dargs, psizes, kinds, blocks};
        err = api_new_type(mr_type_darray(&a, order_of(order), t, LARGE), newtype);
    }
    free(g);
    free(blocks);
    free(kinds);
    API_LEAVE(NULL);
}

/* ---- sizes ---- */

MPI_COUNT_FN(int, Type_size, (MPI_Datatype datatype, api_count *size))
{
    struct mr_type *t;
    API_ENTER();
    NOT_NULL(size);
    CHECK(api_type(datatype, &t));
    *size = api_count_of(t->size);
    API_LEAVE(NULL);
}

#define EXTENT(name, lbfield, extentfield)                                                                             \
    MPI_COUNT_FN(int, name, (MPI_Datatype datatype, api_aint * lbfield, api_aint * extentfield))                       \
    {                                                                                                                  \
        struct mr_type *t;                                                                                             \
        API_ENTER();                                                                                                   \
        NOT_NULL(lbfield);                                                                                             \
        NOT_NULL(extentfield);                                                                                         \
        CHECK(api_type(datatype, &t));                                                                                 \
        *lbfield = t->lbfield;                                                                                         \
        *extentfield = t->extentfield;                                                                                 \
        API_LEAVE(NULL);                                                                                               \
    }
EXTENT(Type_get_extent, lb, extent)
EXTENT(Type_get_true_extent, true_lb, true_extent)
