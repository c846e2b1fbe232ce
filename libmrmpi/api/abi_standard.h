/* SPDX-License-Identifier: BSD-3-Clause */
/* Particulars of the standard's binary interface (MPI-5.0 chapter 20): part of interface.h. */
#ifndef MRMPI_API_ABI_STANDARD_H
#define MRMPI_API_ABI_STANDARD_H

#include "libmrmpi/api/interface.h"

#include <string.h>

/* ---- handles are pointers that lead nowhere: the numbers, those of MPI's objects below 0x1000 ---- */

static inline int abi_number_of(const void *h)
{
    return (int)(uint32_t)(uintptr_t)h;
}
#define abi_number(h)       abi_number_of(h)
#define abi_handle(type, n) ((type)(uintptr_t)(uint32_t)(n))

/* ---- built-in objects by their handles ---- */

enum { ABI_TYPE_FIRST = 0x200, ABI_TYPES = 0x100, ABI_OP_FIRST = 0x20, ABI_OPS = 0x20 };

extern struct mr_type *const abi_basics[ABI_TYPES]; /* NULL: no such type, or the compilers have none */
extern const uint8_t abi_basic_sizes[ABI_TYPES];
extern struct mr_op *const abi_ops[ABI_OPS];

/* The built-in type of a handle, NULL if it is none. */
static inline struct mr_type *abi_basic(MPI_Datatype h)
{
    const uintptr_t i = (uintptr_t)h - ABI_TYPE_FIRST;
    return likely(i < ABI_TYPES) ? abi_basics[i] : NULL;
}

/* 0: not supported */
static inline size_t abi_basic_bytes(MPI_Datatype h)
{
    return abi_basic_sizes[(uintptr_t)h - ABI_TYPE_FIRST];
}

static inline struct mr_op *abi_builtin_op(MPI_Op h)
{
    const uintptr_t i = (uintptr_t)h - ABI_OP_FIRST;
    return likely(i < ABI_OPS) ? abi_ops[i] : NULL;
}

static inline struct mr_errhandler *abi_builtin_errhandler(MPI_Errhandler h)
{
    if (h == MPI_ERRORS_ARE_FATAL)
        return &mr_errhandler_fatal;
    if (h == MPI_ERRORS_RETURN)
        return &mr_errhandler_return;
    return h == MPI_ERRORS_ABORT ? &mr_errhandler_abort : NULL;
}

/* ---- ranks, tags, addresses ---- */

/* A permutation of the negative numbers -1 to -4, so that messages can tell the program's number. */
static inline int abi_special_rank_in(int rank)
{
    switch (rank) {
    case MPI_ANY_SOURCE:
        return MR_ANY_SOURCE;
    case MPI_PROC_NULL:
        return MR_PROC_NULL;
    case MPI_ROOT:
        return MR_ROOT;
    case -2: /* none of the program's */
        return -4;
    default:
        return rank;
    }
}

static inline int abi_special_rank_out(int rank)
{
    switch (rank) {
    case MR_ANY_SOURCE:
        return MPI_ANY_SOURCE;
    case MR_PROC_NULL:
        return MPI_PROC_NULL;
    case MR_ROOT:
        return MPI_ROOT;
    case -4:
        return -2;
    default:
        return rank;
    }
}

static inline int abi_rank_in(int rank)
{
    return likely(rank >= 0) ? rank : abi_special_rank_in(rank);
}

static inline int abi_rank_out(int rank)
{
    return likely(rank >= 0) ? rank : abi_special_rank_out(rank);
}

/* -1 and -2 change places. */
static inline int abi_tag_in(int tag)
{
    return likely(tag >= 0) || tag < -2 ? tag : -3 - tag;
}

static inline int abi_tag_out(int tag)
{
    return abi_tag_in(tag);
}
_Static_assert(MPI_ANY_TAG + MR_ANY_TAG == -3 && MPI_UNDEFINED == MR_UNDEFINED, "numbers of tags");

/* MPI_BOTTOM or MPI_IN_PLACE. */
static inline bool abi_no_address(const void *buf)
{
    return (uintptr_t)buf <= 1;
}

/* ---- statuses ---- */

/* The internal fields: the count of bytes in two, and whether the operation was cancelled. */
static inline void abi_status_set_bytes(MPI_Status *st, uint64_t bytes, bool cancelled)
{
    memcpy(st->MPI_internal, &bytes, sizeof(bytes));
    st->MPI_internal[2] = cancelled;
}

static inline uint64_t abi_status_bytes(const MPI_Status *st)
{
    uint64_t bytes;
    memcpy(&bytes, st->MPI_internal, sizeof(bytes));
    return bytes;
}

static inline bool abi_status_cancelled(const MPI_Status *st)
{
    return st->MPI_internal[2];
}

static inline void abi_status_set_peer(MPI_Status *st, int source, int tag)
{
    const bool special = unlikely((source | tag) < 0);
    st->MPI_SOURCE = special ? abi_rank_out(source) : source;
    st->MPI_TAG = special ? abi_tag_out(tag) : tag;
}

/* MPI_STATUS_IGNORE is a null pointer: nothing is missing. */
static inline bool abi_no_status(const MPI_Status *st)
{
    return false;
}

/* A status without its error, which is none, and not cancelled. */
struct abi_kept_status {
    int source, tag; /* the program's numbers */
    uint64_t bytes;
};

static inline void abi_keep_status(struct abi_kept_status *k, const struct mr_status *s)
{
    const bool special = unlikely((s->source | s->tag) < 0);
    k->source = special ? abi_rank_out(s->source) : s->source;
    k->tag = special ? abi_tag_out(s->tag) : s->tag;
    k->bytes = s->bytes;
}

static inline void abi_give_status(MPI_Status *st, const struct abi_kept_status *k)
{
    st->MPI_SOURCE = k->source;
    st->MPI_TAG = k->tag;
    abi_status_set_bytes(st, k->bytes, false);
}

static inline struct mr_status abi_kept_status(const struct abi_kept_status *k)
{
    return (struct mr_status){.source = abi_rank_in(k->source), .tag = abi_tag_in(k->tag), .bytes = k->bytes};
}

/* ---- modes, assertions, kinds (abi_standard.c) ---- */

unsigned abi_amode_in(int amode); /* unknown bits stay unknown */
int abi_amode_out(unsigned amode);
unsigned abi_assertions(int assert); /* as numbers of rma/ */

static inline int abi_flavor(enum mr_win_flavor flavor)
{
    return MPI_WIN_FLAVOR_CREATE + (int)flavor - MR_WIN_CREATE;
}
_Static_assert(MPI_WIN_FLAVOR_SHARED - MPI_WIN_FLAVOR_CREATE == MR_WIN_SHARED - MR_WIN_CREATE &&
                   MPI_WIN_FLAVOR_ALLOCATE == MPI_WIN_FLAVOR_CREATE + 1 &&
                   MPI_WIN_FLAVOR_DYNAMIC == MPI_WIN_FLAVOR_CREATE + 2,
               "in this order");

enum {
    ABI_SPLIT_NEIGHBORHOOD = INT32_MIN, /* there is none */
    /* characters without the end: programs have arrays of the standard's sizes */
    ABI_INFO_KEY_MOST = MPI_MAX_INFO_KEY - 1,
    ABI_INFO_VALUE_MOST = MPI_MAX_INFO_VAL - 1,
    ABI_STRINGTAG_MOST = MPI_MAX_STRINGTAG_LEN - 1,
};

/* ---- the tool information interface: what its handles point to ---- */

#define abi_t_enum         MPI_ABI_T_enum
#define abi_t_cvar_handle  MPI_ABI_T_cvar_handle
#define abi_t_pvar_handle  MPI_ABI_T_pvar_handle
#define abi_t_pvar_session MPI_ABI_T_pvar_session

#endif
