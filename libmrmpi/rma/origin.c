/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The origin: operations are done at once in reachable memory, else sent to the target. Data in one piece in the window
 * and longer than a packet is a message of its own, from memory to memory; data with holes there, and accumulates, go
 * in packets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/copy.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/rma/access.h"

/* ---- requested operations ---------------------------------------------------------------------------------------- */

static size_t data_bytes(const struct mr_rma_data *d)
{
    return d->count * d->type->size;
}

static size_t place_bytes(const struct mr_rma_place *at)
{
    return at->count * at->type->size;
}

static enum mr_err check_same_size(const struct mr_rma_data *d, const struct mr_rma_place *at)
{
    if (data_bytes(d) == place_bytes(at))
        return MR_SUCCESS;
    return mr_fail(MR_ERR_ARG, "the origin has %zu bytes of data, the target %zu", data_bytes(d), place_bytes(at));
}

static enum mr_err out_of_range(const struct mr_rma_place *at)
{
    return mr_fail(MR_ERR_RMA_RANGE, "%zu bytes at displacement %td of rank %d are not in the window", place_bytes(at),
                   at->disp, at->rank);
}

/* Part of an operation on this process's own memory in a dynamic window. */
static enum mr_err own_part(const struct mr_pieces *p, size_t offset, void *arg)
{
    struct mr_rma_access *o = arg;
    int64_t lo, hi;
    char *mem;

    if (!mr_pieces_span(p->piece, p->num, p->bytes, &lo, &hi) ||
        !mr_win_place_pieces(o->w, o->addr, p->piece, p->num, lo, hi, &mem))
        return out_of_range(o->at);
    return MR_SUCCESS;
}

/* Its own memory is in reach of each process. */
static enum mr_err begin_own(struct mr_rma_access *o, struct mr_span span)
{
    const struct mr_rma_place *at = o->at;

    o->in_reach = true;
    if (mr_win_place(o->w, o->addr, span.lo, span.lo + (int64_t)span.len, &o->near))
        return MR_SUCCESS;
    if (o->w->flavor != MR_WIN_DYNAMIC)
        return out_of_range(at);
    return mr_pieces_cut(at->type, at->count, MR_NEAR_PART, 1, MR_PIECES_MAX, own_part, o);
}

/* Operations with requests are for epochs of locks (MPI-4.1 section 12.3.5). */
static enum mr_err may_request(const struct mr_rma_access *o)
{
    return !o->job || o->p->wanted ? MR_SUCCESS
                                   : mr_fail(MR_ERR_RMA_SYNC, "an operation with a request needs MPI_Win_lock or "
                                                              "MPI_Win_lock_all");
}

/* Finds the destination, if permitted. at->rank is one of the window. */
static enum mr_err begin_op(struct mr_rma_access *o, struct mr_win *w, const struct mr_rma_place *at)
{
    const struct mr_win_target *t = &w->in->target[at->rank];
    struct mr_span span = mr_type_span(at->type, at->count);
    bool dynamic = w->flavor == MR_WIN_DYNAMIC;
    ptrdiff_t addr, hi;
    enum mr_err err;

    o->at = at;
    err = mr_epoch_admit(w, at->rank, &o->p);
    if (!err)
        err = may_request(o);
    if (err)
        return err;
    if (__builtin_mul_overflow(at->disp, dynamic ? 1 : t->disp_unit, &addr) ||
        __builtin_add_overflow(addr, span.lo, &hi) || __builtin_add_overflow(hi, (ptrdiff_t)span.len, &hi))
        return out_of_range(at);
    if (place_bytes(at) && !dynamic && (addr + span.lo < 0 || hi < 0 || (size_t)hi > t->size))
        return out_of_range(at);
    o->addr = (uint64_t)addr;
    if (at->rank == w->comm->rank && place_bytes(at))
        return begin_own(o, span);
    o->in_reach = t->local;
    if (o->in_reach)
        o->near = t->local + addr;
    else
        o->vc = mr_rma_vc(w, at->rank);
    return MR_SUCCESS;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* The program's request. An operation that could not begin has none. */
static enum mr_err end_op(struct mr_rma_access *o, enum mr_err err, struct mr_request **req)
{
    struct mr_rma_job *j = o->job;

    if (!j)
        return err;
    *req = j->req;
    if (err) {
        mr_request_put(j->req);
        *req = NULL;
    }
    mr_rma_job_part_done(j, err);
    if (!err && (*req)->complete)
        mr_rma_poll(o->w, mr_progress_polls, false, err); /* its wait does not */
    return err;
}

static enum mr_err prepare_job(struct mr_rma_access *o, struct mr_win *w, struct mr_request **req)
{
    o->w = w;
    if (!req)
        return MR_SUCCESS;
    *req = NULL;
    o->job = mr_rma_job_new(w);
    return o->job ? MR_SUCCESS : MR_ERR_NO_MEM;
}

static bool is_nowhere(const struct mr_rma_place *at)
{
    return at->rank == MR_PROC_NULL;
}

/* A transfer of bytes in one piece at addr in the window. solid: here, too, at buf. */
static enum mr_err transfer_solid(struct mr_rma_access *o, bool solid, void *buf, size_t bytes, uint64_t addr)
{
    o->addr = addr;
    if (solid && o->what == MR_RMA_PUT && !o->job && mr_direct_write(o->p, buf, bytes, addr))
        return MR_SUCCESS;
    if (solid && mr_direct_move(o->p, o->job, buf, bytes, addr, o->what == MR_RMA_PUT))
        return MR_SUCCESS;
    if (!mr_access_fits(o, bytes)) {
        o->what = o->what == MR_RMA_PUT ? MR_RMA_PUT_LONG : MR_RMA_GET_LONG;
        return mr_access_long(o, bytes);
    }
    struct mr_pieces all = {.bytes = bytes};
    return o->what == MR_RMA_PUT ? mr_access_put(&all, 0, o) : mr_access_get(&all, 0, o);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/*
 * If all pieces of a datatype are at least this long, each is moved by itself: a request costs less than two copies.
 * With more of them under way than this, the program waits.
 */
#define BLOCK_LEAST 4096u
#define BLOCKS_MOST 64u
#define CUT_MOST    (SIZE_MAX / 2) /* lists are cut by their number of pieces only */

/* Both sides have the same pieces, or one of them is in one piece. */
struct blocks {
    struct mr_rma_access *o;
    char *here;
    uint64_t there;
    bool holes_here, holes_there;
};

static enum mr_err is_long(const struct mr_pieces *p, size_t offset, void *arg)
{
    for (unsigned i = 0; i < p->num; i++)
        if (p->piece[i].elem < BLOCK_LEAST)
            return MR_ERR_TYPE;
    return MR_SUCCESS;
}

static bool has_fewer_open(const struct mr_rma_peer *p, uint32_t goal)
{
    return p->open <= goal;
}

static enum mr_err move_target_block(const struct blocks *b, int64_t at, size_t offset, size_t len)
{
    char *buf = b->here + (b->holes_here ? at : (int64_t)offset);
    struct mr_rma_data here = {.buf = buf, .count = len, .type = mr_type_byte};
    struct mr_rma_access part = *b->o;

    if (part.what == MR_RMA_PUT)
        part.from = &here;
    else
        part.result = &here;
    if (part.p->open > BLOCKS_MOST && mr_rma_await(part.p, has_fewer_open, BLOCKS_MOST / 2))
        return mr_rma_lost(part.p);
    return transfer_solid(&part, true, buf, len, b->there + (b->holes_there ? (uint64_t)at : offset));
}

static enum mr_err move_blocks(const struct mr_pieces *p, size_t offset, void *arg)
{
    enum mr_err err = MR_SUCCESS;

    for (unsigned i = 0; i < p->num; i++)
        for (uint32_t k = 0; k < p->piece[i].count && !err; k++) {
            err = move_target_block(arg, p->piece[i].at + (int64_t)k * p->piece[i].stride, offset, p->piece[i].elem);
            offset += p->piece[i].elem;
        }
    return err;
}

/* False: not of that kind. */
static bool transfer_blocks(struct mr_rma_access *o, enum mr_err *err)
{
    const struct mr_rma_data *here = o->what == MR_RMA_PUT ? o->from : o->result;
    const struct mr_type *mine = here->type, *theirs = o->at->type, *t = theirs->contiguous ? mine : theirs;
    size_t count = theirs->contiguous ? here->count : o->at->count;
    struct blocks b = {.o = o,
                       .here = (char *)here->buf + (mine->contiguous ? mine->true_lb : 0),
                       .there = o->addr + (uint64_t)(theirs->contiguous ? theirs->true_lb : 0),
                       .holes_here = !mine->contiguous,
                       .holes_there = !theirs->contiguous};

    if ((mine->contiguous && theirs->contiguous) || t->size > UINT32_MAX ||
        (!mine->contiguous && !theirs->contiguous && (mine != theirs || here->count != count)) ||
        mr_pieces_cut(t, count, CUT_MOST, 1, MR_PIECES_MAX, is_long, NULL) ||
        !mr_direct_moves(o->p, b.there, BLOCK_LEAST))
        return false;
    *err = mr_pieces_cut(t, count, CUT_MOST, 1, MR_PIECES_MAX, move_blocks, &b);
    return true;
}

static enum mr_err transfer(struct mr_rma_access *o)
{
    const struct mr_rma_data *here = o->what == MR_RMA_PUT ? o->from : o->result;
    const struct mr_rma_place *at = o->at;
    size_t bytes = place_bytes(at);
    enum mr_err err;

    if (!bytes)
        return MR_SUCCESS;
    if (o->in_reach && o->what == MR_RMA_PUT)
        mr_type_copy(o->from->buf, o->from->count, o->from->type, o->near, at->count, at->type);
    else if (o->in_reach)
        mr_type_copy(o->near, at->count, at->type, o->result->buf, o->result->count, o->result->type);
    if (o->in_reach)
        return MR_SUCCESS;
    if (bytes >= BLOCK_LEAST && transfer_blocks(o, &err))
        return err;
    if (at->type->contiguous)
        return transfer_solid(o, here->type->contiguous, (char *)here->buf + here->type->true_lb, bytes,
                              o->addr + (uint64_t)at->type->true_lb);
    return mr_pieces_cut(at->type, at->count, mr_access_room(o, 1), 1, mr_pieces_most(mr_vc_eager_max(o->vc)),
                         o->what == MR_RMA_PUT ? mr_access_put : mr_access_get, o);
}

enum mr_err mr_put(struct mr_win *w, const struct mr_rma_data *from, const struct mr_rma_place *to,
                   struct mr_request **req)
{
    struct mr_rma_access o = {.what = MR_RMA_PUT, .from = from};
    enum mr_err err = prepare_job(&o, w, req);

    if (err)
        return err;
    err = is_nowhere(to) ? MR_SUCCESS : check_same_size(from, to);
    if (!err && !is_nowhere(to))
        err = begin_op(&o, w, to);
    if (!err && !is_nowhere(to))
        err = transfer(&o);
    return end_op(&o, err, req);
}

enum mr_err mr_get(struct mr_win *w, const struct mr_rma_data *to, const struct mr_rma_place *from,
                   struct mr_request **req)
{
    struct mr_rma_access o = {.what = MR_RMA_GET, .result = to};
    enum mr_err err = prepare_job(&o, w, req);

    if (err)
        return err;
    err = is_nowhere(from) ? MR_SUCCESS : check_same_size(to, from);
    if (!err && !is_nowhere(from))
        err = begin_op(&o, w, from);
    if (!err && !is_nowhere(from))
        err = transfer(&o);
    return end_op(&o, err, req);
}

/*
 * The place of bytes from displacement disp of its part, if all of them are in it, nothing has to be done before, and
 * there is no error: the general path handles both. NULL: take the general path.
 */
static inline const struct mr_win_target *fast_target(const struct mr_win *w, int rank, ptrdiff_t disp, size_t bytes,
                                                      size_t *at)
{
    const struct mr_win_state *s = w->in;
    const struct mr_win_target *t = &s->target[rank];

    if (unlikely(!t->peer || !mr_epoch_is_open(s, t->peer)))
        return NULL;
    if (__builtin_mul_overflow((size_t)disp, (size_t)t->disp_unit, at) || bytes > t->size || *at > t->size - bytes)
        return NULL;
    return t;
}

/* A short put often goes alone. */
static inline void copy_away(void *to, const void *from, size_t bytes)
{
    if (bytes == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else if (to != from)
        mr_copy_away(to, from, bytes);
}

static __attribute__((noinline)) enum mr_err put_long(struct mr_win *w, const void *data, size_t bytes, int rank,
                                                      ptrdiff_t disp)
{
    struct mr_rma_data from = {.buf = (void *)(uintptr_t)data, .count = bytes, .type = mr_type_byte};
    struct mr_rma_place to = {.rank = rank, .disp = disp, .count = bytes, .type = mr_type_byte};

    return mr_put(w, &from, &to, NULL);
}

static __attribute__((noinline)) enum mr_err get_long(struct mr_win *w, void *data, size_t bytes, int rank,
                                                      ptrdiff_t disp)
{
    struct mr_rma_data to = {.buf = data, .count = bytes, .type = mr_type_byte};
    struct mr_rma_place from = {.rank = rank, .disp = disp, .count = bytes, .type = mr_type_byte};

    return mr_get(w, &to, &from, NULL);
}

/* To a target out of reach, if a list could not take it. */
static __attribute__((noinline)) enum mr_err put_far(const struct mr_win_target *t, const void *data, size_t bytes,
                                                     size_t at)
{
    struct mr_rma_peer *p = t->peer;

    if (mr_direct_write(p, data, bytes, at))
        return MR_SUCCESS;
    return put_long(p->win, data, bytes, p->rank, (ptrdiff_t)at / t->disp_unit);
}

enum mr_err mr_put_bytes(struct mr_win *w, const void *data, size_t bytes, int rank, ptrdiff_t disp)
{
    size_t at;
    const struct mr_win_target *t = fast_target(w, rank, disp, bytes, &at);

    if (unlikely(!t))
        return put_long(w, data, bytes, rank, disp);
    if (t->local) {
        copy_away(t->local + at, data, bytes);
        return MR_SUCCESS;
    }
    if (likely(t->peer->writer && mr_net_writer_add(t->peer->writer, at, data, bytes)))
        return MR_SUCCESS;
    return put_far(t, data, bytes, at);
}

enum mr_err mr_get_bytes(struct mr_win *w, void *data, size_t bytes, int rank, ptrdiff_t disp)
{
    size_t at;
    const struct mr_win_target *t = fast_target(w, rank, disp, bytes, &at);

    if (unlikely(!t || !t->local))
        return get_long(w, data, bytes, rank, disp);
    copy_away(data, t->local + at, bytes);
    return MR_SUCCESS;
}

/*
 * The operand type of an operation: the one basic type of the place's datatype. To arithmetic MPI_BYTE is
 * MPI_UNSIGNED_CHAR here, unlike in reductions (MPI-4.1 section 6.9.2), as in MPICH's windows, and programs use this.
 */
static enum mr_err find_basic(struct mr_rma_access *o, const struct mr_rma_place *at, const struct mr_op *op)
{
    if (at->type->basic >= MR_NUM_BASICS)
        return mr_fail(MR_ERR_TYPE, "the target's datatype has more than one basic type");
    o->basic = &mr_type_basic[at->type->basic];
    if (op->id != MR_OP_NO_OP && !mr_op_alike(o->from->type->basic, at->type->basic))
        return mr_fail(MR_ERR_TYPE, "the origin's datatype is not made of what the target's is made of, %s",
                       mr_type_name(o->basic));
    if (op->id == MR_OP_REPLACE || op->id == MR_OP_NO_OP || mr_op_allows(op, o->basic))
        return MR_SUCCESS;
    if (o->basic == mr_type_byte)
        o->basic = &mr_type_basic[MR_BASIC_UNSIGNED_CHAR];
    if (!mr_op_allows(op, o->basic))
        return mr_fail(MR_ERR_OP, "%s is not defined on %s", mr_op_name(op), mr_type_name(o->basic));
    return MR_SUCCESS;
}

static enum mr_err update_target(struct mr_rma_access *o)
{
    const struct mr_rma_place *at = o->at;
    size_t unit;

    if (!place_bytes(at))
        return MR_SUCCESS;
    unit = o->basic->size;
    if (o->in_reach)
        return mr_pieces_cut(at->type, at->count, MR_NEAR_PART / unit * unit, unit, MR_PIECES_MAX,
                             mr_access_accumulate_near, o);
    return mr_pieces_cut(at->type, at->count, mr_access_room(o, unit), unit, mr_pieces_most(mr_vc_eager_max(o->vc)),
                         mr_access_accumulate, o);
}

enum mr_err mr_accumulate(struct mr_win *w, const struct mr_rma_data *from, const struct mr_rma_data *result,
                          const struct mr_rma_place *to, const struct mr_op *op, struct mr_request **req)
{
    struct mr_rma_access o = {
        .what = result ? MR_RMA_FETCH : MR_RMA_ACC, .code = op->id, .from = from, .result = result};
    enum mr_err err = prepare_job(&o, w, req);

    if (err || is_nowhere(to))
        return end_op(&o, err, req);
    w->in->asked = op->id == MR_OP_NO_OP;
    if (op->id == MR_OP_NO_OP && !result)
        err = mr_fail(MR_ERR_OP, "MPI_NO_OP gets something, or there is nothing to do");
    else if (op->id != MR_OP_NO_OP)
        err = check_same_size(from, to);
    if (!err && result)
        err = check_same_size(result, to);
    if (!err && place_bytes(to)) /* no elements, no type of elements */
        err = find_basic(&o, to, op);
    if (!err)
        err = begin_op(&o, w, to);
    if (!err)
        err = update_target(&o);
    return end_op(&o, err, req);
}

/* Of two stretches of so many bytes no byte is in both. */
static inline bool are_apart(const void *a, const void *b, size_t bytes)
{
    return (uintptr_t)a - (uintptr_t)b + bytes - 1 >= 2 * bytes - 1;
}

/* The operation's loops may use them in place, and the mutex is not held for long. */
static inline bool updates_in_place(const char *mem, const void *in, const void *result, size_t bytes,
                                    const struct mr_type *t, const struct mr_op *op)
{
    if (bytes > MR_NEAR_PART || (op->id != MR_OP_REPLACE && !mr_op_allows(op, t)))
        return false;
    return ((uintptr_t)mem | (uintptr_t)in) % t->align == 0 && are_apart(mem, in, bytes) &&
           (!result || (are_apart(mem, result, bytes) && are_apart(in, result, bytes)));
}

static __attribute__((noinline)) enum mr_err update_long(struct mr_win *w, const void *in, void *result, size_t count,
                                                         struct mr_type *t, int rank, ptrdiff_t disp,
                                                         const struct mr_op *op)
{
    struct mr_rma_data from = {.buf = (void *)(uintptr_t)in, .count = count, .type = t};
    struct mr_rma_data to = {.buf = result, .count = count, .type = t};
    struct mr_rma_place at = {.rank = rank, .disp = disp, .count = count, .type = t};

    return mr_accumulate(w, &from, result ? &to : NULL, &at, op, NULL);
}

enum mr_err mr_update_elements(struct mr_win *w, const void *in, void *result, size_t count, struct mr_type *t,
                               int rank, ptrdiff_t disp, const struct mr_op *op)
{
    size_t at, bytes = count * t->size;
    const struct mr_win_target *target = fast_target(w, rank, disp, bytes, &at);
    char *mem = target ? target->local + at : NULL;

    if (unlikely(!target || !target->local || !target->mutex) ||
        unlikely(!updates_in_place(mem, in, result, bytes, t, op)))
        return update_long(w, in, result, count, t, rank, disp, op);
    mr_winmem_take(&target->mutex->holder);
    if (result)
        copy_away(result, mem, bytes);
    if (op->id == MR_OP_REPLACE)
        copy_away(mem, in, bytes);
    else
        mr_op_apply(op, in, mem, count, t);
    mr_winmem_give(&target->mutex->holder);
    return MR_SUCCESS;
}

enum mr_err mr_compare_and_swap(struct mr_win *w, const void *value, const void *compare, void *result,
                                const struct mr_rma_place *at)
{
    struct mr_rma_data to = {.buf = result, .count = 1, .type = at->type};
    struct mr_rma_access o = {.w = w, .what = MR_RMA_SWAP, .code = MR_PIECES_SWAP, .result = &to, .basic = at->type};
    struct mr_pieces one = {.bytes = at->type->size};
    char data[2 * sizeof(long double)];
    enum mr_err err = is_nowhere(at) ? MR_SUCCESS : begin_op(&o, w, at);

    if (err || is_nowhere(at))
        return err;
    if (2 * one.bytes > sizeof(data))
        return mr_fail(MR_ERR_TYPE, "%s cannot be compared", mr_type_name(at->type));
    memcpy(data, value, one.bytes);
    memcpy(data + one.bytes, compare, one.bytes);
    err = o.in_reach ? mr_rma_apply(w->in->target[at->rank].mutex, o.near, &one, o.code, o.basic, data, result)
                     : mr_access_ask(&one, 0, 2 * one.bytes, data, &o);
    w->in->asked = o.in_reach && memcmp(result, data + one.bytes, one.bytes) != 0;
    return err;
}
