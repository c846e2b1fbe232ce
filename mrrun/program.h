/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program's files tell of it before it runs. */
#ifndef MRRUN_PROGRAM_H
#define MRRUN_PROGRAM_H

#include "libmrmpi/verbs/memory/objects.h"

/*
 * The allocators among the program and its libraries, as the loader lists them with that environment: preloaded ones
 * too. NULL, or why that is not known. The program itself is not started.
 */
const char *program_allocators(const char *name, char *const *env, struct mr_allocators *out);

enum program_mpi {
    PROGRAM_WITHOUT_MPI, /* or a script, or one that is linked statically */
    PROGRAM_WITH_OURS,
    PROGRAM_WITH_OTHER,
};

/*
 * Whose MPI a program (its path) is linked with, by what its loader finds. If it is another one, *text says so, as the
 * rest of a sentence about the program.
 */
enum program_mpi program_find_mpi(const char *path, char *const *env, const char *lib_dir, char *text, size_t cap);

#endif
