/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions through a node area. Few bytes: every rank that wants the result reduces all the slots, in the order of
 * ranks. More bytes: every rank makes one part of each piece, in its own slot, and the ranks that want the result
 * collect the parts. A part is made at one rank only, so all ranks have the same bits, and the same bits in every run.
 */
#include "libmrmpi/base/base.h"
#include "libmrmpi/base/copy.h"
#include "libmrmpi/coll/algorithms.h"
#include "libmrmpi/coll/node.h"
#include "libmrmpi/coll/node/exchange.h"

#include <stdlib.h>

struct reduction {
    struct mr_node *n;
    const void *in; /* this rank's operand: the result's buffer if in place */
    void *out;      /* NULL: this rank has no result */
    bool in_place;
    size_t count;
    size_t first, part; /* few bytes: of these elements it makes `part`, from the first on */
    int last;           /* and of the ranks up to this one */
    struct mr_type *t;
    struct mr_op *op;
    void *operand; /* for the elements of another rank, where they have holes; as a buffer of t */
    void *partial; /* for a part of a piece, where there is no `out`; the same */
};

static enum mr_err make_buffer(const struct mr_type *t, size_t count, void **buf)
{
    struct mr_span span = mr_type_span(t, count);
    char *memory = malloc(span.len + 1);

    if (!memory)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a part of a reduction");
    *buf = memory - span.lo;
    return MR_SUCCESS;
}

static void free_buffer(const struct mr_type *t, size_t count, void *buf)
{
    if (buf)
        free((char *)buf + mr_type_span(t, count).lo);
}

/* Elements that lie packed at `from`, as a buffer of the type. */
static const void *operand_at(const struct reduction *r, const char *from, size_t count)
{
    if (r->t->contiguous)
        return from - r->t->true_lb;
    mr_type_unpack(r->operand, count, r->t, 0, from, count * r->t->size);
    return r->operand;
}

static void put_elements(const struct reduction *r, void *to, const char *from, size_t count)
{
    if (r->t->contiguous)
        mr_copy_in((char *)to + r->t->true_lb, from, count * r->t->size);
    else
        mr_type_unpack(to, count, r->t, 0, from, count * r->t->size);
}

bool mr_node_reduces(const struct mr_node *n, const struct mr_type *t)
{
    return t->size && t->size <= n->bulk.shape.slot_bytes;
}

/* ---- few bytes --------------------------------------------------------------------------------------------------- */

/* Another rank's operand; NULL: there is none, *err says why. */
static const char *small_operand(struct reduction *r, int rank, uint64_t piece, enum mr_err *err)
{
    const struct mr_node_line *line = mr_node_first(&r->n->small, rank, piece);
    size_t bytes = r->count * r->t->size;
    enum mr_err wrong = mr_node_await(r->n, line, piece, rank);

    if (!wrong) {
        wrong = mr_node_amount(rank, mr_node_bytes(line), bytes);
        if (mr_node_bytes(line) > r->n->small.shape.slot_bytes)
            mr_node_break(r->n);
    }
    if (wrong && !*err)
        *err = wrong;
    return wrong || mr_node_bytes(line) != bytes ? NULL : mr_node_data(&r->n->small, rank, piece, bytes);
}

static enum mr_err make_small(struct reduction *r, uint64_t piece)
{
    enum mr_err err = MR_SUCCESS;
    bool begun = false;

    for (int i = r->last; i >= 0; i--) {
        bool mine = i == r->n->me;
        const char *at =
            mine ? mr_node_data(&r->n->small, i, piece, r->count * r->t->size) : small_operand(r, i, piece, &err);

        if (!at || err || !r->part)
            continue;
        at += r->first * r->t->size;
        if (begun)
            mr_op_apply(r->op, mine && !r->in_place ? mr_at(r->in, r->first, r->t) : operand_at(r, at, r->part), r->out,
                        r->part, r->t);
        else if (mine && !r->in_place)
            mr_type_copy(mr_at(r->in, r->first, r->t), r->part, r->t, r->out, r->part, r->t);
        else
            put_elements(r, r->out, at, r->part);
        begun = true;
    }
    return err;
}

static enum mr_err reduce_small(struct reduction *r, bool tells)
{
    struct mr_node *n = r->n;
    size_t bytes = r->count * r->t->size;
    uint64_t piece = n->small.next++;
    enum mr_err err = MR_SUCCESS;

    if (r->out && !r->t->contiguous)
        err = make_buffer(r->t, r->part, &r->operand);
    if (tells || r->in_place) {
        enum mr_err full = mr_node_await_room(n, piece);

        if (!full) {
            mr_node_to_write(n, &n->small, piece, bytes);
            mr_node_put(n, r->in, r->count, r->t, 0, mr_node_data(&n->small, n->me, piece, bytes), bytes);
        }
        err = err ? err : full;
    }
    if (tells) {
        mr_node_publish(mr_node_first(&n->small, n->me, piece), piece, bytes);
        mr_node_wake(n);
    }
    if (r->out && !err)
        err = make_small(r, piece);
    mr_node_done(&n->small, piece);
    mr_node_wake(n);
    free_buffer(r->t, r->part, r->operand);
    return err;
}

/* ---- more -------------------------------------------------------------------------------------------------------- */

struct pieces {
    size_t each; /* elements */
    uint64_t from, num;
    uint64_t ahead, lag; /* pieces that a rank writes before making its part of one piece; after which it collects */
    bool in_slot;        /* parts are made where this rank's own elements are */
};

/*
 * A part made in the slot begins with this rank's own elements, so the operation must commute, and the elements must
 * have the operation's form there. With more ranks than cores each wait is a change of processes: then as many pieces
 * as there is room for are under way.
 */
static struct pieces cut_pieces(struct reduction *r)
{
    enum { LEAST = 8192, WANTED = 4 };
    struct mr_node *n = r->n;
    size_t most = n->bulk.shape.slot_bytes / r->t->size, least = LEAST / r->t->size + 1;
    struct pieces p = {.each = most, .from = n->bulk.next, .in_slot = r->op->commutative && r->t->contiguous};

    if (!n->crowded && r->count / WANTED < most) {
        p.each = r->count / WANTED + 1;
        p.each = p.each > least ? p.each : least;
        p.each = p.each < most ? p.each : most;
    }
    p.num = (r->count + p.each - 1) / p.each;
    p.lag = n->crowded ? (uint64_t)n->bulk.shape.lines / 2 - 1 : 1;
    p.ahead = n->crowded ? (uint64_t)n->bulk.shape.lines - 1 - p.lag : 1;
    n->bulk.next += p.num;
    return p;
}

static size_t elements_of(const struct reduction *r, const struct pieces *p, uint64_t k)
{
    size_t at = (size_t)k * p->each;

    return r->count - at < p->each ? r->count - at : p->each;
}

static enum mr_err write_pieces(struct reduction *r, const struct pieces *p, uint64_t k, uint64_t *written)
{
    struct mr_node *n = r->n;

    for (; *written < p->num && *written <= k + p->ahead; ++*written) {
        uint64_t piece = p->from + *written;
        size_t count = elements_of(r, p, *written), bytes = count * r->t->size;
        char *to = NULL;
        enum mr_err err = MR_SUCCESS;

        if (*written == k)
            err = mr_node_begin_long(n, piece, bytes, &to);
        else
            to = mr_node_try_long(n, piece, bytes);
        if (!to)
            return err;
        mr_node_put(n, mr_at(r->in, (size_t)*written * p->each, r->t), count, r->t, 0, to, bytes);
        mr_node_publish(mr_node_first(&n->bulk, n->me, piece), piece, r->count * r->t->size);
        mr_node_wake(n);
    }
    return MR_SUCCESS;
}

/* This rank's part of a piece: its second half from all ranks' first halves. */
static enum mr_err make_part(struct reduction *r, const struct pieces *p, uint64_t k)
{
    struct mr_node *n = r->n;
    uint64_t piece = p->from + k;
    size_t all = elements_of(r, p, k), first = mr_part(all, n->ranks, n->me);
    size_t count = mr_part(all, n->ranks, n->me + 1) - first, at = first * r->t->size;
    char *mine, *theirs;
    void *acc;
    enum mr_err err = mr_node_await_long(n, n->me, piece, all * r->t->size, &mine);

    if (err)
        return err;
    mine += at;
    acc = p->in_slot ? mine - r->t->true_lb
          : r->out   ? mr_at_mut(r->out, (size_t)k * p->each + first, r->t)
                     : r->partial;
    for (int j = 0; j < n->ranks && !err; j++) {
        int i = p->in_slot ? (n->me + j) % n->ranks : n->ranks - 1 - j;

        if (i != n->me)
            err = mr_node_await_long(n, i, piece, all * r->t->size, &theirs);
        if (err || !count || (j == 0 && p->in_slot))
            continue;
        theirs = i == n->me ? mine : theirs + at;
        if (j == 0)
            put_elements(r, acc, theirs, count);
        else
            mr_op_apply(r->op, operand_at(r, theirs, count), acc, count, r->t);
    }
    if (err)
        return err;
    if (!p->in_slot && count)
        mr_type_pack(acc, count, r->t, 0, mine, count * r->t->size);
    mr_node_publish(mr_node_second(&n->bulk, n->me, piece), piece, count * r->t->size);
    mr_node_wake(n);
    return MR_SUCCESS;
}

static enum mr_err collect_parts(struct reduction *r, const struct pieces *p, uint64_t k)
{
    struct mr_node *n = r->n;
    uint64_t piece = p->from + k;
    size_t all = elements_of(r, p, k);
    enum mr_err err = MR_SUCCESS;

    for (int j = 0; j < n->ranks && !err && r->out; j++) {
        int i = (n->me + j) % n->ranks;
        size_t first = mr_part(all, n->ranks, i), count = mr_part(all, n->ranks, i + 1) - first;
        char *at;

        if (i != n->me)
            err = mr_node_await(n, mr_node_second(&n->bulk, i, piece), piece, i);
        err = err ? err : mr_node_await_long(n, i, piece, all * r->t->size, &at);
        if (!err && count)
            put_elements(r, mr_at_mut(r->out, (size_t)k * p->each + first, r->t), at + first * r->t->size, count);
    }
    if (!err) /* or this rank has left */
        mr_node_done(&n->bulk, piece);
    mr_node_wake(n);
    return err;
}

/* All hear from all how many bytes there are; with different ideas of that no part can be made. */
static enum mr_err agree_on_bytes(struct reduction *r)
{
    struct mr_node *n = r->n;
    uint64_t piece = n->small.next++;
    size_t bytes = r->count * r->t->size;
    enum mr_err err = mr_node_await_room(n, piece);

    if (!err)
        mr_node_publish(mr_node_first(&n->small, n->me, piece), piece, bytes);
    mr_node_wake(n);
    for (int j = 1; j < n->ranks && !err; j++) {
        int i = (n->me + j) % n->ranks;
        const struct mr_node_line *line = mr_node_first(&n->small, i, piece);

        err = mr_node_await(n, line, piece, i);
        if (!err && mr_node_bytes(line) != bytes) {
            err = mr_node_amount(i, mr_node_bytes(line), bytes);
            err = err ? err : MR_ERR_COUNT;
            mr_node_break(n);
        }
    }
    mr_node_done(&n->small, piece);
    return err;
}

static enum mr_err reduce_pieces(struct reduction *r)
{
    struct pieces p = cut_pieces(r);
    size_t part = mr_part(p.each, r->n->ranks, 1);
    uint64_t written = 0;
    enum mr_err err = MR_SUCCESS;

    if (!r->t->contiguous)
        err = make_buffer(r->t, part, &r->operand);
    if (!err && !p.in_slot && !r->out)
        err = make_buffer(r->t, part, &r->partial);
    if (err) /* the others wait for our parts */
        mr_node_break(r->n);
    if (!err)
        err = write_pieces(r, &p, 0, &written);
    if (!err)
        err = agree_on_bytes(r);
    for (uint64_t k = 0; k < p.num + p.lag && !err; k++) {
        if (k < p.num) {
            err = written < p.num ? write_pieces(r, &p, k, &written) : MR_SUCCESS;
            err = err ? err : make_part(r, &p, k);
        }
        if (k >= p.lag && k - p.lag < p.num && !err)
            err = collect_parts(r, &p, k - p.lag);
    }
    free_buffer(r->t, part, r->operand);
    free_buffer(r->t, part, r->partial);
    return err;
}

/* ---- more, at the root ------------------------------------------------------------------------------------------- */

/*
 * With two ranks, and while there are not too many bytes in all, the root reduces the others' data as it arrives: less
 * is copied than if all made parts, and only the root waits. A part of the result is this rank's own at first, when the
 * first of the others arrives.
 */
enum { AT_ROOT_MAX = 512 * 1024 };

static bool is_at_root(const struct reduction *r)
{
    return r->op->commutative && (r->n->ranks == 2 || r->count * r->t->size <= AT_ROOT_MAX / (size_t)r->n->ranks);
}

static void fill_operand(void *arg, int rank, size_t offset, size_t len, char *to)
{
    const struct reduction *r = arg;

    mr_node_put(r->n, r->in, r->count, r->t, offset, to, len);
}

static void apply_operand(void *arg, int rank, size_t offset, size_t len, const char *from)
{
    struct reduction *r = arg;
    size_t first = offset / r->t->size, count = len / r->t->size;
    void *acc = mr_at_mut(r->out, first, r->t);

    if (!r->in_place && rank == (r->n->me + r->n->ranks - 1) % r->n->ranks)
        mr_type_copy(mr_at(r->in, first, r->t), count, r->t, acc, count, r->t);
    mr_op_apply(r->op, operand_at(r, from, count), acc, count, r->t);
}

static enum mr_err reduce_at_root(struct reduction *r)
{
    struct mr_node *n = r->n;
    size_t bytes = r->count * r->t->size, most = n->bulk.shape.slot_bytes / r->t->size;
    enum mr_err err = MR_SUCCESS;

    if (r->out && !r->t->contiguous)
        err = make_buffer(r->t, most, &r->operand);
    if (err) /* the others wait for room */
        mr_node_break(n);
    else
        err = mr_node_exchange(n, &(struct mr_node_exchange){.writes = !r->out,
                                                             .gives = r->out ? 0 : bytes,
                                                             .expects = r->out ? bytes : 0,
                                                             .grain = r->t->size,
                                                             .stride = 1,
                                                             .num = r->out ? n->ranks - 1 : 0,
                                                             .fill = fill_operand,
                                                             .take = apply_operand,
                                                             .arg = r});
    free_buffer(r->t, most, r->operand);
    return err;
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

/* On all ranks: `out` is NULL where there shall be no result. */
static struct reduction reduction_of(struct mr_node *n, const void *in, void *out, size_t count, struct mr_type *t,
                                     struct mr_op *op)
{
    bool in_place = in == MR_IN_PLACE;

    return (struct reduction){.n = n,
                              .in = in_place ? out : in,
                              .out = out,
                              .in_place = in_place,
                              .count = count,
                              .part = count,
                              .last = n->ranks - 1,
                              .t = t,
                              .op = op};
}

enum mr_err mr_node_reduce(struct mr_node *n, const void *in, void *out, size_t count, struct mr_type *t,
                           struct mr_op *op, int root)
{
    bool is_root = n->me == root;
    struct reduction r = reduction_of(n, in, is_root ? out : NULL, count, t, op);
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    if (mr_node_takes(n, count * t->size))
        return reduce_small(&r, !is_root);
    return is_at_root(&r) ? reduce_at_root(&r) : reduce_pieces(&r);
}

enum mr_err mr_node_allreduce(struct mr_node *n, const void *in, void *out, size_t count, struct mr_type *t,
                              struct mr_op *op)
{
    struct reduction r = reduction_of(n, in, out, count, t, op);
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    return mr_node_takes(n, count * t->size) ? reduce_small(&r, true) : reduce_pieces(&r);
}

enum mr_err mr_node_reduce_scatter(struct mr_node *n, const void *in, void *out, const struct mr_vec *v,
                                   struct mr_op *op)
{
    struct reduction r = reduction_of(n, in, out, mr_vec_before(v, n->ranks), v->type, op);
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    r.first = mr_vec_before(v, n->me);
    r.part = mr_vec_count(v, n->me);
    return reduce_small(&r, true);
}

enum mr_err mr_node_scan(struct mr_node *n, const void *in, void *out, size_t count, struct mr_type *t,
                         struct mr_op *op, bool exclusive)
{
    struct reduction r = reduction_of(n, in, out, count, t, op);
    enum mr_err err = mr_node_begin(n);

    if (err)
        return err;
    r.last = exclusive ? n->me - 1 : n->me;
    return reduce_small(&r, true);
}
