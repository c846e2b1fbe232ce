/* SPDX-License-Identifier: BSD-3-Clause */
/* Allgather: all at once among few, Bruck's log p rounds for small blocks among many, a ring for large ones;
 * allgatherv: all at once or a ring. */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/inter.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/select.h"

/* flat[i] is the block of rank (r + i) % p: doubles every round. */
static void bruck_allgather(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                            size_t count, struct mr_type *t, struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    size_t block = count * t->size;
    char *flat = mr_schedule_temp(s, (size_t)p * block);
    if (in == MR_IN_PLACE)
        mr_schedule_copy(s, mr_at(out, (size_t)r * count, t), count, t, flat, block, mr_type_byte);
    else
        mr_schedule_copy(s, in, icount, it, flat, block, mr_type_byte);
    for (int k = 1; k < p; k <<= 1) {
        size_t n = (size_t)(k < p - k ? k : p - k) * block;
        mr_schedule_recv(s, flat + (size_t)k * block, n, mr_type_byte, (r + k) % p);
        mr_schedule_send(s, flat, n, mr_type_byte, (r - k + p) % p);
        mr_schedule_fence(s);
    }
    size_t first = (size_t)(p - r);
    mr_schedule_copy(s, flat, first * block, mr_type_byte, mr_at_mut(out, (size_t)r * count, t), first * count, t);
    if (r)
        mr_schedule_copy(s, flat + first * block, (size_t)r * block, mr_type_byte, out, (size_t)r * count, t);
}

/* This rank's block: sent from the program's memory, and copied (unless in place) meanwhile. */
struct own {
    const void *in;
    size_t icount;
    struct mr_type *it;
    void *out; /* its place in the result, for `count` elements of t */
    size_t count;
    struct mr_type *t;
    bool in_place;
};

static struct own own_of(struct mr_schedule *s, const void *in, size_t icount, struct mr_type *it, void *out,
                         size_t count, struct mr_type *t)
{
    bool in_place = in == MR_IN_PLACE;
    if (!in_place && icount * it->size == count * t->size)
        return (struct own){in, icount, it, out, count, t, false};
    if (!in_place && count) /* differs from the others' expectation */
        mr_schedule_copy(s, in, icount, it, out, count, t);
    return (struct own){out, count, t, out, count, t, true};
}

static void send_own(struct mr_schedule *s, const struct own *o, int to)
{
    if (o->count)
        mr_schedule_send(s, o->in, o->icount, o->it, to);
}

static void copy_own(struct mr_schedule *s, const struct own *o)
{
    if (!o->in_place && o->count)
        mr_schedule_copy(s, o->in, o->icount, o->it, o->out, o->count, o->t);
}

static void ring(struct mr_schedule *s, const struct own *own, const struct mr_vec *out, struct mr_comm *c)
{
    int p = c->size, r = c->rank, right = (r + 1) % p, left = (r - 1 + p) % p;
    for (int k = 0; k < p - 1; k++) {
        int give = (r - k + p) % p, take = (r - k - 1 + p) % p;
        if (mr_vec_count(out, take))
            mr_schedule_recv(s, mr_vec_part(out, take), mr_vec_count(out, take), out->type, left);
        if (k == 0) {
            send_own(s, own, right);
            copy_own(s, own);
        } else if (mr_vec_count(out, give)) {
            mr_schedule_send(s, mr_vec_part(out, give), mr_vec_count(out, give), out->type, right);
        }
        mr_schedule_fence(s);
    }
}

static void send_own_block(struct mr_schedule *s, const struct own *own, const struct mr_vec *out, struct mr_comm *c)
{
    int p = c->size, r = c->rank;
    mr_coll_crowd(s, p / 2); /* the result is sent from its place: one side copies */
    for (int k = 1; k < p; k++) {
        int src = (r - k + p) % p;
        if (mr_vec_count(out, src))
            mr_schedule_recv(s, mr_vec_part(out, src), mr_vec_count(out, src), out->type, src);
    }
    for (int k = 1; k < p; k++)
        send_own(s, own, (r + k) % p);
    copy_own(s, own);
}

/* By an algorithm that allgather and allgatherv have in common. */
static void gather_all(struct mr_schedule *s, enum mr_alg alg, const struct own *own, const struct mr_vec *out,
                       struct mr_comm *c)
{
    if (alg == MR_ALG_TWO_LEVEL) {
        copy_own(s, own);
        mr_alg_allgather_two_level(s, out, c, mr_comm_place(c));
    } else if (alg == MR_ALG_SPREAD) {
        send_own_block(s, own, out, c);
    } else if (c->size > 1) {
        ring(s, own, out, c);
    } else {
        copy_own(s, own);
    }
}

/* Along columns, then the received data along rows. */
static enum mr_err hierarchical_allgather(struct mr_grid *g, const void *in, size_t icount, struct mr_type *it,
                                          void *out, size_t ocount, struct mr_type *ot, int rank)
{
    const struct mr_place *w = g->place;
    size_t block = ocount * ot->size, part = block * (size_t)w->nodes;
    char *column = mr_grid_scratch(g, part * ((size_t)w->each + 1)), *all = column + part;
    struct mr_schedule *s = MR_COLL_AT_ONCE;
    if (in == MR_IN_PLACE) {
        in = mr_at(out, (size_t)rank * ocount, ot);
        icount = ocount;
        it = ot;
    }
    enum mr_err err = mr_coll_allgather(in, icount, it, column, block, mr_type_byte, g->column, &s), row_err;
    err = mr_coll_run(err, s);
    mr_grid_failed(g, err);
    row_err = mr_node_allgather(g->row->node, column, part, mr_type_byte, all, part, mr_type_byte);
    err = err ? err : row_err;
    for (int i = 0; !err && i < w->nodes * w->each; i++, all += block)
        mr_type_copy(all, block, mr_type_byte,
                     mr_at_mut(out, (size_t)mr_place_rank(w, i % w->nodes, i / w->nodes) * ocount, ot), ocount, ot);
    return err;
}

enum mr_err mr_coll_allgather(const void *in, size_t icount, struct mr_type *it, void *out, size_t ocount,
                              struct mr_type *ot, struct mr_comm *c, struct mr_schedule **built)
{
    size_t bytes = ocount * ot->size;
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_ALLGATHER, bytes, NULL, c, built);
    if (mode.grid)
        return hierarchical_allgather(mode.grid, in, icount, it, out, ocount, ot, c->rank);
    if (mode.node)
        return mr_node_allgather(mode.node, in, icount, it, out, ocount, ot);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, it);
    mr_schedule_hold_type(s, ot);
    enum mr_alg alg = mr_coll_select(MR_COLL_ALLGATHER, bytes, c->size, mr_coll_place_has(c, bytes * (size_t)c->size));
    if (mr_comm_is_inter(c)) {
        mr_inter_allgather(s, in, icount, it, &(struct mr_vec){.buf = out, .each = ocount, .type = ot}, c);
    } else if (bytes && alg == MR_ALG_BRUCK) {
        bruck_allgather(s, in, icount, it, out, ocount, ot, c);
    } else if (bytes) {
        struct own own = own_of(s, in, icount, it, mr_at_mut(out, (size_t)c->rank * ocount, ot), ocount, ot);
        gather_all(s, alg, &own, &(struct mr_vec){.buf = out, .each = ocount, .type = ot}, c);
    }
    return mr_schedule_built(s, built);
}

enum mr_err mr_coll_allgatherv(const void *in, size_t icount, struct mr_type *it, const struct mr_vec *out,
                               struct mr_comm *c, struct mr_schedule **built)
{
    size_t total = 0, most = 0;
    for (int i = 0; i < c->size && !mr_comm_is_inter(c); i++) {
        size_t n = mr_vec_count(out, i);
        total += n;
        most = n > most ? n : most;
    }
    /* the counts are the same everywhere, so all ranks choose alike */
    size_t bytes = total * out->type->size, share = (bytes + (size_t)c->size - 1) / (size_t)c->size;
    struct mr_coll_mode mode = mr_coll_mode_at_once(MR_COLL_ALLGATHERV, share, NULL, c, built);
    if (mode.node && mr_node_takes(mode.node, most * out->type->size))
        return mr_node_allgatherv(mode.node, in, icount, it, out);
    struct mr_schedule *s = mr_schedule_new(c);
    if (!s)
        return MR_ERR_NO_MEM;
    mr_schedule_hold_type(s, it);
    mr_schedule_hold_type(s, out->type);
    if (mr_comm_is_inter(c)) {
        mr_inter_allgather(s, in, icount, it, out, c);
        return mr_schedule_built(s, built);
    }
    enum mr_alg alg = mr_coll_select(MR_COLL_ALLGATHERV, share, c->size, mr_coll_place_has(c, bytes));
    struct own own = own_of(s, in, icount, it, mr_vec_part(out, c->rank), mr_vec_count(out, c->rank), out->type);
    gather_all(s, alg, &own, out, c);
    return mr_schedule_built(s, built);
}
