/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of another MPI among the processes of ranks: a rank may be a script. Such a program finds no known launcher,
 * runs as a job of its own, and ends well, so only its libraries reveal the error.
 */
#ifndef MRRUN_STRANGERS_H
#define MRRUN_STRANGERS_H

#include <stdbool.h>

#include <sys/types.h>

struct stranger {
    int index; /* of its group */
    pid_t pid;
    char program[64], library[64];
    const char *whose; /* as others_library() says it; NULL: of MPICH's interface, and not ours */
};

/*
 * Looks at the processes of these groups (their leaders, 0: none) that this mrrun's job (the name of its PMIx
 * namespace) is the last launcher of. lib_dir: where our library is.
 */
bool strangers_find(const pid_t *leader, int count, const char *nspace, const char *lib_dir, struct stranger *out);

#endif
