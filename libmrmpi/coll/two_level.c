/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of large messages between nodes with equally many ranks each (place.h). Over the network the ranks of one
 * column exchange directly with each other, all at once: each byte enters a node once, all ports send and receive all
 * the time, and there are two hops. On the node the ranks of a row share arriving data at once.
 */
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/place.h"

enum {
    SEGMENT = 64 * 1024, /* of a broadcast: the part that a node passes on, at least half of it */
    SEGMENTS_MAX = 64    /* of the part passed on by a node */
};

static int wrap(int i, int n)
{
    return i < n ? i : i - n;
}

/* ---- broadcast ------------------------------------------------------------------------------------------------- */

/*
 * The root gives each other node a part of the message, in segments, in turn. A node passes the segments of its part on
 * to the others. On each node the rank in the root's column does so, and is the root of a tree over the row. Segments
 * are numbered in the order of leaving the root: q = round * parts + part.
 */
struct flood {
    struct mr_schedule *s;
    const struct mr_place *w;
    char *base;
    size_t bytes;
    int parts, rounds;
    int root_node, column; /* the root's */
    size_t first_recv;     /* the step that receives segment 0; the later segments follow */
};

static void flood_send(const struct flood *f, int q, int to)
{
    size_t at = mr_part(f->bytes, f->parts * f->rounds, q), end = mr_part(f->bytes, f->parts * f->rounds, q + 1);
    mr_schedule_send(f->s, f->base + at, end - at, mr_type_byte, to);
}

static void flood_recv(const struct flood *f, int q, int from)
{
    size_t at = mr_part(f->bytes, f->parts * f->rounds, q), end = mr_part(f->bytes, f->parts * f->rounds, q + 1);
    mr_schedule_recv(f->s, f->base + at, end - at, mr_type_byte, from);
}

/* The root of the tree of the node that gets this part. */
static int leader_of_part(const struct flood *f, int part)
{
    return mr_place_rank(f->w, wrap(f->root_node + 1 + part, f->w->nodes), f->column);
}

/* To the ranks below this rank in the binary tree over its row, whose root is in the root's column. */
static void flood_row(const struct flood *f, int q)
{
    int each = f->w->each, i = wrap(f->w->local - f->column + each, each);
    for (int below = 2 * i + 1; below <= 2 * i + 2 && below < each; below++)
        flood_send(f, q, mr_place_rank(f->w, f->w->node, wrap(f->column + below, each)));
}

static void flood_root(struct flood *f)
{
    for (int q = 0; q < f->parts * f->rounds; q++) {
        flood_send(f, q, leader_of_part(f, q % f->parts));
        flood_row(f, q);
    }
}

/* The others' segments of a round arrive during our segment of the next round: ours is passed on first. */
static void flood_leader(struct flood *f)
{
    int root = mr_place_rank(f->w, f->root_node, f->column),
        mine = wrap(f->w->node - f->root_node - 1 + f->w->nodes, f->w->nodes);
    for (int q = 0; q < f->parts * f->rounds; q++) {
        int part = q % f->parts;
        flood_recv(f, q, part == mine ? root : leader_of_part(f, part));
        if (!q)
            f->first_recv = mr_schedule_last(f->s);
    }
    for (int round = 0; round <= f->rounds; round++) {
        if (round < f->rounds) {
            mr_schedule_wait(f->s, f->first_recv + (size_t)(round * f->parts + mine));
            for (int d = 1; d < f->parts; d++)
                flood_send(f, round * f->parts + mine, leader_of_part(f, wrap(mine + d, f->parts)));
        }
        for (int q = (round - 1) * f->parts; f->w->each > 1 && round && q < round * f->parts; q++) {
            mr_schedule_wait(f->s, f->first_recv + (size_t)q);
            flood_row(f, q);
        }
    }
}

static void flood_leaf(struct flood *f)
{
    int each = f->w->each, i = wrap(f->w->local - f->column + each, each);
    int above = mr_place_rank(f->w, f->w->node, wrap(f->column + (i - 1) / 2, each));
    for (int q = 0; q < f->parts * f->rounds; q++) {
        flood_recv(f, q, above);
        if (!q)
            f->first_recv = mr_schedule_last(f->s);
    }
    for (int q = 0; 2 * i + 1 < each && q < f->parts * f->rounds; q++) {
        mr_schedule_wait(f->s, f->first_recv + (size_t)q);
        flood_row(f, q);
    }
}

void mr_alg_bcast_two_level(struct mr_schedule *s, void *base, size_t bytes, int root, struct mr_comm *c,
                            const struct mr_place *w)
{
    struct flood f = {.s = s, .w = w, .base = base, .bytes = bytes, .parts = w->nodes - 1};
    size_t rounds = bytes / (size_t)f.parts / SEGMENT;
    f.rounds = rounds < 1 ? 1 : rounds > SEGMENTS_MAX ? SEGMENTS_MAX : (int)rounds;
    int at = 0;
    while (w->rank[at] != root)
        at++;
    f.root_node = at / w->each;
    f.column = at % w->each;
    mr_schedule_crowd(s, f.parts);
    (c->rank == root ? flood_root : w->local == f.column ? flood_leader : flood_leaf)(&f);
}

/* ---- allgather ------------------------------------------------------------------------------------------------- */

static void give_block(struct mr_schedule *s, const struct mr_vec *v, int block, int to)
{
    mr_schedule_send(s, mr_vec_part(v, block), mr_vec_count(v, block), v->type, to);
}

static void recv_block(struct mr_schedule *s, const struct mr_vec *v, int block, int from)
{
    mr_schedule_recv(s, mr_vec_part(v, block), mr_vec_count(v, block), v->type, from);
}

/* Blocks go along the columns; received blocks go along the row. */
void mr_alg_allgather_two_level(struct mr_schedule *s, const struct mr_vec *out, struct mr_comm *c,
                                const struct mr_place *w)
{
    int n = w->nodes, k = w->each;
    for (int d = 1; d < n; d++) {
        int from = mr_place_rank(w, wrap(w->node - d + n, n), w->local);
        recv_block(s, out, from, from);
    }
    size_t came = mr_schedule_last(s) + 2 - (size_t)n;
    for (int j = 1; j < k; j++) {
        int b = wrap(w->local + j, k), from = mr_place_rank(w, w->node, b);
        for (int d = 0; d < n; d++)
            recv_block(s, out, mr_place_rank(w, wrap(w->node - d + n, n), b), from);
    }
    for (int d = 1; d < n; d++)
        give_block(s, out, c->rank, mr_place_rank(w, wrap(w->node + d, n), w->local));
    for (int d = 0; d < n && k > 1; d++) {
        if (d)
            mr_schedule_wait(s, came + (size_t)d - 1);
        for (int j = 1; j < k; j++)
            give_block(s, out, mr_place_rank(w, wrap(w->node - d + n, n), w->local),
                       mr_place_rank(w, w->node, wrap(w->local + j, k)));
    }
}

/* ---- reductions ------------------------------------------------------------------------------------------------ */

/* Parts of a message that ranks of a line have: item i of `num` is at `at` + mr_part(count, num, i). */
struct parts {
    char *buf;
    size_t at, count;
    int num;
    struct mr_type *t;
};

static size_t part_at(const struct parts *p, int i)
{
    return p->at + mr_part(p->count, p->num, i);
}

static size_t part_count(const struct parts *p, int i)
{
    return mr_part(p->count, p->num, i + 1) - mr_part(p->count, p->num, i);
}

static void give_part(struct mr_schedule *s, const struct parts *p, int i, int to)
{
    mr_schedule_send(s, mr_at(p->buf, part_at(p, i), p->t), part_count(p, i), p->t, to);
}

static void take_part(struct mr_schedule *s, const struct parts *p, int i, int from)
{
    mr_schedule_recv(s, mr_at_mut(p->buf, part_at(p, i), p->t), part_count(p, i), p->t, from);
}

/* The rank i of the row, or of the column, of this rank. */
static int in_line(const struct mr_place *w, bool row, int i)
{
    return row ? mr_place_rank(w, w->node, i) : mr_place_rank(w, i, w->local);
}

/*
 * Every rank of the line gets the others' part i, if it is number i, and adds the parts up. Returns the step of the
 * first send.
 */
static size_t gather_sums(struct mr_schedule *s, const struct parts *p, struct mr_op *op, const struct mr_place *w,
                          bool row)
{
    int n = p->num, me = row ? w->local : w->node;
    size_t mine = part_count(p, me), came = 0, gone = 0;
    void *theirs = mr_schedule_temp_for(s, p->t, mine * (size_t)(n - 1));
    mr_schedule_crowd(s, n - 1);
    for (int d = 1; d < n; d++) {
        mr_schedule_recv(s, mr_at_mut(theirs, mine * (size_t)(d - 1), p->t), mine, p->t,
                         in_line(w, row, wrap(me - d + n, n)));
        if (d == 1)
            came = mr_schedule_last(s);
    }
    for (int d = 1; d < n; d++) {
        give_part(s, p, wrap(me + d, n), in_line(w, row, wrap(me + d, n)));
        if (d == 1)
            gone = mr_schedule_last(s);
    }
    mr_schedule_crowd(s, 0);
    for (int d = 1; d < n; d++) {
        mr_schedule_wait(s, came + (size_t)d - 1);
        mr_schedule_reduce(s, op, mr_at(theirs, mine * (size_t)(d - 1), p->t), mr_at_mut(p->buf, part_at(p, me), p->t),
                           mine, p->t);
    }
    return gone;
}

/*
 * Parts are added up along the row, then their sums along the column; then sums go along the column, and along the row
 * as they arrive.
 */
void mr_alg_allreduce_two_level(struct mr_schedule *s, void *out, size_t count, struct mr_type *t, struct mr_op *op,
                                const struct mr_place *w)
{
    int n = w->nodes, k = w->each;
    struct parts row = {.buf = out, .count = count, .num = k, .t = t};
    if (k > 1) {
        gather_sums(s, &row, op, w, true);
        mr_schedule_fence(s);
    }
    struct parts column = {
        .buf = out, .at = part_at(&row, w->local), .count = part_count(&row, w->local), .num = n, .t = t};
    size_t gone = gather_sums(s, &column, op, w, false), came = 0;
    for (int d = 1; d < n; d++)
        give_part(s, &column, w->node, in_line(w, false, wrap(w->node + d, n)));
    for (int d = n - 1; d; d--) { /* the d-th send was from there */
        mr_schedule_wait(s, gone + (size_t)d - 1);
        take_part(s, &column, wrap(w->node + d, n), in_line(w, false, wrap(w->node + d, n)));
        if (d == n - 1)
            came = mr_schedule_last(s);
    }
    for (int j = 1; j < k; j++) {
        int b = wrap(w->local + j, k);
        struct parts theirs = {.buf = out, .at = part_at(&row, b), .count = part_count(&row, b), .num = n, .t = t};
        for (int d = n; d; d--)
            take_part(s, &theirs, wrap(w->node + d % n, n), in_line(w, true, b));
    }
    for (int d = n; d && k > 1; d--) {
        if (d < n)
            mr_schedule_wait(s, came + 2 * (size_t)(n - 1 - d));
        for (int j = 1; j < k; j++)
            give_part(s, &column, wrap(w->node + d % n, n), in_line(w, true, wrap(w->local + j, k)));
    }
}

/* Parts are added up as for an allreduce; then each rank sends its part directly to the root. */
void mr_alg_reduce_two_level(struct mr_schedule *s, const void *in, void *out, size_t count, struct mr_type *t,
                             struct mr_op *op, int root, struct mr_comm *c, const struct mr_place *w)
{
    int n = w->nodes, k = w->each;
    void *acc = c->rank == root ? out : mr_schedule_temp_for(s, t, count);
    struct parts row = {.buf = acc, .count = count, .num = k, .t = t};
    if (in != MR_IN_PLACE)
        mr_schedule_copy(s, in, count, t, acc, count, t);
    if (k > 1) {
        gather_sums(s, &row, op, w, true);
        mr_schedule_fence(s);
    }
    struct parts column = {
        .buf = acc, .at = part_at(&row, w->local), .count = part_count(&row, w->local), .num = n, .t = t};
    gather_sums(s, &column, op, w, false);
    mr_schedule_crowd(s, n * k - 1);
    if (c->rank != root) {
        give_part(s, &column, w->node, root);
        return;
    }
    mr_schedule_fence(s); /* the parts of the buffer for others have left */
    for (int d = 0; d < n; d++)
        for (int j = 0; j < k; j++) {
            struct parts theirs = {.buf = out, .at = part_at(&row, j), .count = part_count(&row, j), .num = n, .t = t};
            int from = mr_place_rank(w, d, j);
            if (from != root)
                take_part(s, &theirs, d, from);
        }
}

/* A reduce-scatter, with the owners in v. */
struct scattered {
    struct mr_schedule *s;
    const struct mr_vec *v;
    const struct mr_place *w;
    struct mr_op *op;
    const void *from;
    void *acc;                    /* for this rank's share */
    size_t from_row, from_column; /* the first steps that receive */
};

static int in_column(const struct scattered *f, int d)
{
    return mr_place_rank(f->w, (f->w->node + d) % f->w->nodes, f->w->local);
}

static void give_sums(const struct scattered *f, int owner, int to)
{
    mr_schedule_send(f->s, mr_at(f->from, mr_vec_before(f->v, owner), f->v->type), mr_vec_count(f->v, owner),
                     f->v->type, to);
}

/* From d nodes on, for d from 1 to n: the shares of my column, from the others of my row, one after the other into
 * `into`. */
static void take_from_row(struct scattered *f, char *into)
{
    struct mr_type *t = f->v->type;
    int n = f->w->nodes, k = f->w->each;
    for (int d = 1; d <= n; d++)
        for (int j = 1; j < k; j++) {
            size_t sums_len = mr_vec_count(f->v, in_column(f, d));
            mr_schedule_recv(f->s, into, sums_len, t, mr_place_rank(f->w, f->w->node, wrap(f->w->local + j, k)));
            into = mr_at_mut(into, sums_len, t);
            if (d == 1 && j == 1)
                f->from_row = mr_schedule_last(f->s);
        }
}

static void take_from_column(struct scattered *f, void *into, size_t mine)
{
    for (int d = 1; d < f->w->nodes; d++) {
        mr_schedule_recv(f->s, mr_at_mut(into, mine * (size_t)(d - 1), f->v->type), mine, f->v->type,
                         in_column(f, f->w->nodes - d));
        if (d == 1)
            f->from_column = mr_schedule_last(f->s);
    }
}

/* Adds up the row's data for a node, and sends the sum there; at last the data for this rank. */
static void sum_rows(const struct scattered *f, const char *theirs, char *sums)
{
    struct mr_type *t = f->v->type;
    int n = f->w->nodes, k = f->w->each;
    size_t came = f->from_row;
    for (int d = 1; d <= n; d++) {
        int owner = in_column(f, d);
        size_t sums_len = mr_vec_count(f->v, owner);
        void *sum = d < n ? sums : f->acc;
        if (k == 1 && d < n) {
            give_sums(f, owner, owner);
            continue;
        }
        mr_schedule_copy(f->s, mr_at(f->from, mr_vec_before(f->v, owner), t), sums_len, t, sum, sums_len, t);
        for (int j = 1; j < k; j++) {
            mr_schedule_wait(f->s, came++);
            mr_schedule_reduce(f->s, f->op, theirs, sum, sums_len, t);
            theirs = mr_at(theirs, sums_len, t);
        }
        if (d < n) {
            mr_schedule_send(f->s, sum, sums_len, t, owner);
            sums = mr_at_mut(sums, sums_len, t);
        }
    }
}

void mr_alg_reduce_scatter_two_level(struct mr_schedule *s, const void *in, void *out, const struct mr_vec *v,
                                     struct mr_op *op, struct mr_comm *c, const struct mr_place *w)
{
    struct mr_type *t = v->type;
    int n = w->nodes, k = w->each;
    size_t mine = mr_vec_count(v, c->rank), column = 0;
    struct scattered f = {.s = s, .v = v, .w = w, .op = op, .from = in == MR_IN_PLACE ? out : in};
    f.acc = in == MR_IN_PLACE ? mr_schedule_temp_for(s, t, mine) : out;
    for (int d = 0; d < n; d++)
        column += mr_vec_count(v, in_column(&f, d));
    char *row_theirs = k > 1 ? mr_schedule_temp_for(s, t, column * (size_t)(k - 1)) : NULL;
    char *sums = k > 1 ? mr_schedule_temp_for(s, t, column) : NULL;
    void *theirs = mr_schedule_temp_for(s, t, mine * (size_t)(n - 1));
    take_from_row(&f, row_theirs);
    take_from_column(&f, theirs, mine);
    for (int d = 1; d <= n; d++)
        for (int j = 1; j < k; j++) {
            int to = wrap(w->local + j, k);
            give_sums(&f, mr_place_rank(w, (w->node + d) % n, to), mr_place_rank(w, w->node, to));
        }
    sum_rows(&f, row_theirs, sums);
    for (int d = 1; d < n; d++) {
        mr_schedule_wait(s, f.from_column + (size_t)d - 1);
        mr_schedule_reduce(s, op, mr_at(theirs, mine * (size_t)(d - 1), t), f.acc, mine, t);
    }
    if (in == MR_IN_PLACE) {
        mr_schedule_fence(s);
        mr_schedule_copy(s, f.acc, mine, t, out, mine, t);
    }
}
