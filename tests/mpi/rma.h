/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the programs about windows (MPI-4.1, chapter 12).
 *
 * A struct win is a window of any flavor; at_of(w, t, offset) is the displacement of a byte of rank t, for any flavor.
 * All ranks of w->comm make and free the window together. A way is one of the standard's four synchronizations, here
 * from all ranks to all: after way_close all operations are complete at all targets.
 */
#ifndef RMA_H
#define RMA_H

#include "mt.h"

#include <stdint.h>

enum flavor { CREATE, ALLOCATE, SHARED, DYNAMIC, FLAVORS };
enum way { FENCE, PSCW, LOCK, LOCK_ALL, WAYS };

struct win {
    MPI_Win w;
    MPI_Comm comm; /* of the window's ranks: MPI_COMM_WORLD, or ranks that share memory */
    int me, n;
    char *mem; /* this rank's part */
    MPI_Aint bytes;
    MPI_Aint *at; /* displacement of each rank's first byte */
    enum flavor flavor;
};

static inline int class_of(int code)
{
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static inline void *room(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    CHECK(p);
    return p;
}

/* All ranks: a window with this many bytes at each rank (each its own number), all of them 0. */
static inline void win_make_with(struct win *w, enum flavor flavor, MPI_Aint bytes, MPI_Info info)
{
    MPI_Aint at = 0;
    *w = (struct win){.comm = MPI_COMM_WORLD, .bytes = bytes, .flavor = flavor};
    if (flavor == SHARED)
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &w->comm);
    MPI_Comm_rank(w->comm, &w->me);
    MPI_Comm_size(w->comm, &w->n);
    if (flavor == CREATE || flavor == DYNAMIC)
        w->mem = room((size_t)bytes);
    switch (flavor) {
    case CREATE:
        MPI_Win_create(w->mem, bytes, 1, info, w->comm, &w->w);
        break;
    case ALLOCATE:
        MPI_Win_allocate(bytes, 1, info, w->comm, &w->mem, &w->w);
        break;
    case SHARED:
        MPI_Win_allocate_shared(bytes, 1, info, w->comm, &w->mem, &w->w);
        break;
    default:
        MPI_Win_create_dynamic(info, w->comm, &w->w);
        if (bytes)
            MPI_Win_attach(w->w, w->mem, bytes);
        MPI_Get_address(w->mem, &at);
    }
    w->at = room(sizeof(MPI_Aint) * (size_t)w->n);
    MPI_Allgather(&at, 1, MPI_AINT, w->at, 1, MPI_AINT, w->comm);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->me, 0, w->w);
    if (bytes)
        memset(w->mem, 0, (size_t)bytes);
    MPI_Win_unlock(w->me, w->w);
    MPI_Barrier(w->comm);
}

static inline void win_make(struct win *w, enum flavor flavor, MPI_Aint bytes)
{
    win_make_with(w, flavor, bytes, MPI_INFO_NULL);
}

static inline void win_free(struct win *w)
{
    if (w->flavor == DYNAMIC && w->bytes) {
        MPI_Barrier(w->comm);
        MPI_Win_detach(w->w, w->mem);
    }
    MPI_Win_free(&w->w);
    EQ(w->w, MPI_WIN_NULL);
    if (w->flavor == CREATE || w->flavor == DYNAMIC)
        free(w->mem);
    if (w->flavor == SHARED)
        MPI_Comm_free(&w->comm);
    free(w->at);
}

static inline MPI_Aint at_of(const struct win *w, int target, MPI_Aint offset)
{
    return MPI_Aint_add(w->at[target], offset);
}

/* Between these two the caller may load from and store to its own part. No epoch of others may conflict. */
static inline void own_open(const struct win *w)
{
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w->me, 0, w->w);
}

static inline void own_close(const struct win *w)
{
    MPI_Win_unlock(w->me, w->w);
}

/* All ranks: the caller's part becomes bytes of this value, before anybody goes on. */
static inline void own_set(const struct win *w, int value)
{
    MPI_Barrier(w->comm);
    own_open(w);
    if (w->bytes)
        memset(w->mem, value, (size_t)w->bytes);
    own_close(w);
    MPI_Barrier(w->comm);
}

/* All ranks. Stores to the own part before it are visible to the others' operations. */
static inline void way_open(enum way way, const struct win *w)
{
    MPI_Group g;
    switch (way) {
    case FENCE:
        MPI_Win_fence(0, w->w);
        break;
    case PSCW:
        MPI_Win_get_group(w->w, &g);
        MPI_Win_post(g, 0, w->w);
        MPI_Win_start(g, 0, w->w);
        MPI_Group_free(&g);
        break;
    case LOCK:
        MPI_Barrier(w->comm);
        for (int t = 0; t < w->n; t++)
            MPI_Win_lock(MPI_LOCK_SHARED, t, 0, w->w);
        break;
    default:
        MPI_Barrier(w->comm);
        MPI_Win_lock_all(0, w->w);
    }
}

static inline void way_close(enum way way, const struct win *w)
{
    switch (way) {
    case FENCE:
        MPI_Win_fence(0, w->w);
        break;
    case PSCW:
        MPI_Win_complete(w->w);
        MPI_Win_wait(w->w);
        break;
    case LOCK:
        for (int t = 0; t < w->n; t++)
            MPI_Win_unlock(t, w->w);
        MPI_Barrier(w->comm);
        break;
    default:
        MPI_Win_unlock_all(w->w);
        MPI_Barrier(w->comm);
    }
}

/* A sequence repeatable by its seed. */
static inline uint32_t next_of(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *state ^ *state >> 29;
    return (uint32_t)(x >> 32);
}

enum { BYTE_PERIOD = 251 }; /* of the bytes below */

/* Byte i of rank r's data in round k. */
static inline char byte_of(int r, int k, size_t i)
{
    return (char)(r * 31 + k * 17 + (int)(i % BYTE_PERIOD) * 3 + 1);
}

#endif
