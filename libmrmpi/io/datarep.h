/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data representations of files (MPI-4.1 section 14.5): the standard's three, and those that a program has registered.
 * A representation lives until the end of MPI. In a file, types have the representation's sizes (core/external.c).
 *
 * The sizes of a program's representation come from a function of the program, which is asked once for each basic type:
 * mr_datarep_measure() comes before all questions about a type. All functions need the library's lock.
 */
#ifndef MRMPI_IO_DATAREP_H
#define MRMPI_IO_DATAREP_H

#include "libmrmpi/core/core.h"

struct mr_datarep;
extern const struct mr_datarep *const mr_datarep_native;

/* A program's functions, and their callers in the ABI shell. */
struct mr_datarep_calls {
    mr_user_fn read, write; /* NULL: data is in the file as in memory */
    mr_user_fn extent;
    void *extra;
    int64_t items_most; /* in a call of read or write */
    /* The bytes of a basic type in a file. Returns the function's code. */
    int (*call_extent)(const struct mr_datarep_calls *calls, const struct mr_type *basic, int64_t *bytes);
    /* Converts `items` entries of the typemap of buf's elements, from number `position` on. Returns the function's
     * code. */
    int (*call_convert)(const struct mr_datarep_calls *calls, bool write, void *buf, struct mr_type *type,
                        int64_t items, void *file, int64_t position);
};

/* NULL: there is none of this name. */
const struct mr_datarep *mr_datarep_find(const char *name);
/* MR_ERR_DUP_DATAREP: there is one of this name. */
enum mr_err mr_datarep_register(const char *name, const struct mr_datarep_calls *calls);
void mr_datarep_finalize(void);

const char *mr_datarep_name(const struct mr_datarep *d);
/* Equal names have equal numbers: members of a file compare them. */
uint64_t mr_datarep_number(const struct mr_datarep *d);
/* MR_ERR_CONVERSION: the program's function fails, or gives no size. */
enum mr_err mr_datarep_measure(const struct mr_datarep *d, const struct mr_type *t);
size_t mr_datarep_size(const struct mr_datarep *d, const struct mr_type *t); /* bytes of an element in a file */
/* The type of the same data in a file. A reference for the caller; NULL: no memory. */
struct mr_type *mr_datarep_type(const struct mr_datarep *d, struct mr_type *t);
/* Bytes in the file are not those in memory. */
bool mr_datarep_converts(const struct mr_datarep *d);
/* count elements in memory to their bytes in the file, or back. MR_ERR_CONVERSION: the program's function fails. */
enum mr_err mr_datarep_to_file(const struct mr_datarep *d, const void *buf, size_t count, struct mr_type *t,
                               char *file);
enum mr_err mr_datarep_from_file(const struct mr_datarep *d, void *buf, size_t count, struct mr_type *t,
                                 const char *file);

#endif
