/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The selection table. Small messages want few steps (log p), large ones little data on the way (2 n (p-1)/p); in
 * between, what sends everything at once keeps the network busy. The last row of each collective always matches.
 */
#include "libmrmpi/coll/select.h"

#include <stdint.h>

#define ANY SIZE_MAX
#define KiB *1024ul

static const struct rule {
    enum mr_coll coll;
    enum mr_alg alg;
    size_t bytes_max;
    int ranks_min;
    unsigned needs;
} rules[] = {
    {MR_COLL_BCAST, MR_ALG_BINOMIAL, 64 KiB, 0, 0},
    {MR_COLL_BCAST, MR_ALG_SCATTER_ALLGATHER, ANY, 4, MR_HAS_CONTIGUOUS},
    {MR_COLL_BCAST, MR_ALG_BINOMIAL, ANY, 0, 0},

    {MR_COLL_REDUCE, MR_ALG_BINOMIAL, 64 KiB, 0, 0},
    {MR_COLL_REDUCE, MR_ALG_RING, ANY, 4, MR_HAS_COMMUTATIVE},
    {MR_COLL_REDUCE, MR_ALG_BINOMIAL, ANY, 0, 0},

    {MR_COLL_ALLREDUCE, MR_ALG_RECURSIVE_DOUBLING, 16 KiB, 0, 0},
    {MR_COLL_ALLREDUCE, MR_ALG_RING, ANY, 2, MR_HAS_COMMUTATIVE},
    {MR_COLL_ALLREDUCE, MR_ALG_RECURSIVE_DOUBLING, ANY, 0, 0},

    {MR_COLL_GATHER, MR_ALG_BINOMIAL, 4 KiB, 5, 0},
    {MR_COLL_GATHER, MR_ALG_LINEAR, ANY, 0, 0},
    {MR_COLL_SCATTER, MR_ALG_BINOMIAL, 4 KiB, 5, 0},
    {MR_COLL_SCATTER, MR_ALG_LINEAR, ANY, 0, 0},

    {MR_COLL_ALLGATHER, MR_ALG_BRUCK, 2 KiB, 3, 0},
    {MR_COLL_ALLGATHER, MR_ALG_RING, ANY, 0, 0},
    {MR_COLL_ALLGATHERV, MR_ALG_SPREAD, 1 KiB, 0, 0},
    {MR_COLL_ALLGATHERV, MR_ALG_RING, ANY, 0, 0},

    {MR_COLL_ALLTOALL, MR_ALG_BRUCK, 256, 8, 0},
    {MR_COLL_ALLTOALL, MR_ALG_SPREAD, 32 KiB, 0, 0},
    {MR_COLL_ALLTOALL, MR_ALG_PAIRWISE, ANY, 0, 0},

    {MR_COLL_REDUCE_SCATTER, MR_ALG_PAIRWISE, ANY, 2, MR_HAS_COMMUTATIVE},
    {MR_COLL_REDUCE_SCATTER, MR_ALG_REDUCE_SCATTERV, ANY, 0, 0},
};

enum mr_alg mr_coll_select(enum mr_coll coll, size_t bytes, int ranks, unsigned has)
{
    const struct rule *r = rules;
    while (r->coll != coll || bytes > r->bytes_max || ranks < r->ranks_min || (r->needs & ~has))
        r++;
    return r->alg;
}
