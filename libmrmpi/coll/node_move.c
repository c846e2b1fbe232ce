/* SPDX-License-Identifier: BSD-3-Clause */
/* Barrier, and the collectives that only move data, through a node area: what each puts into its slots, and who reads
 * it. */
#include "libmrmpi/base/copy.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/schedule/sched.h"
#include "libmrmpi/node/exchange.h"

/* One side of an operation: a block, or a block for each rank. */
struct side {
    const void *buf;
    size_t count;
    struct mr_type *type;
    size_t step; /* elements from the block of a rank to that of the next; 0: there is one */
};

struct move {
    struct side in, out;
    int me;
    bool mine; /* this rank has a block for itself: it copies it */
};

static size_t bytes_of(const struct side *s)
{
    return s->count * s->type->size;
}

static const void *block(const struct side *s, int rank)
{
    return mr_at(s->buf, s->step * (size_t)rank, s->type);
}

static void fill(void *arg, int rank, size_t offset, size_t len, char *to)
{
    const struct side *in = &((const struct move *)arg)->in;

    mr_type_pack(block(in, rank), in->count, in->type, offset, to, len);
}

static void take(void *arg, int rank, size_t offset, size_t len, const char *from)
{
    const struct side *out = &((const struct move *)arg)->out;
    char *to = (char *)(uintptr_t)block(out, rank);

    if (out->type->contiguous)
        mr_copy_in(to + out->type->true_lb + offset, from, len);
    else
        mr_type_unpack(to, out->count, out->type, offset, from, len);
}

static void copy_mine(void *arg)
{
    const struct move *m = arg;

    if (m->mine)
        mr_type_copy(block(&m->in, m->me), m->in.count, m->in.type, (void *)(uintptr_t)block(&m->out, m->me),
                     m->out.count, m->out.type);
}

/* x: who writes, who reads, how much. */
static enum mr_err exchange(struct mr_node *n, struct move *m, struct mr_exchange x)
{
    x.fill = fill;
    x.take = take;
    x.meanwhile = copy_mine;
    x.arg = m;
    return mr_node_exchange(n, &x);
}

/* Every rank has something for every other one: blocks alike, or (apart) one for each. */
static enum mr_err exchange_all(struct mr_node *n, struct move *m, bool apart)
{
    return exchange(n, m,
                    (struct mr_exchange){.writes = true,
                                         .apart = apart,
                                         .gives = bytes_of(&m->in),
                                         .expects = bytes_of(&m->out),
                                         .stride = 1,
                                         .num = n->ranks - 1});
}

/* Radix of the dissemination: among so many ranks all tell all. */
enum { RADIX = 8 };

enum mr_err mr_node_barrier(struct mr_node *n)
{
    enum mr_err err = mr_node_begin(n);

    for (int stride = 1; stride < n->ranks && !err; stride *= RADIX) {
        int others = (n->ranks - 1) / stride;

        err = mr_node_exchange(
            n, &(struct mr_exchange){.writes = true, .stride = stride, .num = others < RADIX ? others : RADIX - 1});
    }
    return err;
}

enum mr_err mr_node_bcast(struct mr_node *n, void *buf, size_t count, struct mr_type *t, int root)
{
    struct move m = {.in = {buf, count, t, 0}, .out = {buf, count, t, 0}};
    size_t bytes = count * t->size;
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    return exchange(
        n, &m,
        (struct mr_exchange){
            .writes = n->me == root, .gives = bytes, .expects = bytes, .stride = n->me - root, .num = n->me != root});
}

enum mr_err mr_node_gather(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                           size_t ocount, struct mr_type *ot, int root)
{
    bool collects = n->me == root;
    struct move m = {.in = {in, icount, it, 0},
                     .out = {out, ocount, ot, ocount},
                     .me = n->me,
                     .mine = collects && in != MR_IN_PLACE};
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    return exchange(n, &m,
                    (struct mr_exchange){.writes = !collects,
                                         .gives = collects ? 0 : bytes_of(&m.in),
                                         .expects = collects ? bytes_of(&m.out) : 0,
                                         .stride = 1,
                                         .num = collects ? n->ranks - 1 : 0});
}

enum mr_err mr_node_scatter(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                            size_t ocount, struct mr_type *ot, int root)
{
    bool hands_out = n->me == root;
    struct move m = {.in = {in, icount, it, icount},
                     .out = {out, ocount, ot, 0},
                     .me = n->me,
                     .mine = hands_out && out != MR_IN_PLACE};
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    return exchange(n, &m,
                    (struct mr_exchange){.writes = hands_out,
                                         .apart = true,
                                         .gives = hands_out ? bytes_of(&m.in) : 0,
                                         .expects = hands_out ? 0 : bytes_of(&m.out),
                                         .stride = n->me - root,
                                         .num = !hands_out});
}

enum mr_err mr_node_allgather(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                              size_t ocount, struct mr_type *ot)
{
    bool in_place = in == MR_IN_PLACE;
    struct move m = {.in = {in, icount, it, 0}, .out = {out, ocount, ot, ocount}, .me = n->me, .mine = !in_place};
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    if (in_place)
        m.in = (struct side){block(&m.out, n->me), ocount, ot, 0};
    return exchange_all(n, &m, false);
}

/* In place: bytes of a block are in the slot before those that come take their place. */
enum mr_err mr_node_alltoall(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                             size_t ocount, struct mr_type *ot)
{
    bool in_place = in == MR_IN_PLACE;
    struct move m = {.in = {in, icount, it, icount}, .out = {out, ocount, ot, ocount}, .me = n->me, .mine = !in_place};
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    if (in_place)
        m.in = m.out;
    return exchange_all(n, &m, true);
}
