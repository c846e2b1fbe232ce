/* SPDX-License-Identifier: BSD-3-Clause */
/* Alltoall: Bruck's for small blocks among many, all at once in the middle, a few peers at a time for large blocks. */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/select.h"

#include <string.h>

enum { PAIRWISE_WINDOW = 4 }; /* peers exchanged with at a time */

/*
 * Step 1: flat[i] = my block for rank (r + i). Step 2: in round k every block whose index has bit k moves on by k
 * ranks. Step 3: flat[i] is now rank (r - i)'s block for me.
 */
static void bruck_alltoall(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                           size_t ocount, struct mr_type *ot, struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    size_t block = ocount * ot->size, half = (size_t)(p + 1) / 2 * block;
    char *flat = mr_schedule_temp(s, (size_t)p * block), *give = mr_schedule_temp(s, half),
         *take = mr_schedule_temp(s, half);
    size_t first = (size_t)(p - r);
    mr_schedule_copy(s, mr_at(in, (size_t)r * icount, it), first * icount, it, flat, first * block, mr_type_byte);
    if (r)
        mr_schedule_copy(s, in, (size_t)r * icount, it, flat + first * block, (size_t)r * block, mr_type_byte);
    for (int k = 1; k < p; k <<= 1) {
        size_t n = 0;
        for (int i = 0; i < p; i++)
            if (i & k)
                mr_schedule_copy(s, flat + (size_t)i * block, block, mr_type_byte, give + n++ * block, block,
                                 mr_type_byte);
        mr_schedule_recv(s, take, n * block, mr_type_byte, (r - k + p) % p);
        mr_schedule_send(s, give, n * block, mr_type_byte, (r + k) % p);
        mr_schedule_fence(s);
        n = 0;
        for (int i = 0; i < p; i++)
            if (i & k)
                mr_schedule_copy(s, take + n++ * block, block, mr_type_byte, flat + (size_t)i * block, block,
                                 mr_type_byte);
    }
    for (int i = 0; i < p; i++)
        mr_schedule_copy(s, flat + (size_t)i * block, block, mr_type_byte,
                         mr_at_mut(out, (size_t)((r - i + p) % p) * ocount, ot), ocount, ot);
}

/*
 * Along the row each rank gets the data of its column, and then each sends the data along its column: a message to each
 * node, instead of each rank.
 */
static enum mr_err hierarchical_alltoall(struct mr_grid *g, const void *in, size_t icount, struct mr_type *it,
                                         void *out, size_t ocount, struct mr_type *ot)
{
    const struct mr_place *w = g->place;
    int n = w->nodes, k = w->each;
    if (in == MR_IN_PLACE) {
        in = out;
        icount = ocount;
        it = ot;
    }
    size_t block = ocount * ot->size, gives = icount * it->size, most = block > gives ? block : gives;
    char *one = mr_grid_scratch(g, 2 * most * (size_t)(n * k)), *other = one + most * (size_t)(n * k);
    for (int i = 0; i < n * k; i++)
        mr_type_copy(mr_at(in, (size_t)mr_place_rank(w, i % n, i / n) * icount, it), icount, it,
                     one + (size_t)i * gives, gives, mr_type_byte);
    enum mr_err err = mr_node_alltoall(g->row->node, one, gives * (size_t)n, mr_type_byte, other, block * (size_t)n,
                                       mr_type_byte),
                built;
    for (int i = 0; i < n * k; i++)
        memcpy(one + (size_t)i * block, other + (size_t)(i % k * n + i / k) * block, block);
    struct mr_schedule *s = MR_COLL_AT_ONCE;
    built =
        mr_coll_alltoall(one, block * (size_t)k, mr_type_byte, other, block * (size_t)k, mr_type_byte, g->column, &s);
    err = mr_coll_run_after(err, built, s);
    for (int i = 0; !err && i < n * k; i++)
        mr_type_copy(other + (size_t)i * block, block, mr_type_byte, mr_at_mut(out, (size_t)w->rank[i] * ocount, ot),
                     ocount, ot);
    return err;
}

enum mr_err mr_coll_alltoall(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                             struct mr_type *ot, struct mr_comm *c, struct mr_schedule **built)
{
    size_t bytes = ocount * ot->size;
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_ALLTOALL, bytes, NULL, c, built);
    if (mode.grid)
        return hierarchical_alltoall(mode.grid, in, icount, it, out, ocount, ot);
    if (mode.node)
        return mr_node_alltoall(mode.node, in, icount, it, out, ocount, ot);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, it);
    mr_schedule_hold_type(s, ot);
    int p = c->size, r = c->rank;
    if (mr_comm_is_inter(c)) {
        mr_inter_alltoall(s, &(struct mr_vec){.buf = in, .each = icount, .type = it},
                          &(struct mr_vec){.buf = out, .each = ocount, .type = ot}, c);
        return mr_schedule_built(s, built);
    }
    if (bytes == 0)
        return mr_schedule_built(s, built);
    if (in == MR_IN_PLACE) { /* data to send must survive the receives */
        char *copy = mr_schedule_temp(s, (size_t)p * bytes);
        mr_schedule_copy(s, out, (size_t)p * ocount, ot, copy, (size_t)p * bytes, mr_type_byte);
        in = copy;
        icount = bytes;
        it = mr_type_byte;
    }
    enum mr_alg alg = mr_coll_select(MR_COLL_ALLTOALL, bytes, p, 0);
    if (alg == MR_ALG_BRUCK) {
        bruck_alltoall(s, in, icount, it, out, ocount, ot, c);
        return mr_schedule_built(s, built);
    }
    int window = alg == MR_ALG_PAIRWISE ? PAIRWISE_WINDOW : p;
    mr_coll_crowd(s, window < p ? window : p - 1);
    for (int k = 1; k < p; k += window) {
        int end = k + window < p ? k + window : p;
        if (k > 1)
            mr_schedule_fence(s);
        for (int j = k; j < end; j++)
            mr_schedule_recv(s, mr_at_mut(out, (size_t)((r - j + p) % p) * ocount, ot), ocount, ot, (r - j + p) % p);
        for (int j = k; j < end; j++)
            mr_schedule_send(s, mr_at(in, (size_t)((r + j) % p) * icount, it), icount, it, (r + j) % p);
    }
    mr_schedule_copy(s, mr_at(in, (size_t)r * icount, it), icount, it, mr_at_mut(out, (size_t)r * ocount, ot), ocount,
                     ot);
    return mr_schedule_built(s, built);
}

static void hold_types(struct mr_schedule *s, const struct mr_vec *v, int p)
{
    if (v->types)
        for (int i = 0; i < p; i++)
            mr_schedule_hold_type(s, v->types[i]);
    else
        mr_schedule_hold_type(s, v->type);
}

/* In place: copies of the blocks to be sent. NULL when there is no memory. */
static char **copy_blocks(struct mr_schedule *s, const struct mr_vec *v, int p)
{
    size_t total = (size_t)p * sizeof(char *);
    for (int i = 0; i < p; i++)
        total += mr_vec_bytes(v, i);
    char **copies = mr_schedule_temp(s, total);
    if (mr_schedule_no_memory(s))
        return NULL;
    char *at = (char *)(copies + p);
    for (int i = 0; i < p; i++) {
        copies[i] = at;
        mr_schedule_copy(s, mr_vec_part(v, i), mr_vec_count(v, i), mr_vec_type(v, i), at, mr_vec_bytes(v, i),
                         mr_type_byte);
        at += mr_vec_bytes(v, i);
    }
    return copies;
}

/* later NULL: all blocks; else the blocks of marked ranks, and none for oneself. */
static void send_blocks(struct mr_schedule *s, const struct mr_vec *in, const struct mr_vec *out, const bool *later,
                        struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    bool in_place = in->buf == MR_IN_PLACE;
    const struct mr_vec *give = in_place ? out : in;
    hold_types(s, give, p);
    hold_types(s, out, p);
    char **copies = NULL;
    if (in_place && !(copies = copy_blocks(s, out, p)))
        return;
    for (int k = 1; k < p; k++) {
        int src = (r - k + p) % p;
        if (mr_vec_bytes(out, src) && (!later || later[src]))
            mr_schedule_recv(s, mr_vec_part(out, src), mr_vec_count(out, src), mr_vec_type(out, src), src);
    }
    for (int k = 1; k < p && (!later || later[r]); k++) {
        int to = (r + k) % p;
        size_t n = mr_vec_bytes(give, to);
        if (n && in_place)
            mr_schedule_send(s, copies[to], n, mr_type_byte, to);
        else if (n)
            mr_schedule_send(s, mr_vec_part(in, to), mr_vec_count(in, to), mr_vec_type(in, to), to);
    }
    if (!in_place && !later && mr_vec_bytes(in, r))
        mr_schedule_copy(s, mr_vec_part(in, r), mr_vec_count(in, r), mr_vec_type(in, r), mr_vec_part(out, r),
                         mr_vec_count(out, r), mr_vec_type(out, r));
}

static enum mr_err alltoallv_at_once(struct mr_node *n, const struct mr_vec *in, const struct mr_vec *out,
                                     struct mr_comm *c)
{
    bool later[MR_NODE_RANKS_MAX] = {0};
    enum mr_err err = mr_node_alltoallv(n, in, out, later);
    if (!mr_node_any(n, later))
        return err;
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_allow_less(s);
    send_blocks(s, in, out, later, c);
    enum mr_err built = mr_schedule_built(s, &s);
    return mr_coll_run_after(err, built, s);
}

enum mr_err mr_coll_alltoallv(const struct mr_vec *in, const struct mr_vec *out, struct mr_comm *c,
                              struct mr_schedule **built)
{
    struct mr_node *n = in->buf == MR_IN_PLACE ? NULL : mr_coll_mode_at_once(MR_COLL_ALLTOALL, 1, NULL, c, built).node;
    if (n)
        return alltoallv_at_once(n, in, out, c);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_allow_less(s);
    if (mr_comm_is_inter(c)) {
        hold_types(s, in, c->num_peers);
        hold_types(s, out, c->num_peers);
        mr_inter_alltoall(s, in, out, c);
    } else {
        send_blocks(s, in, out, NULL, c);
    }
    return mr_schedule_built(s, built);
}
