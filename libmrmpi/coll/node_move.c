/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barrier, and the collectives that only move data, through a node area: the data of each rank's slots, and its
 * readers.
 */
#include "libmrmpi/base/copy.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/schedule/sched.h"
#include "libmrmpi/coll/node/exchange.h"

/* One side of an operation: a block, or a block for each rank. */
struct side {
    const void *buf;
    size_t count;
    struct mr_type *type;
    size_t step;              /* elements from the block of a rank to the next rank's block; 0: a single block */
    const struct mr_vec *vec; /* NULL, or where blocks are, and of how many elements, instead */
};

struct move {
    struct mr_node *n; /* during the move */
    struct side in, out;
    int me;
    bool mine; /* this rank has a block for itself, and copies it */
};

static size_t side_bytes(const struct side *s)
{
    return s->count * s->type->size;
}

static size_t count_of(const struct side *s, int rank)
{
    return s->vec ? mr_vec_count(s->vec, rank) : s->count;
}

static struct mr_type *side_type(const struct side *s, int rank)
{
    return s->vec ? mr_vec_type(s->vec, rank) : s->type;
}

static const void *block(const struct side *s, int rank)
{
    if (s->vec)
        return mr_vec_part(s->vec, rank);
    return mr_at(s->buf, s->step * (size_t)rank, s->type);
}

static void fill_slot(void *arg, int rank, size_t offset, size_t len, char *to)
{
    const struct move *m = arg;
    const struct side *in = &m->in;

    mr_node_put(m->n, block(in, rank), count_of(in, rank), side_type(in, rank), offset, to, len);
}

static void take_from_slot(void *arg, int rank, size_t offset, size_t len, const char *from)
{
    const struct side *out = &((const struct move *)arg)->out;
    const struct mr_type *t = side_type(out, rank);
    char *to = (char *)(uintptr_t)block(out, rank);

    if (t->contiguous)
        mr_copy_in(to + t->true_lb + offset, from, len);
    else
        mr_type_unpack(to, count_of(out, rank), t, offset, from, len);
}

static void copy_mine(void *arg)
{
    const struct move *m = arg;

    if (m->mine)
        mr_type_copy(block(&m->in, m->me), count_of(&m->in, m->me), side_type(&m->in, m->me),
                     (void *)(uintptr_t)block(&m->out, m->me), count_of(&m->out, m->me), side_type(&m->out, m->me));
}

/* x: writers, readers, lengths. */
static enum mr_err exchange_moves(struct mr_node *n, struct move *m, struct mr_node_exchange x)
{
    m->n = n;
    x.fill = fill_slot;
    x.take = take_from_slot;
    x.meanwhile = copy_mine;
    x.arg = m;
    return mr_node_exchange(n, &x);
}

/* Every rank has data for every other rank: equal blocks, or (apart) one for each. */
static enum mr_err exchange_all(struct mr_node *n, struct move *m, bool apart)
{
    return exchange_moves(n, m,
                          (struct mr_node_exchange){.writes = true,
                                                    .apart = apart,
                                                    .gives = side_bytes(&m->in),
                                                    .expects = side_bytes(&m->out),
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

        err = mr_node_exchange(n, &(struct mr_node_exchange){
                                      .writes = true, .stride = stride, .num = others < RADIX ? others : RADIX - 1});
    }
    return err;
}

enum mr_err mr_node_bcast(struct mr_node *n, void *buf, size_t count, struct mr_type *t, int root)
{
    struct move m = {.in = {.buf = buf, .count = count, .type = t}, .out = {.buf = buf, .count = count, .type = t}};
    size_t bytes = count * t->size;
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    return exchange_moves(
        n, &m,
        (struct mr_node_exchange){
            .writes = n->me == root, .gives = bytes, .expects = bytes, .stride = n->me - root, .num = n->me != root});
}

enum mr_err mr_node_gather(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                           size_t ocount, struct mr_type *ot, int root)
{
    bool collects = n->me == root;
    struct move m = {.in = {.buf = in, .count = icount, .type = it},
                     .out = {.buf = out, .count = ocount, .type = ot, .step = ocount},
                     .me = n->me,
                     .mine = collects && in != MR_IN_PLACE};
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    return exchange_moves(n, &m,
                          (struct mr_node_exchange){.writes = !collects,
                                                    .gives = collects ? 0 : side_bytes(&m.in),
                                                    .expects = collects ? side_bytes(&m.out) : 0,
                                                    .stride = 1,
                                                    .num = collects ? n->ranks - 1 : 0});
}

enum mr_err mr_node_scatter(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                            size_t ocount, struct mr_type *ot, int root)
{
    bool hands_out = n->me == root;
    struct move m = {.in = {.buf = in, .count = icount, .type = it, .step = icount},
                     .out = {.buf = out, .count = ocount, .type = ot},
                     .me = n->me,
                     .mine = hands_out && out != MR_IN_PLACE};
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    return exchange_moves(n, &m,
                          (struct mr_node_exchange){.writes = hands_out,
                                                    .apart = true,
                                                    .gives = hands_out ? side_bytes(&m.in) : 0,
                                                    .expects = hands_out ? 0 : side_bytes(&m.out),
                                                    .stride = n->me - root,
                                                    .num = !hands_out});
}

enum mr_err mr_node_allgather(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                              size_t ocount, struct mr_type *ot)
{
    bool in_place = in == MR_IN_PLACE;
    struct move m = {.in = {.buf = in, .count = icount, .type = it},
                     .out = {.buf = out, .count = ocount, .type = ot, .step = ocount},
                     .me = n->me,
                     .mine = !in_place};
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    if (in_place)
        m.in = (struct side){.buf = block(&m.out, n->me), .count = ocount, .type = ot};
    return exchange_all(n, &m, false);
}

static size_t amount(void *arg, int rank)
{
    const struct side *out = &((const struct move *)arg)->out;

    return count_of(out, rank) * out->type->size;
}

enum mr_err mr_node_allgatherv(struct mr_node *n, const void *in, size_t icount, struct mr_type *it,
                               const struct mr_vec *out)
{
    struct move m = {
        .in = {.buf = in, .count = icount, .type = it}, .out = {.type = out->type, .vec = out}, .me = n->me};
    size_t mine = mr_vec_bytes(out, n->me), most = 0;
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    m.mine = in != MR_IN_PLACE;
    if (m.mine && side_bytes(&m.in) != mine) { /* differs from the others' expectation */
        copy_mine(&m);
        m.mine = false;
    }
    if (!m.mine)
        m.in = (struct side){.buf = block(&m.out, n->me), .count = mr_vec_count(out, n->me), .type = out->type};
    for (int i = 0; i < n->ranks; i++)
        most = mr_vec_bytes(out, i) > most ? mr_vec_bytes(out, i) : most;
    return exchange_moves(
        n, &m,
        (struct mr_node_exchange){
            .writes = true, .gives = mine, .expects = most, .stride = 1, .num = n->ranks - 1, .amount = amount});
}

/* In place: bytes of a block are in the slot before received bytes take their place. */
enum mr_err mr_node_alltoall(struct mr_node *n, const void *in, size_t icount, struct mr_type *it, void *out,
                             size_t ocount, struct mr_type *ot)
{
    bool in_place = in == MR_IN_PLACE;
    struct move m = {.in = {.buf = in, .count = icount, .type = it, .step = icount},
                     .out = {.buf = out, .count = ocount, .type = ot, .step = ocount},
                     .me = n->me,
                     .mine = !in_place};
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    if (in_place)
        m.in = m.out;
    return exchange_all(n, &m, true);
}

/* ---- blocks of any lengths --------------------------------------------------------------------------------------- */

static size_t gives(void *arg, int rank)
{
    const struct side *in = &((const struct move *)arg)->in;

    return count_of(in, rank) * side_type(in, rank)->size;
}

static size_t expects(void *arg, int rank)
{
    const struct side *out = &((const struct move *)arg)->out;

    return count_of(out, rank) * side_type(out, rank)->size;
}

/* x: writers, readers. */
static enum mr_err vary(struct mr_node *n, struct move *m, struct mr_varied x, bool *later)
{
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    x.gives = gives;
    x.expects = expects;
    m->n = n;
    x.fill = fill_slot;
    x.take = take_from_slot;
    x.meanwhile = copy_mine;
    x.arg = m;
    return mr_node_exchange_varied(n, &x, later);
}

enum mr_err mr_node_alltoallv(struct mr_node *n, const struct mr_vec *in, const struct mr_vec *out, bool *later)
{
    struct move m = {.in = {.vec = in}, .out = {.vec = out}, .me = n->me, .mine = true};

    return vary(n, &m, (struct mr_varied){.writes = true, .only = -1, .stride = 1, .num = n->ranks - 1}, later);
}

enum mr_err mr_node_gatherv(struct mr_node *n, const void *in, size_t icount, struct mr_type *it,
                            const struct mr_vec *out, int root, bool *later)
{
    bool collects = n->me == root;
    struct move m = {.in = {.buf = in, .count = icount, .type = it},
                     .out = {.vec = out},
                     .me = n->me,
                     .mine = collects && in != MR_IN_PLACE};

    return vary(n, &m,
                (struct mr_varied){.writes = !collects, .only = root, .stride = 1, .num = collects ? n->ranks - 1 : 0},
                later);
}

enum mr_err mr_node_scatterv(struct mr_node *n, const struct mr_vec *in, void *out, size_t ocount, struct mr_type *ot,
                             int root, bool *later)
{
    bool hands_out = n->me == root;
    struct move m = {.in = {.vec = in},
                     .out = {.buf = out, .count = ocount, .type = ot},
                     .me = n->me,
                     .mine = hands_out && out != MR_IN_PLACE};

    return vary(n, &m, (struct mr_varied){.writes = hands_out, .only = -1, .stride = n->me - root, .num = !hands_out},
                later);
}
