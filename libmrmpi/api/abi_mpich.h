/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Particulars of the MPICH binary interface: the form of handles, statuses, error numbers and special addresses. The
 * rest of api/ uses only these names; a second ABI is a second file like this.
 */
#ifndef MRMPI_API_ABI_H
#define MRMPI_API_ABI_H

#include <mpi.h>

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/api/init/init.h"
#include "libmrmpi/p2p/p2p.h"

/* ---- handles made at run time: 11 kind(4) generation(5) index(21) ---- */

enum abi_kind {
    ABI_COMM = 1,
    ABI_GROUP = 2,
    ABI_TYPE = 3,
    ABI_MESSAGE = 4,
    ABI_ERRHANDLER = 5,
    ABI_OP = 6,
    ABI_INFO = 7,
    ABI_WIN = 8,
    ABI_KEYVAL = 9,
    ABI_FILE = 10,
    ABI_REQUEST = 11,
    ABI_DONE = 12, /* requests, too: done.h */
    ABI_SESSION = 14,
    ABI_KINDS = 15,
};
enum { ABI_INDEX_BITS = 21, ABI_GENERATION_BITS = 5, ABI_INDEX_MAX = 1 << ABI_INDEX_BITS };

static inline int abi_handle_first(enum abi_kind kind, uint32_t index)
{
    return (int)(3u << 30 | (uint32_t)kind << 26 | index);
}

/* The same with the next generation, which wraps around. */
static inline int abi_handle_next(int handle)
{
    const uint32_t generation = ((1u << ABI_GENERATION_BITS) - 1) << ABI_INDEX_BITS;
    uint32_t u = (uint32_t)handle;

    return (int)((u & ~generation) | ((u + (1u << ABI_INDEX_BITS)) & generation));
}

static inline uint32_t abi_handle_index(int handle)
{
    return (uint32_t)handle & (ABI_INDEX_MAX - 1);
}

/* ---- built-in datatypes: X(low byte of the handle, basic) ---- */

/* clang-format off */
#define ABI_BASICS(X) \
    X(MPI_CHAR, CHAR) X(MPI_SIGNED_CHAR, SIGNED_CHAR) X(MPI_UNSIGNED_CHAR, UNSIGNED_CHAR) X(MPI_BYTE, BYTE) \
    X(MPI_PACKED, PACKED) \
    X(MPI_WCHAR, WCHAR) X(MPI_SHORT, SHORT) X(MPI_UNSIGNED_SHORT, UNSIGNED_SHORT) X(MPI_INT, INT) \
    X(MPI_UNSIGNED, UNSIGNED) \
    X(MPI_LONG, LONG) X(MPI_UNSIGNED_LONG, UNSIGNED_LONG) X(MPI_LONG_LONG_INT, LONG_LONG_INT) \
    X(MPI_UNSIGNED_LONG_LONG, UNSIGNED_LONG_LONG) X(MPI_FLOAT, FLOAT) X(MPI_DOUBLE, DOUBLE) \
    X(MPI_LONG_DOUBLE, LONG_DOUBLE) \
    X(MPI_INT8_T, INT8_T) X(MPI_INT16_T, INT16_T) X(MPI_INT32_T, INT32_T) X(MPI_INT64_T, INT64_T) \
    X(MPI_UINT8_T, UINT8_T) \
    X(MPI_UINT16_T, UINT16_T) X(MPI_UINT32_T, UINT32_T) X(MPI_UINT64_T, UINT64_T) X(MPI_C_BOOL, C_BOOL) \
    X(MPI_C_COMPLEX, C_COMPLEX) X(MPI_C_DOUBLE_COMPLEX, C_DOUBLE_COMPLEX) \
    X(MPI_C_LONG_DOUBLE_COMPLEX, C_LONG_DOUBLE_COMPLEX) X(MPIX_C_FLOAT16, C_FLOAT16) X(MPI_AINT, AINT) \
    X(MPI_OFFSET, OFFSET) \
    X(MPI_COUNT, COUNT) X(MPI_CXX_BOOL, CXX_BOOL) X(MPI_CXX_FLOAT_COMPLEX, CXX_FLOAT_COMPLEX) \
    X(MPI_CXX_DOUBLE_COMPLEX, CXX_DOUBLE_COMPLEX) X(MPI_CXX_LONG_DOUBLE_COMPLEX, CXX_LONG_DOUBLE_COMPLEX) \
    X(MPI_2INT, 2INT) \
    X(MPI_CHARACTER, CHARACTER) X(MPI_LOGICAL, LOGICAL) X(MPI_INTEGER, INTEGER) X(MPI_REAL, REAL) \
    X(MPI_DOUBLE_PRECISION, DOUBLE_PRECISION) X(MPI_COMPLEX, COMPLEX) X(MPI_DOUBLE_COMPLEX, DOUBLE_COMPLEX) \
    X(MPI_2INTEGER, 2INTEGER) X(MPI_2REAL, 2REAL) X(MPI_2DOUBLE_PRECISION, 2DOUBLE_PRECISION) X(MPI_REAL4, REAL4) \
    X(MPI_REAL8, REAL8) X(MPI_REAL16, REAL16) X(MPI_COMPLEX8, COMPLEX8) X(MPI_COMPLEX16, COMPLEX16) \
    X(MPI_COMPLEX32, COMPLEX32) \
    X(MPI_INTEGER1, INTEGER1) X(MPI_INTEGER2, INTEGER2) X(MPI_INTEGER4, INTEGER4) X(MPI_INTEGER8, INTEGER8) \
    X(MPI_LOGICAL1, LOGICAL1) \
    X(MPI_LOGICAL2, LOGICAL2) X(MPI_LOGICAL4, LOGICAL4) X(MPI_LOGICAL8, LOGICAL8) X(MPI_LOGICAL16, LOGICAL16) \
    X(MPI_LB, LB) \
    X(MPI_UB, UB)
#define ABI_PAIRS(X) \
    X(MPI_FLOAT_INT, FLOAT_INT) X(MPI_DOUBLE_INT, DOUBLE_INT) X(MPI_LONG_INT, LONG_INT) X(MPI_SHORT_INT, SHORT_INT) \
    X(MPI_LONG_DOUBLE_INT, LONG_DOUBLE_INT)
/* clang-format on */

extern struct mr_type *const abi_basics[256]; /* by the low byte; NULL: no such type */
extern struct mr_type *const abi_pairs[5];

/* The built-in type of a handle, NULL if it is none. */
static inline struct mr_type *abi_basic(MPI_Datatype h)
{
    uint32_t u = (uint32_t)h;
    struct mr_type *t = abi_basics[u & 0xff];
    if (likely(t && t->handle == h))
        return t;
    return u - 0x8c000000u < 5 ? abi_pairs[u - 0x8c000000u] : NULL;
}

/* Of handles in the first table. */
static inline size_t abi_basic_bytes(MPI_Datatype h)
{
    return (uint32_t)h >> 8 & 0xff;
}

static inline struct mr_op *abi_builtin_op(MPI_Op h)
{
    uint32_t i = (uint32_t)h - (uint32_t)MPI_MAX;
    return i < MR_OP_COUNT ? &mr_op_builtin[i] : NULL;
}

void abi_init(void); /* gives the built-in objects their handles; after mr_init */

/* MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY as the module mpi_f08 reads them. */
extern int *MPIR_C_MPI_UNWEIGHTED, *MPIR_C_MPI_WEIGHTS_EMPTY;

/* ---- statuses ---- */

static inline void abi_status_set_bytes(MPI_Status *st, uint64_t bytes, bool cancelled)
{
    st->count_lo = (int)(uint32_t)bytes;
    st->count_hi_and_cancelled = (int)((uint32_t)(bytes >> 32) << 1 | cancelled);
}

static inline uint64_t abi_status_bytes(const MPI_Status *st)
{
    return (uint64_t)((uint32_t)st->count_hi_and_cancelled >> 1) << 32 | (uint32_t)st->count_lo;
}

static inline bool abi_status_cancelled(const MPI_Status *st)
{
    return st->count_hi_and_cancelled & 1;
}

/* ---- errors ---- */

extern const int abi_error_of[MR_ERR_LAST + 1];
enum { ABI_USER_CLASS = 0x40000000 }; /* classes and codes that programs add are numbered from here */

#endif
