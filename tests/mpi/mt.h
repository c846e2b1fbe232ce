/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the conformance programs: checks that print their place and end the job. Without errors, a program prints
 * nothing.
 */
#ifndef MT_H
#define MT_H

#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "rank %d of %d: %s:%d: not so: %s\n", rank, size, __FILE__, __LINE__, #what);              \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

/* CHECK with the two numbers */
#define EQ(got, want)                                                                                                  \
    do {                                                                                                               \
        long long g_ = (long long)(got), w_ = (long long)(want);                                                       \
        if (g_ != w_) {                                                                                                \
            fprintf(stderr, "rank %d of %d: %s:%d: %s is %lld, not %lld\n", rank, size, __FILE__, __LINE__, #got, g_,  \
                    w_);                                                                                               \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

static inline void mt_begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline int mt_end(void)
{
    MPI_Finalize();
    return 0;
}

#endif
