/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary interface of the library that the sources are compiled for. abi_mpich.h or abi_standard.h defines its
 * particulars under the same names: the form of handles and statuses, special ranks and addresses, error numbers,
 * modes, levels. The rest of api/ uses only these names and those of mpi.h.
 *
 * Handles have a number in both interfaces, an int (abi_number, abi_handle): objects of core/ keep the number.
 */
#ifndef MRMPI_API_INTERFACE_H
#define MRMPI_API_INTERFACE_H

#include <mpi.h>

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/io/io.h"
#include "libmrmpi/api/init/init.h"
#include "libmrmpi/p2p/p2p.h"
#include "libmrmpi/rma/rma.h"

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

/* ---- tables of the interface (abi_mpich.c, abi_standard.c) ---- */

extern const int abi_error_of[MR_ERR_LAST + 1];
const char *abi_error_name(enum mr_err err); /* of the class in mpi.h */
/* Advice for a program whose receive has stopped because a possible sender failed. */
extern const char abi_pending_hint[];
enum { ABI_USER_CLASS = 0x40000000 }; /* classes and codes that programs add are numbered from here */

enum abi_thread_level { ABI_SINGLE, ABI_FUNNELED, ABI_SERIALIZED, ABI_MULTIPLE, ABI_THREAD_LEVELS };
extern const int abi_thread_levels[ABI_THREAD_LEVELS];

extern const int abi_version[2]; /* of the standard's interface; -1: another one */
extern const char abi_library[];
extern const char abi_description[]; /* for MPI_Get_library_version */

void abi_init(void); /* gives the built-in objects their handles; after mr_init */

#ifdef MRMPI_ABI_STANDARD
#include "libmrmpi/api/abi_standard.h"
#else
#include "libmrmpi/api/abi_mpich.h"
#endif

#endif
