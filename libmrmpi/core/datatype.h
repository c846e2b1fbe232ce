/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes: construction and queries (MPI-4.0 chapter 5). Packing is in core.h. A constructor returns a type with a
 * reference for the caller, or NULL: no memory. The old types are held.
 */
#ifndef MRMPI_DATATYPE_H
#define MRMPI_DATATYPE_H

#include "libmrmpi/core/basic.h"
#include "libmrmpi/core/core.h"

extern struct mr_type mr_type_basic[MR_NUM_BASICS];

enum mr_combiner {
    MR_COMBINER_NAMED,
    MR_COMBINER_DUP,
    MR_COMBINER_CONTIGUOUS,
    MR_COMBINER_VECTOR,
    MR_COMBINER_HVECTOR,
    MR_COMBINER_INDEXED,
    MR_COMBINER_HINDEXED,
    MR_COMBINER_INDEXED_BLOCK,
    MR_COMBINER_HINDEXED_BLOCK,
    MR_COMBINER_STRUCT,
    MR_COMBINER_SUBARRAY,
    MR_COMBINER_RESIZED,
    MR_COMBINER_DARRAY,
    MR_COMBINER_F90_REAL,
    MR_COMBINER_F90_COMPLEX,
    MR_COMBINER_F90_INTEGER,
};

/*
 * The arguments of the constructor, in the order of MPI_Type_get_contents. Counts and displacements of a constructor of
 * large counts are in `counts`; otherwise counts are in `ints` and displacements in bytes in `aints`.
 */
struct mr_recipe {
    enum mr_combiner combiner;
    bool large;
    int64_t num_ints, num_aints, num_counts;
    int num_types, num_hidden; /* the last num_hidden types are our own intermediate steps */
    int *ints;
    ptrdiff_t *aints;
    int64_t *counts;
    struct mr_type **types;
};

/*
 * All return a new type with one reference, NULL without memory. Arguments have been checked. large: a constructor of
 * large counts, which affects only MPI_Type_get_contents. The old type comes before large.
 */
struct mr_type *mr_type_dup(struct mr_type *t);
struct mr_type *mr_type_contiguous(int64_t count, struct mr_type *t, bool large);
struct mr_type *mr_type_vector(int64_t count, int64_t length, int64_t stride, struct mr_type *t, bool large);
struct mr_type *mr_type_hvector(int64_t count, int64_t length, int64_t stride, struct mr_type *t, bool large);
struct mr_type *mr_type_indexed(int64_t count, const int64_t *lengths, const int64_t *disps, struct mr_type *t,
                                bool large);
struct mr_type *mr_type_hindexed(int64_t count, const int64_t *lengths, const int64_t *disps, struct mr_type *t,
                                 bool large);
struct mr_type *mr_type_indexed_block(int64_t count, int64_t length, const int64_t *disps, struct mr_type *t,
                                      bool large);
struct mr_type *mr_type_hindexed_block(int64_t count, int64_t length, const int64_t *disps, struct mr_type *t,
                                       bool large);
struct mr_type *mr_type_struct(int64_t count, const int64_t *lengths, const int64_t *disps,
                               struct mr_type *const *types, bool large);
struct mr_type *mr_type_resized(struct mr_type *t, ptrdiff_t lb, ptrdiff_t extent, bool large);

/* Arrays (type_array.c). order is kept for MPI_Type_get_contents; fortran: the first dimension is the fastest. */
struct mr_order {
    bool fortran;
    int constant;
};
struct mr_type *mr_type_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                                 struct mr_order order, struct mr_type *t, bool large);
enum mr_distribution { MR_DISTRIBUTE_NONE, MR_DISTRIBUTE_BLOCK, MR_DISTRIBUTE_CYCLIC };
struct mr_darray {
    int size, rank, ndims;
    const int64_t *gsizes;
    /* As the user gave them, with the ABI's constants: for MPI_Type_get_contents. */
    const int *distribs, *dargs, *psizes;
    /* The same decoded: the distribution, and its block length. */
    const enum mr_distribution *kinds;
    const int64_t *blocks;
};
struct mr_type *mr_type_darray(const struct mr_darray *a, struct mr_order order, struct mr_type *t, bool large);

/*
 * The types of Fortran 90's selected kinds (type_f90.c). The same arguments give the same type, which is built in:
 * committed, never freed by the program, alive until mr_type_f90_finalize. MR_UNDEFINED: any precision or range. *out
 * is NULL without memory; MR_ERR_ARG: no such kind.
 */
enum mr_err mr_type_f90(enum mr_combiner combiner, int precision, int range, struct mr_type **out);
void mr_type_f90_finalize(void);

/* Basic elements in the first `bytes` bytes of data of a sequence of t. */
size_t mr_type_elements(const struct mr_type *t, size_t bytes);
/* The other way round: bytes of data that the first n basic elements of a sequence of t have. */
size_t mr_type_element_bytes(const struct mr_type *t, size_t n);
const char *mr_type_name(const struct mr_type *t);
/* Bytes of each basic element, if all have the same size; 0 if not, or if they are pairs. */
size_t mr_type_grain(const struct mr_type *t);
static inline ptrdiff_t mr_type_ub(const struct mr_type *t)
{
    return t->lb + t->extent;
}
/* Copy between two buffers of equal size in bytes and any types (local copies of collectives); surplus is left out. */
void mr_type_copy(const void *in, size_t in_count, const struct mr_type *in_type, void *out, size_t out_count,
                  const struct mr_type *out_type);
/* Bytes that count elements span in memory, from lb_bytes(...) on: for temporary buffers. */
struct mr_span {
    ptrdiff_t lo;
    size_t len;
};
struct mr_span mr_type_span(const struct mr_type *t, size_t count);

/* The data representation "external32" (external.c; MPI-3.1 section 13.5.2): bytes of one element of t. */
size_t mr_external_size(const struct mr_type *t);
/*
 * The same data in a file of that representation (MPI-4.1 sections 14.5.1, 14.5.2): displacements in multiples of a
 * type's extent follow the type, displacements in bytes are unchanged. A reference for the caller, perhaps t itself.
 * NULL: no memory.
 */
struct mr_type *mr_external_type(struct mr_type *t);
/* Convert count elements to or from it; flat has count * mr_external_size(t) bytes. */
void mr_external_pack(const void *buf, size_t count, const struct mr_type *t, void *flat);
void mr_external_unpack(void *buf, size_t count, const struct mr_type *t, const void *flat);

#endif
