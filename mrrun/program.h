/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of a program, from its files, before it runs. */
#ifndef MRRUN_PROGRAM_H
#define MRRUN_PROGRAM_H

#include "libmrmpi/verbs/memory/objects.h"

/*
 * The allocators among the program and its libraries, as listed by the loader with that environment, preloaded
 * libraries included. Returns NULL, or the reason of a failure. The program itself is not started.
 */
const char *program_allocators(const char *name, char *const *env, struct mr_allocators *out);

enum program_mpi {
    PROGRAM_WITHOUT_MPI, /* or a script, or a statically linked program */
    PROGRAM_WITH_OURS,
    PROGRAM_WITH_OTHER,
};

/*
 * The MPI that a program (its path) is linked with, as found by its loader. For another MPI, *text is the rest of a
 * sentence about the program.
 */
enum program_mpi program_find_mpi(const char *path, char *const *env, const char *lib_dir, char *text, size_t cap);

#endif
