/* SPDX-License-Identifier: BSD-3-Clause */
/* Cutting datatypes into pieces, and operations on the memory of pieces. */
#include "libmrmpi/core/core.h"

#include <string.h>

#include "libmrmpi/core/layout.h"

/* ---- cutting ----------------------------------------------------------------------------------------------------- */

struct cutter {
    struct mr_pieces list;
    size_t most, unit, offset;
    unsigned pieces;
    mr_pieces_fn *each;
    void *arg;
    enum mr_err err;
};

static void hand_over(struct cutter *c)
{
    if (c->list.bytes && !c->err)
        c->err = c->each(&c->list, c->offset, c->arg);
    c->offset += c->list.bytes;
    c->list.bytes = 0;
    c->list.num = 0;
}

static void append_piece(struct cutter *c, ptrdiff_t at, size_t elem, size_t count, ptrdiff_t stride)
{
    c->list.piece[c->list.num++] =
        (struct mr_rma_piece){.at = at, .stride = stride, .count = (uint32_t)count, .elem = (uint32_t)elem};
    c->list.bytes += elem * count;
    /* A basic element has at most two stretches (MPI_SHORT_INT): there is room for its second stretch. */
    if (c->list.bytes == c->most || (c->list.num >= c->pieces - 1 && c->list.bytes % c->unit == 0))
        hand_over(c);
}

/* count stretches, stride apart. */
static void cut_stretches(struct cutter *c, ptrdiff_t at, size_t elem, size_t count, ptrdiff_t stride)
{
    while (count && !c->err) {
        size_t room = c->most - c->list.bytes, n = room / elem;

        if (n > count)
            n = count;
        if (n > UINT32_MAX)
            n = UINT32_MAX;
        if (n) {
            append_piece(c, at, elem, n, stride);
            at += (ptrdiff_t)n * stride;
            count -= n;
            continue;
        }
        /* An element longer than the rest of a packet. */
        for (size_t done = 0; done < elem && !c->err;) {
            size_t len = elem - done;

            if (len > c->most - c->list.bytes)
                len = c->most - c->list.bytes;
            append_piece(c, at + (ptrdiff_t)done, len, 1, 0);
            done += len;
        }
        at += stride;
        count--;
    }
}

static size_t piece_bytes(const struct mr_run *r, size_t i)
{
    return r->before ? r->before[i + 1] - r->before[i] : r->elem;
}

static void cut_layout(struct cutter *c, const struct mr_layout *l, ptrdiff_t base)
{
    for (size_t k = 0; k < l->num && !c->err; k++) {
        const struct mr_run *r = &l->runs[k];

        if (!r->child && !r->at) {
            cut_stretches(c, base + r->disp, r->elem, r->count, r->stride);
            continue;
        }
        for (size_t i = 0; i < r->count && !c->err; i++) {
            ptrdiff_t at = base + r->disp + (r->at ? r->at[i] : (ptrdiff_t)i * r->stride);

            if (r->child)
                cut_layout(c, r->child, at);
            else if (piece_bytes(r, i))
                cut_stretches(c, at, piece_bytes(r, i), 1, 0);
        }
    }
}

enum mr_err mr_pieces_cut(const struct mr_type *t, size_t count, size_t most, size_t unit, unsigned pieces,
                          mr_pieces_fn *each, void *arg)
{
    struct cutter c = {.most = most, .unit = unit, .pieces = pieces, .each = each, .arg = arg};
    const struct mr_layout *l = t->layout;

    if (!t->size || !count)
        return MR_SUCCESS;
    if (t->contiguous)
        cut_stretches(&c, t->true_lb, t->size * count, 1, 0);
    else if (l->num == 1 && !l->runs[0].child && l->runs[0].count == 1 && !l->runs[0].at)
        cut_stretches(&c, l->runs[0].disp, l->runs[0].elem, count, t->extent);
    else
        for (size_t i = 0; i < count && !c.err; i++)
            cut_layout(&c, l, (ptrdiff_t)i * t->extent);
    hand_over(&c);
    return c.err;
}

/* ---- the memory of pieces ---------------------------------------------------------------------------------------- */

static bool piece_span(const struct mr_rma_piece *p, int64_t *first, int64_t *last)
{
    int64_t span, end;

    if (!p->count || !p->elem || __builtin_mul_overflow(p->stride, (int64_t)p->count - 1, &span) ||
        __builtin_add_overflow(p->at, span, &end))
        return false;
    *first = span < 0 ? end : p->at;
    return !__builtin_add_overflow(span < 0 ? p->at : end, (int64_t)p->elem, last);
}

bool mr_pieces_span(const struct mr_rma_piece *piece, unsigned num, size_t bytes, int64_t *lo, int64_t *hi)
{
    uint64_t sum = 0;

    if (!num) {
        *lo = 0;
        *hi = (int64_t)bytes;
        return bytes <= INT64_MAX;
    }
    *lo = INT64_MAX;
    *hi = INT64_MIN;
    for (unsigned i = 0; i < num; i++) {
        int64_t first, last;

        if (!piece_span(&piece[i], &first, &last))
            return false;
        *lo = first < *lo ? first : *lo;
        *hi = last > *hi ? last : *hi;
        sum += (uint64_t)piece[i].count * piece[i].elem; /* both of 32 bits; few pieces */
    }
    return sum == bytes;
}

void mr_pieces_gather(const char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, void *out)
{
    char *to = out;

    if (!num)
        memcpy(to, mem, bytes);
    for (unsigned i = 0; i < num; i++)
        for (uint32_t k = 0; k < piece[i].count; k++, to += piece[i].elem)
            memcpy(to, mem + piece[i].at + (int64_t)k * piece[i].stride, piece[i].elem);
}

void mr_pieces_scatter(char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, const void *in)
{
    const char *from = in;

    if (!num)
        memcpy(mem, from, bytes);
    for (unsigned i = 0; i < num; i++)
        for (uint32_t k = 0; k < piece[i].count; k++, from += piece[i].elem)
            memcpy(mem + piece[i].at + (int64_t)k * piece[i].stride, from, piece[i].elem);
}

static bool is_contiguous(const struct mr_rma_piece *piece, unsigned num)
{
    return !num || (num == 1 && (piece->count == 1 || piece->stride == (int64_t)piece->elem));
}

/* The loops of operations take elements at the processor's alignment, in their form in memory. */
static bool fits_in_place(const void *p, const struct mr_type *basic)
{
    return (size_t)basic->extent == basic->size && (uintptr_t)p % basic->align == 0;
}

static void combine(char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, const struct mr_op *op,
                    struct mr_type *basic, const void *in, char *scratch)
{
    size_t n = bytes / basic->size, room = n * (size_t)basic->extent;
    char *own = scratch, *other = scratch + (room + 31) / 32 * 32;
    char *one = mem + (num ? piece->at : 0);

    if (!fits_in_place(in, basic)) {
        mr_type_unpack(other, n, basic, 0, in, bytes);
        in = other;
    }
    if (is_contiguous(piece, num) && fits_in_place(one, basic)) {
        mr_op_apply(op, in, one, n, basic);
        return;
    }
    if (basic->contiguous) {
        mr_pieces_gather(mem, piece, num, bytes, own);
        mr_op_apply(op, in, own, n, basic);
        mr_pieces_scatter(mem, piece, num, bytes, own);
        return;
    }
    char *packed = other + (room + 31) / 32 * 32;
    mr_pieces_gather(mem, piece, num, bytes, packed);
    mr_type_unpack(own, n, basic, 0, packed, bytes);
    mr_op_apply(op, in, own, n, basic);
    mr_type_pack(own, n, basic, 0, packed, bytes);
    mr_pieces_scatter(mem, piece, num, bytes, packed);
}

void mr_pieces_apply(char *mem, const struct mr_rma_piece *piece, unsigned num, size_t bytes, unsigned op,
                     struct mr_type *basic, const void *in, void *old, void *scratch)
{
    if (op == MR_PIECES_SWAP) {
        mr_pieces_gather(mem, piece, num, bytes, old);
        if (!memcmp(old, (const char *)in + bytes, bytes))
            mr_pieces_scatter(mem, piece, num, bytes, in);
        return;
    }
    if (old)
        mr_pieces_gather(mem, piece, num, bytes, old);
    if (op == MR_OP_REPLACE)
        mr_pieces_scatter(mem, piece, num, bytes, in);
    else if (op != MR_OP_NO_OP)
        combine(mem, piece, num, bytes, &mr_op_builtin[op], basic, in, scratch);
}
