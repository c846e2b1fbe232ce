/* SPDX-License-Identifier: BSD-3-Clause */
/* For the point-to-point programs: checks that print their place and end the job, and patterned buffers. */
#ifndef P2P_H
#define P2P_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "rank %d: %s:%d: not so: %s\n", rank, __FILE__, __LINE__, #what);                          \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)

static inline unsigned char pattern(size_t i, unsigned seed)
{
    return (unsigned char)(i * 131 + (i >> 8) * 17 + (i >> 20) * 29 + seed * 7 + 1);
}

static inline void fill(void *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)p)[i] = pattern(i, seed);
}

/* Without an early end, so the compiler compares many bytes at a time. */
static inline int holds(const void *p, size_t n, unsigned seed)
{
    unsigned char differ = 0;

    for (size_t i = 0; i < n; i++)
        differ |= ((const unsigned char *)p)[i] ^ pattern(i, seed);
    return !differ;
}

static inline void *room(size_t n)
{
    void *p = malloc(n ? n : 1);

    CHECK(p);
    return p;
}

static inline void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

#endif
