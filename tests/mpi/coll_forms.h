/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program of blocking collectives in other forms: with FORM set, MPI_Bcast and the others stand for the equivalent
 * nonblocking, persistent or large-count function. A persistent operation is started twice where this does not change
 * the result.
 */
#ifndef COLL_FORMS_H
#define COLL_FORMS_H

#include "mt.h"

#define NONBLOCKING      1
#define PERSISTENT       2
#define LARGE            3
#define LARGE_NONBLOCK   4
#define LARGE_PERSISTENT 5

static inline void wait_for(MPI_Request *q)
{
    MPI_Wait(q, MPI_STATUS_IGNORE);
    CHECK(*q == MPI_REQUEST_NULL);
}

static inline void start_and_free(MPI_Request *q, int again)
{
    MPI_Request was = *q;
    MPI_Wait(q, MPI_STATUS_IGNORE); /* inactive: returns at once */
    for (int i = 0; i <= again; i++) {
        MPI_Start(q);
        MPI_Wait(q, MPI_STATUS_IGNORE);
        CHECK(*q == was);
    }
    MPI_Request_free(q);
    CHECK(*q == MPI_REQUEST_NULL);
}

/* Wide copies of arrays of counts; they may go when the operation is done. */
#if FORM >= LARGE
typedef MPI_Count cnt;
typedef MPI_Aint dsp;
static int arrays_used, arrays_len; /* their length; 0: one element for each rank */
static inline void *array(void)
{
    static long arrays[4][64];
    CHECK(size <= 64);
    return arrays[arrays_used++ % 4];
}
static inline const cnt *counts_of(const int *a)
{
    cnt *w = a ? array() : NULL;
    for (int i = 0; a && i < (arrays_len ? arrays_len : size); i++)
        w[i] = a[i];
    return w;
}
static inline const dsp *disps_of(const int *a)
{
    dsp *w = a ? array() : NULL;
    for (int i = 0; a && i < (arrays_len ? arrays_len : size); i++)
        w[i] = a[i];
    return w;
}
#else
#define counts_of(a) (a)
#define disps_of(a)  (a)
#endif

#define FUTURE(call)                                                                                                   \
    MPI_Request q = MPI_REQUEST_NULL;                                                                                  \
    call;                                                                                                              \
    wait_for(&q)
#define RECORD(call, again)                                                                                            \
    MPI_Request q = MPI_REQUEST_NULL;                                                                                  \
    call;                                                                                                              \
    start_and_free(&q, again)

#if FORM == NONBLOCKING
#define CALL(name, iname, again, ...) FUTURE(MPI_##iname(__VA_ARGS__, &q))
#elif FORM == PERSISTENT
#define CALL(name, iname, again, ...) RECORD(MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &q), again)
#elif FORM == LARGE
#define CALL(name, iname, again, ...) MPI_##name##_c(__VA_ARGS__)
#elif FORM == LARGE_NONBLOCK
#define CALL(name, iname, again, ...) FUTURE(MPI_##iname##_c(__VA_ARGS__, &q))
#else
#define CALL(name, iname, again, ...) RECORD(MPI_##name##_init_c(__VA_ARGS__, MPI_INFO_NULL, &q), again)
#endif

/* the parameters of the functions */
#define A const void *a, int n, MPI_Datatype t
#define B void *b, int m, MPI_Datatype u
#define O MPI_Datatype t, MPI_Op op

#define FORM_OF(name, iname, params, again, ...)                                                                       \
    static inline int form_##name params                                                                               \
    {                                                                                                                  \
        CALL(name, iname, again, __VA_ARGS__);                                                                         \
        return MPI_SUCCESS;                                                                                            \
    }

/* no counts: unchanged */
static inline int form_Barrier(MPI_Comm c)
{
#if FORM == NONBLOCKING || FORM == LARGE_NONBLOCK
    FUTURE(MPI_Ibarrier(c, &q));
#elif FORM == PERSISTENT || FORM == LARGE_PERSISTENT
    RECORD(MPI_Barrier_init(c, MPI_INFO_NULL, &q), 1);
#else
    MPI_Barrier(c);
#endif
    return MPI_SUCCESS;
}

FORM_OF(Bcast, Ibcast, (B, int root, MPI_Comm c), 1, b, m, u, root, c)
FORM_OF(Reduce, Ireduce, (const void *a, void *b, int n, O, int root, MPI_Comm c), 0, a, b, n, t, op, root, c)
FORM_OF(Allreduce, Iallreduce, (const void *a, void *b, int n, O, MPI_Comm c), a != MPI_IN_PLACE, a, b, n, t, op, c)
FORM_OF(Scan, Iscan, (const void *a, void *b, int n, O, MPI_Comm c), a != MPI_IN_PLACE, a, b, n, t, op, c)
FORM_OF(Exscan, Iexscan, (const void *a, void *b, int n, O, MPI_Comm c), a != MPI_IN_PLACE, a, b, n, t, op, c)
FORM_OF(Reduce_scatter, Ireduce_scatter, (const void *a, void *b, const int *n, O, MPI_Comm c), a != MPI_IN_PLACE, a, b,
        counts_of(n), t, op, c)
FORM_OF(Reduce_scatter_block, Ireduce_scatter_block, (const void *a, void *b, int n, O, MPI_Comm c), a != MPI_IN_PLACE,
        a, b, n, t, op, c)
FORM_OF(Gather, Igather, (A, B, int root, MPI_Comm c), 1, a, n, t, b, m, u, root, c)
FORM_OF(Scatter, Iscatter, (A, B, int root, MPI_Comm c), 1, a, n, t, b, m, u, root, c)
FORM_OF(Gatherv, Igatherv, (A, void *b, const int *m, const int *d, MPI_Datatype u, int root, MPI_Comm c), 1, a, n, t,
        b, counts_of(m), disps_of(d), u, root, c)
FORM_OF(Scatterv, Iscatterv, (const void *a, const int *n, const int *d, MPI_Datatype t, B, int root, MPI_Comm c), 1, a,
        counts_of(n), disps_of(d), t, b, m, u, root, c)
FORM_OF(Allgather, Iallgather, (A, B, MPI_Comm c), 1, a, n, t, b, m, u, c)
FORM_OF(Allgatherv, Iallgatherv, (A, void *b, const int *m, const int *d, MPI_Datatype u, MPI_Comm c), 1, a, n, t, b,
        counts_of(m), disps_of(d), u, c)
FORM_OF(Alltoall, Ialltoall, (A, B, MPI_Comm c), a != MPI_IN_PLACE, a, n, t, b, m, u, c)
FORM_OF(Alltoallv, Ialltoallv,
        (const void *a, const int *n, const int *d, MPI_Datatype t, void *b, const int *m, const int *e, MPI_Datatype u,
         MPI_Comm c),
        a != MPI_IN_PLACE, a, counts_of(n), disps_of(d), t, b, counts_of(m), disps_of(e), u, c)
FORM_OF(Alltoallw, Ialltoallw,
        (const void *a, const int *n, const int *d, const MPI_Datatype *t, void *b, const int *m, const int *e,
         const MPI_Datatype *u, MPI_Comm c),
        a != MPI_IN_PLACE, a, counts_of(n), disps_of(d), t, b, counts_of(m), disps_of(e), u, c)

FORM_OF(Neighbor_allgather, Ineighbor_allgather, (A, B, MPI_Comm c), 1, a, n, t, b, m, u, c)
FORM_OF(Neighbor_allgatherv, Ineighbor_allgatherv, (A, void *b, const int *m, const int *d, MPI_Datatype u, MPI_Comm c),
        1, a, n, t, b, counts_of(m), disps_of(d), u, c)
FORM_OF(Neighbor_alltoall, Ineighbor_alltoall, (A, B, MPI_Comm c), 1, a, n, t, b, m, u, c)
FORM_OF(Neighbor_alltoallv, Ineighbor_alltoallv,
        (const void *a, const int *n, const int *d, MPI_Datatype t, void *b, const int *m, const int *e, MPI_Datatype u,
         MPI_Comm c),
        1, a, counts_of(n), disps_of(d), t, b, counts_of(m), disps_of(e), u, c)
FORM_OF(Neighbor_alltoallw, Ineighbor_alltoallw,
        (const void *a, const int *n, const MPI_Aint *d, const MPI_Datatype *t, void *b, const int *m,
         const MPI_Aint *e, const MPI_Datatype *u, MPI_Comm c),
        1, a, counts_of(n), d, t, b, counts_of(m), e, u, c)

#undef A
#undef B
#undef O

#define MPI_Barrier              form_Barrier
#define MPI_Bcast                form_Bcast
#define MPI_Reduce               form_Reduce
#define MPI_Allreduce            form_Allreduce
#define MPI_Scan                 form_Scan
#define MPI_Exscan               form_Exscan
#define MPI_Reduce_scatter       form_Reduce_scatter
#define MPI_Reduce_scatter_block form_Reduce_scatter_block
#define MPI_Gather               form_Gather
#define MPI_Scatter              form_Scatter
#define MPI_Gatherv              form_Gatherv
#define MPI_Scatterv             form_Scatterv
#define MPI_Allgather            form_Allgather
#define MPI_Allgatherv           form_Allgatherv
#define MPI_Alltoall             form_Alltoall
#define MPI_Alltoallv            form_Alltoallv
#define MPI_Alltoallw            form_Alltoallw
#define MPI_Neighbor_allgather   form_Neighbor_allgather
#define MPI_Neighbor_allgatherv  form_Neighbor_allgatherv
#define MPI_Neighbor_alltoall    form_Neighbor_alltoall
#define MPI_Neighbor_alltoallv   form_Neighbor_alltoallv
#define MPI_Neighbor_alltoallw   form_Neighbor_alltoallw

#endif
