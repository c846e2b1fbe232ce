/* SPDX-License-Identifier: BSD-3-Clause */
/* Particulars of the MPICH binary interface: part of interface.h. */
#ifndef MRMPI_API_ABI_MPICH_H
#define MRMPI_API_ABI_MPICH_H

#include "libmrmpi/api/interface.h"

#include <string.h>

/* ---- handles are their numbers; files are pointers, but not to anything ---- */

#define abi_number(h)       ((int)(intptr_t)(h))
#define abi_handle(type, n) ((type)(uintptr_t)(uint32_t)(n))

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

static inline struct mr_errhandler *abi_builtin_errhandler(MPI_Errhandler h)
{
    switch (h) {
    case MPI_ERRORS_ARE_FATAL:
        return &mr_errhandler_fatal;
    case MPI_ERRORS_RETURN:
        return &mr_errhandler_return;
    case MPI_ERRORS_ABORT:
        return &mr_errhandler_abort;
    case MPIR_ERRORS_THROW_EXCEPTIONS:
        return &mr_errhandler_throw;
    default:
        return NULL;
    }
}

/* MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY as the module mpi_f08 reads them. */
extern int *MPIR_C_MPI_UNWEIGHTED, *MPIR_C_MPI_WEIGHTS_EMPTY;

/* ---- statuses ---- */

static inline void abi_status_set_bytes(MPI_Status *st, uint64_t bytes, bool cancelled)
{
    st->count_lo = (int)(uint32_t)bytes;
    st->count_hi_and_cancelled = (int)((uint32_t)(bytes >> 32) << 1 | cancelled);
}

static inline void abi_status_set_peer(MPI_Status *st, int source, int tag)
{
    st->MPI_SOURCE = source;
    st->MPI_TAG = tag;
}

static inline uint64_t abi_status_bytes(const MPI_Status *st)
{
    return (uint64_t)((uint32_t)st->count_hi_and_cancelled >> 1) << 32 | (uint32_t)st->count_lo;
}

static inline bool abi_status_cancelled(const MPI_Status *st)
{
    return st->count_hi_and_cancelled & 1;
}

/* Where a program must name a status, or MPI_STATUS_IGNORE. */
static inline bool abi_no_status(const MPI_Status *st)
{
    return !st;
}

/* A status without its error, which is none: the first fields of MPI_Status. */
struct abi_kept_status {
    int field[4];
};
_Static_assert(offsetof(MPI_Status, MPI_ERROR) == sizeof(struct abi_kept_status), "of the same layout");

static inline void abi_keep_status(struct abi_kept_status *k, const struct mr_status *s)
{
    MPI_Status st;
    abi_status_set_peer(&st, s->source, s->tag);
    abi_status_set_bytes(&st, s->bytes, s->cancelled);
    memcpy(k, &st, sizeof(*k));
}

static inline void abi_give_status(MPI_Status *st, const struct abi_kept_status *k)
{
    memcpy(st, k, sizeof(*k));
}

static inline struct mr_status abi_kept_status(const struct abi_kept_status *k)
{
    MPI_Status st;
    memcpy(&st, k, sizeof(*k));
    return (struct mr_status){.source = st.MPI_SOURCE, .tag = st.MPI_TAG, .bytes = abi_status_bytes(&st)};
}

/* ---- ranks, tags, addresses: those of core/ ---- */

static inline int abi_rank_in(int rank)
{
    return rank;
}

static inline int abi_rank_out(int rank)
{
    return rank;
}

static inline int abi_tag_in(int tag)
{
    return tag;
}

static inline int abi_tag_out(int tag)
{
    return tag;
}
enum {
    ABI_PROC_NULL = MPI_PROC_NULL,
    ABI_ANY_SOURCE = MPI_ANY_SOURCE,
    ABI_ROOT = MPI_ROOT,
    ABI_ANY_TAG = MPI_ANY_TAG,
    ABI_UNDEFINED = MPI_UNDEFINED,
};
_Static_assert(ABI_PROC_NULL == MR_PROC_NULL && ABI_ANY_SOURCE == MR_ANY_SOURCE && ABI_ROOT == MR_ROOT &&
                   ABI_ANY_TAG == MR_ANY_TAG && ABI_UNDEFINED == MR_UNDEFINED,
               "the same numbers");

/* A null pointer, or MPI_IN_PLACE: (void *)-1. */
static inline bool abi_no_address(const void *buf)
{
    return (uintptr_t)buf + 1 <= 1;
}

/* ---- modes, assertions, kinds ---- */

static inline unsigned abi_amode_in(int amode)
{
    return (unsigned)amode;
}

static inline int abi_amode_out(unsigned amode)
{
    return (int)amode;
}
_Static_assert(MPI_MODE_CREATE == MR_FILE_CREATE && MPI_MODE_RDONLY == MR_FILE_RDONLY &&
                   MPI_MODE_WRONLY == MR_FILE_WRONLY && MPI_MODE_RDWR == MR_FILE_RDWR &&
                   MPI_MODE_DELETE_ON_CLOSE == MR_FILE_DELETE_ON_CLOSE && MPI_MODE_UNIQUE_OPEN == MR_FILE_UNIQUE_OPEN &&
                   MPI_MODE_EXCL == MR_FILE_EXCL && MPI_MODE_APPEND == MR_FILE_APPEND &&
                   MPI_MODE_SEQUENTIAL == MR_FILE_SEQUENTIAL,
               "the modes are the same numbers");

/* As numbers of rma/. */
static inline unsigned abi_assertions(int assert)
{
    return (unsigned)assert / MPI_MODE_NOCHECK;
}
_Static_assert(MPI_MODE_NOCHECK == 1024 && MPI_MODE_NOSTORE == 2048 && MPI_MODE_NOPUT == 4096 &&
                   MPI_MODE_NOPRECEDE == 8192 && MPI_MODE_NOSUCCEED == 16384,
               "in this order");

static inline int abi_flavor(enum mr_win_flavor flavor)
{
    return (int)flavor;
}
_Static_assert((int)MPI_WIN_FLAVOR_CREATE == MR_WIN_CREATE && (int)MPI_WIN_FLAVOR_SHARED == MR_WIN_SHARED, "the same");

enum {
    ABI_SPLIT_NEIGHBORHOOD = MPIX_COMM_TYPE_NEIGHBORHOOD,
    ABI_INFO_KEY_MOST = MPI_MAX_INFO_KEY, /* characters */
    ABI_INFO_VALUE_MOST = MPI_MAX_INFO_VAL,
    ABI_STRINGTAG_MOST = MPI_MAX_STRINGTAG_LEN,
};

/* ---- the tool information interface: what its handles point to ---- */

#define abi_t_enum         MPIR_T_enum_s
#define abi_t_cvar_handle  MPIR_T_cvar_handle_s
#define abi_t_pvar_handle  MPIR_T_pvar_handle_s
#define abi_t_pvar_session MPIR_T_pvar_session_s

#endif
