/* SPDX-License-Identifier: BSD-3-Clause */
/* Cartesian topologies: row-major grids of ranks. */
#include "libmrmpi/core/objects.h"

#include <stdlib.h>
#include <string.h>

struct mr_topology *mr_cart_new(int ndims, const int *dims, const int *periods, int rank)
{
    struct mr_topology *t = calloc(1, sizeof(*t));
    int *room = calloc((size_t)(3 * ndims + 1), sizeof(*room));
    if (!t || !room) {
        free(t);
        free(room);
        return NULL;
    }
    *t = (struct mr_topology){ndims, room, room + ndims, room + 2 * ndims};
    for (int i = 0; i < ndims; i++) {
        t->dims[i] = dims[i];
        t->periods[i] = periods[i] != 0;
    }
    mr_cart_coords(t, rank, ndims, t->coords);
    return t;
}

struct mr_topology *mr_cart_dup(const struct mr_topology *t)
{
    struct mr_topology *dup = mr_cart_new(t->ndims, t->dims, t->periods, 0);
    if (dup)
        memcpy(dup->coords, t->coords, (size_t)t->ndims * sizeof(int));
    return dup;
}

void mr_cart_free(struct mr_topology *t)
{
    if (t)
        free(t->dims);
    free(t);
}

int mr_cart_rank(const struct mr_topology *t, const int *coords)
{
    int rank = 0;
    for (int i = 0; i < t->ndims; i++) {
        int c = coords[i], d = t->dims[i];
        if (t->periods[i])
            c = (c % d + d) % d;
        else if (c < 0 || c >= d)
            return MR_PROC_NULL;
        rank = rank * d + c;
    }
    return rank;
}

void mr_cart_coords(const struct mr_topology *t, int rank, int maxdims, int *coords)
{
    for (int i = t->ndims - 1; i >= 0; i--) {
        if (i < maxdims)
            coords[i] = rank % t->dims[i];
        rank /= t->dims[i];
    }
}

static int descending(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

/* Give each prime factor, from the largest, to the free dimension that is smallest so far. */
enum mr_err mr_dims_create(int nnodes, int ndims, int *dims)
{
    int fixed = 1, num_free = 0;
    for (int i = 0; i < ndims; i++) {
        if (dims[i] < 0)
            return mr_fail(MR_ERR_DIMS, "dims[%d] is %d", i, dims[i]);
        if (dims[i] == 0)
            num_free++;
        else
            fixed *= dims[i];
    }
    if (fixed == 0 || nnodes % fixed || (num_free == 0 && fixed != nnodes))
        return mr_fail(MR_ERR_DIMS, "%d processes do not fill the %d that dims[] fixes", nnodes, fixed);
    if (num_free == 0)
        return MR_SUCCESS;
    int *got = malloc((size_t)num_free * sizeof(*got)), factors[32], nf = 0, rest = nnodes / fixed;
    if (!got)
        return MR_ERR_NO_MEM;
    for (int p = 2; (long)p * p <= rest; p++)
        for (; rest % p == 0; rest /= p)
            factors[nf++] = p;
    if (rest > 1)
        factors[nf++] = rest;
    for (int i = 0; i < num_free; i++)
        got[i] = 1;
    while (nf--) {
        int small = 0;
        for (int i = 1; i < num_free; i++)
            if (got[i] < got[small])
                small = i;
        got[small] *= factors[nf];
    }
    qsort(got, (size_t)num_free, sizeof(*got), descending);
    for (int i = 0, k = 0; i < ndims; i++)
        if (dims[i] == 0)
            dims[i] = got[k++];
    free(got);
    return MR_SUCCESS;
}
