/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Features missing in this version: processes started by a program. The functions exist, so that programs with calls to
 * them link and run; each gives MPI_ERR_UNSUPPORTED_OPERATION to the error handler of its communicator, and leaves null
 * handles in its results.
 */
#include "libmrmpi/api/api.h"

#include "libmrmpi/api/life.h"

#define NONE(out, value)                                                                                               \
    if (out)                                                                                                           \
        *(out) = (value);

static enum mr_err absent(void)
{
    return mr_fail(MR_ERR_UNSUPPORTED_OPERATION, "mrmpi %s does not support this function", MRMPI_VERSION);
}

#define BODY_COMM(...)                                                                                                 \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        API_ENTER();                                                                                                   \
        __VA_ARGS__                                                                                                    \
        CHECK(api_comm(comm, &c));                                                                                     \
        err = absent();                                                                                                \
        API_LEAVE(c);                                                                                                  \
    }
#define ABSENT_COMM(name, args, ...) MPI_FN(int, name, args) BODY_COMM(__VA_ARGS__)

/* ---- Dynamic processes (chapter 11) ---- */

ABSENT_COMM(Comm_spawn,
            (const char *command, char *argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
             MPI_Comm *intercomm, int array_of_errcodes[]),
            NONE(intercomm, MPI_COMM_NULL))
ABSENT_COMM(Comm_spawn_multiple,
            (int count, char *array_of_commands[], char **array_of_argv[], const int array_of_maxprocs[],
             const MPI_Info array_of_info[], int root, MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[]),
            NONE(intercomm, MPI_COMM_NULL))
