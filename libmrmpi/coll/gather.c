/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gather and scatter: binomial trees that carry packed blocks when blocks are small, else directly to and from the
 * root. Trees count ranks from the root (v); the subtree of v is v .. v + mask - 1, where mask is v's lowest set bit.
 */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/select.h"

/* A new schedule that holds both types (NULL: none). NULL: no memory. */
static struct mr_schedule *schedule_of(struct mr_comm *c, struct mr_type *in, struct mr_type *out)
{
    struct mr_schedule *s = mr_schedule_new(c);
    if (s) {
        mr_schedule_hold_type(s, in);
        mr_schedule_hold_type(s, out);
    }
    return s;
}

/* Blocks in order of v at flat, from or to the user's buffer in order of ranks: two runs. */
static void unrotate(struct mr_schedule *s, const char *flat, size_t block, void *out, size_t count, struct mr_type *t,
                     int root, int p)
{
    size_t first = (size_t)(p - root), rest = (size_t)root;
    mr_schedule_copy(s, flat, first * block, mr_type_byte, mr_at_mut(out, (size_t)root * count, t), first * count, t);
    if (rest)
        mr_schedule_copy(s, flat + first * block, rest * block, mr_type_byte, out, rest * count, t);
}

static void rotate(struct mr_schedule *s, const void *in, size_t count, struct mr_type *t, char *flat, size_t block,
                   int root, int p)
{
    size_t first = (size_t)(p - root), rest = (size_t)root;
    mr_schedule_copy(s, mr_at(in, (size_t)root * count, t), first * count, t, flat, first * block, mr_type_byte);
    if (rest)
        mr_schedule_copy(s, in, rest * count, t, flat + first * block, rest * block, mr_type_byte);
}

static int subtree(int v, int p)
{
    int mask = 1;
    while (mask < p && !(v & mask))
        mask <<= 1;
    return mask;
}

static void gather_binomial(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                            size_t ocount, struct mr_type *ot, int root, struct mr_comm *c)
{
    int p = c->size, v = (c->rank - root + p) % p, top = subtree(v, p);
    size_t block = v ? icount * it->size : ocount * ot->size;
    int below = v + top < p ? top : p - v;
    char *flat = mr_schedule_temp(s, (size_t)below * block);
    if (in == MR_IN_PLACE)
        mr_schedule_copy(s, mr_at(out, (size_t)root * ocount, ot), ocount, ot, flat, block, mr_type_byte);
    else
        mr_schedule_copy(s, in, icount, it, flat, block, mr_type_byte);
    for (int mask = 1; mask < top; mask <<= 1) {
        if (v + mask >= p)
            break;
        int n = v + 2 * mask < p ? mask : p - v - mask;
        mr_schedule_recv(s, flat + (size_t)mask * block, (size_t)n * block, mr_type_byte, (v + mask + root) % p);
    }
    mr_schedule_fence(s);
    if (v)
        mr_schedule_send(s, flat, (size_t)below * block, mr_type_byte, (v - top + root) % p);
    else
        unrotate(s, flat, block, out, ocount, ot, root, p);
}

static void gather_linear(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                          size_t ocount, struct mr_type *ot, int root, struct mr_comm *c)
{
    mr_schedule_crowd(s, c->size - 1);
    if (c->rank != root) {
        mr_schedule_send(s, in, icount, it, root);
        return;
    }
    for (int i = 0; i < c->size; i++)
        if (i != root)
            mr_schedule_recv(s, mr_at_mut(out, (size_t)i * ocount, ot), ocount, ot, i);
    if (in != MR_IN_PLACE)
        mr_schedule_copy(s, in, icount, it, mr_at_mut(out, (size_t)root * ocount, ot), ocount, ot);
}

/* Two levels: what a row has passes through its rank of the root's column. */
struct levels {
    struct mr_grid_spot root;
    bool holds, is_root; /* this rank is in the root's column; is the root */
    size_t block, part;  /* bytes of a rank, and of a row */
    char *row, *all;     /* packed blocks of this row, where it holds them; of all ranks, at the root */
};

static struct levels levels_of(struct mr_grid *g, int root, size_t block)
{
    const struct mr_place *w = g->place;
    struct levels l = {.root = mr_grid_find(g, root), .block = block, .part = block * (size_t)w->each};
    l.holds = w->local == l.root.local;
    l.is_root = l.holds && w->node == l.root.node;
    l.row = l.holds ? mr_grid_scratch(g, l.part * (l.is_root ? (size_t)w->nodes + 1 : 1)) : NULL;
    l.all = l.is_root ? l.row + l.part : NULL;
    return l;
}

/* Each row gathers at its rank of the root's column, and the column at the root. */
static enum mr_err gather_hierarchical(struct mr_grid *g, size_t bytes, const void *in, size_t icount,
                                       struct mr_type *it, void *out, size_t ocount, struct mr_type *ot, int root)
{
    const struct mr_place *w = g->place;
    struct levels l = levels_of(g, root, bytes);
    if (in == MR_IN_PLACE) {
        in = mr_at(out, (size_t)root * ocount, ot);
        icount = ocount;
        it = ot;
    }
    enum mr_err err = mr_node_gather(g->row->node, in, icount, it, l.row, bytes, mr_type_byte, l.root.local), built;
    if (!l.holds)
        return err;
    struct mr_schedule *s = MR_COLL_AT_ONCE;
    built = mr_coll_gather(l.row, l.part, mr_type_byte, l.all, l.part, mr_type_byte, l.root.node, g->column, &s);
    err = mr_coll_run_after(err, built, s);
    for (int i = 0; l.is_root && !err && i < w->nodes * w->each; i++)
        mr_type_copy(l.all + (size_t)i * bytes, bytes, mr_type_byte, mr_at_mut(out, (size_t)w->rank[i] * ocount, ot),
                     ocount, ot);
    return err;
}

enum mr_err mr_coll_gather(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                           struct mr_type *ot, int root, struct mr_comm *c, struct mr_schedule **built)
{
    size_t bytes = c->rank == root ? ocount * ot->size : icount * it->size;
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_GATHER, bytes, NULL, c, built);
    if (mode.grid)
        return gather_hierarchical(mode.grid, bytes, in, icount, it, out, ocount, ot, root);
    if (mode.node)
        return mr_node_gather(mode.node, in, icount, it, out, ocount, ot, root);
    struct mr_schedule *s = schedule_of(c, it, ot);
    if (!s)
        return MR_ERR_NO_MEM;
    if (mr_comm_is_inter(c))
        mr_inter_gather(s, in, icount, it, &(struct mr_vec){.buf = out, .each = ocount, .type = ot}, root, c);
    else if (bytes && mr_coll_select(MR_COLL_GATHER, bytes, c->size, 0) == MR_ALG_BINOMIAL)
        gather_binomial(s, in, icount, it, out, ocount, ot, root, c);
    else if (bytes)
        gather_linear(s, in, icount, it, out, ocount, ot, root, c);
    return mr_schedule_built(s, built);
}

/* Are counts of all ranks, and their type, given at this rank? */
static bool counts_here(const struct mr_comm *c, int root)
{
    return mr_comm_is_inter(c) || c->rank == root;
}

/* later NULL: all blocks; else those of ranks that it tells, and none for oneself. */
static void gather_blocks(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it,
                          const struct mr_vec *out, int root, const bool *later, struct mr_comm *c)
{
    mr_schedule_crowd(s, c->size - 1);
    if (c->rank != root && icount && it->size && (!later || later[c->rank]))
        mr_schedule_send(s, in, icount, it, root);
    for (int k = 1; k <= c->size && c->rank == root; k++) {
        int i = (root + k) % c->size; /* the own one last: its copy would keep the others waiting */
        void *at = mr_vec_part(out, i);
        size_t n = mr_vec_count(out, i);
        if (n * out->type->size == 0 || (later && !later[i]))
            continue;
        if (i != root)
            mr_schedule_recv(s, at, n, out->type, i);
        else if (in != MR_IN_PLACE)
            mr_schedule_copy(s, in, icount, it, at, n, out->type);
    }
}

/* A rank whose block is by message may be the only one beside the root that knows. */
static enum mr_err gatherv_at_once(struct mr_node *n, const void *in, size_t icount, struct mr_type *it,
                                   const struct mr_vec *out, int root, struct mr_comm *c)
{
    bool later[MR_NODE_RANKS_MAX] = {0};
    enum mr_err err = mr_node_gatherv(n, in, icount, it, out, root, later);
    if (!mr_node_any(n, later)) {
        mr_schedule_skip(c);
        return err;
    }
    struct mr_schedule *s = schedule_of(c, it, counts_here(c, root) ? out->type : NULL);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_allow_less(s);
    gather_blocks(s, in, icount, it, out, root, later, c);
    enum mr_err built = mr_schedule_built(s, &s);
    return mr_coll_run_after(err, built, s);
}

enum mr_err mr_coll_gatherv(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out, int root,
                            struct mr_comm *c, struct mr_schedule **built)
{
    struct mr_node *n = mr_coll_mode_at_once(MR_COLL_GATHER, 1, NULL, c, built).node;
    if (n)
        return gatherv_at_once(n, in, icount, it, out, root, c);
    struct mr_schedule *s = schedule_of(c, it, counts_here(c, root) ? out->type : NULL);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_allow_less(s);
    if (mr_comm_is_inter(c))
        mr_inter_gather(s, in, icount, it, out, root, c);
    else
        gather_blocks(s, in, icount, it, out, root, NULL, c);
    return mr_schedule_built(s, built);
}

static void scatter_binomial(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                             size_t ocount, struct mr_type *ot, int root, struct mr_comm *c)
{
    int p = c->size, v = (c->rank - root + p) % p, top = subtree(v, p);
    size_t block = v ? ocount * ot->size : icount * it->size;
    int below = v + top < p ? top : p - v;
    char *flat = mr_schedule_temp(s, (size_t)below * block);
    if (v) {
        mr_schedule_recv(s, flat, (size_t)below * block, mr_type_byte, (v - top + root) % p);
        mr_schedule_fence(s);
    } else {
        rotate(s, in, icount, it, flat, block, root, p);
    }
    for (int mask = top >> 1; mask; mask >>= 1) {
        if (v + mask >= p)
            continue;
        int n = v + 2 * mask < p ? mask : p - v - mask;
        mr_schedule_send(s, flat + (size_t)mask * block, (size_t)n * block, mr_type_byte, (v + mask + root) % p);
    }
    if (out != MR_IN_PLACE)
        mr_schedule_copy(s, flat, block, mr_type_byte, out, ocount, ot);
}

static void scatter_linear(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                           size_t ocount, struct mr_type *ot, int root, struct mr_comm *c)
{
    mr_schedule_crowd(s, c->size - 1);
    if (c->rank != root) {
        mr_schedule_recv(s, out, ocount, ot, root);
        return;
    }
    for (int i = 0; i < c->size; i++)
        if (i != root)
            mr_schedule_send(s, mr_at(in, (size_t)i * icount, it), icount, it, i);
    if (out != MR_IN_PLACE)
        mr_schedule_copy(s, mr_at(in, (size_t)root * icount, it), icount, it, out, ocount, ot);
}

/* The other way round. */
static enum mr_err scatter_hierarchical(struct mr_grid *g, size_t bytes, const void *in, size_t icount,
                                        struct mr_type *it, void *out, size_t ocount, struct mr_type *ot, int root)
{
    const struct mr_place *w = g->place;
    struct levels l = levels_of(g, root, bytes);
    enum mr_err err = MR_SUCCESS, row_err;
    for (int i = 0; l.is_root && i < w->nodes * w->each; i++)
        mr_type_copy(mr_at(in, (size_t)w->rank[i] * icount, it), icount, it, l.all + (size_t)i * bytes, bytes,
                     mr_type_byte);
    if (l.holds) {
        struct mr_schedule *s = MR_COLL_AT_ONCE;
        err = mr_coll_scatter(l.all, l.part, mr_type_byte, l.row, l.part, mr_type_byte, l.root.node, g->column, &s);
        err = mr_coll_run(err, s);
        mr_grid_failed(g, err);
    }
    row_err = mr_node_scatter(g->row->node, l.row, bytes, mr_type_byte, out, ocount, ot, l.root.local);
    return err ? err : row_err;
}

enum mr_err mr_coll_scatter(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                            struct mr_type *ot, int root, struct mr_comm *c, struct mr_schedule **built)
{
    size_t bytes = c->rank == root ? icount * it->size : ocount * ot->size;
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_SCATTER, bytes, NULL, c, built);
    if (mode.grid)
        return scatter_hierarchical(mode.grid, bytes, in, icount, it, out, ocount, ot, root);
    if (mode.node)
        return mr_node_scatter(mode.node, in, icount, it, out, ocount, ot, root);
    struct mr_schedule *s = schedule_of(c, it, ot);
    if (!s)
        return MR_ERR_NO_MEM;
    if (mr_comm_is_inter(c))
        mr_inter_scatter(s, &(struct mr_vec){.buf = in, .each = icount, .type = it}, out, ocount, ot, root, c);
    else if (bytes && mr_coll_select(MR_COLL_SCATTER, bytes, c->size, 0) == MR_ALG_BINOMIAL)
        scatter_binomial(s, in, icount, it, out, ocount, ot, root, c);
    else if (bytes)
        scatter_linear(s, in, icount, it, out, ocount, ot, root, c);
    return mr_schedule_built(s, built);
}

/* Of a root whose blocks are to go by messages: all of them, but, as `rest`, that for itself. */
static void scatter_blocks(struct mr_schedule *s, const struct mr_vec *in, void *out, size_t ocount, struct mr_type *ot,
                           int root, bool rest, struct mr_comm *c)
{
    mr_schedule_crowd(s, c->size - 1);
    if (c->rank != root && ocount && ot->size)
        mr_schedule_recv(s, out, ocount, ot, root);
    for (int k = 1; k <= c->size && c->rank == root; k++) {
        int i = (root + k) % c->size; /* as above */
        const void *at = mr_vec_part(in, i);
        size_t n = mr_vec_count(in, i);
        if (n * in->type->size == 0)
            continue;
        if (i != root)
            mr_schedule_send(s, at, n, in->type, i);
        else if (out != MR_IN_PLACE && !rest)
            mr_schedule_copy(s, at, n, in->type, out, ocount, ot);
    }
}

static enum mr_err scatterv_at_once(struct mr_node *n, const struct mr_vec *in, void *out, size_t ocount,
                                    struct mr_type *ot, int root, struct mr_comm *c)
{
    bool later[MR_NODE_RANKS_MAX] = {0};
    enum mr_err err = mr_node_scatterv(n, in, out, ocount, ot, root, later);
    if (!later[root])
        return err;
    struct mr_schedule *s = schedule_of(c, counts_here(c, root) ? in->type : NULL, ot);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_allow_less(s);
    scatter_blocks(s, in, out, ocount, ot, root, true, c);
    enum mr_err built = mr_schedule_built(s, &s);
    return mr_coll_run_after(err, built, s);
}

enum mr_err mr_coll_scatterv(const struct mr_vec *in, void *out, size_t ocount, struct mr_type *ot, int root,
                             struct mr_comm *c, struct mr_schedule **built)
{
    struct mr_node *n = mr_coll_mode_at_once(MR_COLL_SCATTER, 1, NULL, c, built).node;
    if (n)
        return scatterv_at_once(n, in, out, ocount, ot, root, c);
    struct mr_schedule *s = schedule_of(c, counts_here(c, root) ? in->type : NULL, ot);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_allow_less(s);
    if (mr_comm_is_inter(c))
        mr_inter_scatter(s, in, out, ocount, ot, root, c);
    else
        scatter_blocks(s, in, out, ocount, ot, root, false, c);
    return mr_schedule_built(s, built);
}
