/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packing and unpacking: bytes [offset, offset + len) of the packed form of (buf, count, type). Stateless: where an
 * offset lies is found again by division and bisection, so a protocol may resume anywhere at no cost worth remembering.
 */
#include "libmrmpi/core/core.h"
#include "libmrmpi/core/layout.h"
#include "libmrmpi/core/move.h"

#include <string.h>

struct copy {
    char *flat;  /* the packed side */
    size_t left; /* bytes still to go */
    bool unpack;
};

static inline void advance_flat(struct copy *c, size_t len)
{
    c->flat += len;
    c->left -= len;
}

static inline void move(struct copy *c, char *mem, size_t len)
{
    memcpy(c->unpack ? mem : c->flat, c->unpack ? c->flat : mem, len);
    advance_flat(c, len);
}

/* n pieces, in memory stride apart, in the packed form from `flat` on flat_step apart. */
static inline void copy_series(const struct copy *c, char *mem, ptrdiff_t stride, char *flat, size_t flat_step,
                               size_t n, size_t elem)
{
    if (c->unpack)
        mr_move_series(mem, stride, flat, (ptrdiff_t)flat_step, n, elem);
    else
        mr_move_series(flat, (ptrdiff_t)flat_step, mem, stride, n, elem);
}

/* n whole pieces, stride apart. */
static void move_series(struct copy *c, char *mem, size_t n, size_t elem, ptrdiff_t stride)
{
    if (n == 1) {
        move(c, mem, elem);
        return;
    }
    copy_series(c, mem, stride, c->flat, elem, n, elem);
    advance_flat(c, n * elem);
}

/*
 * MR_MOVE_ROWS series, pitch apart, whose pieces share cache lines with the pieces of the next series: columns of a
 * matrix.
 */
static void move_tile(struct copy *c, char *mem, ptrdiff_t pitch, const struct mr_run *r)
{
    ptrdiff_t row = (ptrdiff_t)(r->count * r->elem), elem = (ptrdiff_t)r->elem;
    if (c->unpack)
        mr_move_tile(mem, pitch, r->stride, c->flat, row, elem, r->count, r->elem);
    else
        mr_move_tile(c->flat, row, elem, mem, pitch, r->stride, r->count, r->elem);
    advance_flat(c, MR_MOVE_ROWS * (size_t)row);
}

static inline ptrdiff_t distance(ptrdiff_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* How close series have to be to be copied side by side, how far their pieces have to be apart. */
enum { LINE = 64, APART = 2 * LINE };

static bool fits_tile(const struct mr_run *r, ptrdiff_t pitch)
{
    return (r->elem == 4 || r->elem == 8 || r->elem == 16) && distance(pitch) <= LINE && distance(r->stride) >= APART;
}

/* count times the series that is all of r, pitch apart. */
static void move_rows(struct copy *c, char *mem, size_t count, ptrdiff_t pitch, const struct mr_run *r)
{
    mem += r->disp;
    if (fits_tile(r, pitch))
        for (; count >= MR_MOVE_ROWS; count -= MR_MOVE_ROWS, mem += MR_MOVE_ROWS * pitch)
            move_tile(c, mem, pitch, r);
    for (; count; count--, mem += pitch)
        move_series(c, mem, r->count, r->elem, r->stride);
}

static inline size_t bytes_before_piece(const struct mr_run *r, size_t piece)
{
    return r->before ? r->before[piece] : piece * r->elem;
}

/* n whole pieces of a run's list, from the first one on. */
static void move_list(struct copy *c, const struct mr_run *r, char *mem, size_t first, size_t n)
{
    const size_t *before = r->before ? r->before + first : NULL;
    if (c->unpack)
        mr_move_scatter(mem, c->flat, r->at + first, n, r->elem, before);
    else
        mr_move_gather(c->flat, mem, r->at + first, n, r->elem, before);
    advance_flat(c, bytes_before_piece(r, first + n) - bytes_before_piece(r, first));
}

static void copy_layout(struct copy *c, const struct mr_layout *l, char *base, size_t offset);

static inline bool is_series(const struct mr_layout *l)
{
    return l->num == 1 && !l->runs[0].child && !l->runs[0].at;
}

/*
 * Small records of few pieces are copied faster piece by piece, all first pieces, all second pieces, than record by
 * record, if there are some more records than pieces.
 */
enum { FEW_PIECES = 16, BLOCK = 8192 };

static bool are_records(const struct mr_layout *l, size_t count)
{
    size_t pieces = 0;
    for (size_t i = 0; i < l->num && pieces <= FEW_PIECES; i++)
        pieces += l->runs[i].child ? FEW_PIECES + 1 : l->runs[i].count;
    return pieces <= FEW_PIECES && pieces < count && l->size <= pieces * LINE;
}

/* n records, stride apart: few enough to stay in the nearest cache from one piece to the next. */
static void copy_records(struct copy *c, const struct mr_layout *l, char *mem, size_t n, ptrdiff_t stride)
{
    for (size_t k = 0; k < l->num; k++) {
        const struct mr_run *r = &l->runs[k];
        char *flat = c->flat + r->offset;
        for (size_t i = 0; i < r->count; i++) {
            size_t len = bytes_before_piece(r, i + 1) - bytes_before_piece(r, i);
            char *first = mem + r->disp + (r->at ? r->at[i] : (ptrdiff_t)i * r->stride);
            copy_series(c, first, stride, flat + bytes_before_piece(r, i), l->size, n, len);
        }
    }
    advance_flat(c, n * l->size);
}

/*
 * Records of at least so many steps of 16 bytes move as a whole, if there are enough of them to pay for the
 * preparation, which takes as long as a few records.
 */
enum { STEP = 16, SOME_STEPS = 3, MANY_RECORDS = 32 };

static bool move_whole_records(struct copy *c, const struct mr_layout *l, char *mem, size_t count, ptrdiff_t stride)
{
    struct mr_move_piece pieces[FEW_PIECES];
    size_t num = 0, steps = 0;
    for (size_t k = 0; k < l->num; k++) {
        const struct mr_run *r = &l->runs[k];
        for (size_t i = 0; i < r->count; i++, steps += (pieces[num - 1].len + STEP - 1) / STEP)
            pieces[num++] =
                (struct mr_move_piece){.place = r->disp + (r->at ? r->at[i] : (ptrdiff_t)i * r->stride),
                                       .at = r->offset + bytes_before_piece(r, i) - bytes_before_piece(r, 0),
                                       .len = bytes_before_piece(r, i + 1) - bytes_before_piece(r, i)};
    }
    if (steps < SOME_STEPS || !mr_move_records(mem, stride, c->flat, l->size, count, pieces, num, c->unpack))
        return false;
    advance_flat(c, count * l->size);
    return true;
}

static void move_records(struct copy *c, const struct mr_layout *l, char *mem, size_t count, ptrdiff_t stride)
{
    if (count >= MANY_RECORDS && move_whole_records(c, l, mem, count, stride))
        return;
    size_t apart = (size_t)distance(stride), block = apart < BLOCK / FEW_PIECES ? BLOCK / (apart + 1) : FEW_PIECES;
    for (size_t n; count; count -= n, mem += (ptrdiff_t)n * stride) {
        n = count < block ? count : block;
        copy_records(c, l, mem, n, stride);
    }
}

/* count whole layouts, stride apart: no division, no search. */
static void copy_layouts(struct copy *c, const struct mr_layout *l, char *mem, size_t count, ptrdiff_t stride)
{
    if (are_records(l, count))
        move_records(c, l, mem, count, stride);
    else if (is_series(l))
        move_rows(c, mem, count, stride, &l->runs[0]);
    else
        for (; count; count--, mem += stride)
            copy_layout(c, l, mem, 0);
}

/* All of a run. */
static inline void copy_whole_run(struct copy *c, const struct mr_run *r, char *mem)
{
    mem += r->disp;
    if (r->at)
        move_list(c, r, mem, 0, r->count);
    else if (!r->child)
        move_series(c, mem, r->count, r->elem, r->stride);
    else
        copy_layouts(c, r->child, mem, r->count, r->stride);
}

/* The run that contains offset. */
static size_t find_run(const struct mr_layout *l, size_t offset)
{
    size_t lo = 0, hi = l->num - 1;
    while (lo < hi) {
        size_t mid = (lo + hi + 1) / 2;
        if (l->runs[mid].offset <= offset)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* The piece of a run with a list that contains offset; the number of pieces for the run's end. */
static size_t find_piece(const struct mr_run *r, size_t offset)
{
    if (!r->before)
        return offset / r->elem;
    size_t lo = 0, hi = r->count;
    while (lo < hi) {
        size_t mid = (lo + hi + 1) / 2;
        if (r->before[mid] <= offset)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* A part of a run with a list, from offset on. */
static void copy_list(struct copy *c, const struct mr_run *r, char *mem, size_t offset)
{
    size_t i = find_piece(r, offset), within = offset - bytes_before_piece(r, i);
    if (within) {
        size_t len = bytes_before_piece(r, i + 1) - offset;
        move(c, mem + r->at[i] + (ptrdiff_t)within, len < c->left ? len : c->left);
        i++;
    }
    if (c->left == 0 || i == r->count)
        return;
    size_t end = bytes_before_piece(r, i) + c->left, size = mr_run_size(r);
    size_t last = find_piece(r, end < size ? end : size); /* pieces that end before are whole */
    move_list(c, r, mem, i, last - i);
    if (c->left && last < r->count)
        move(c, mem + r->at[last], c->left);
}

/* The pieces at mem, from offset on. */
static void copy_run(struct copy *c, const struct mr_run *r, char *mem, size_t offset)
{
    if (r->at) {
        copy_list(c, r, mem + r->disp, offset);
        return;
    }
    size_t i = offset / r->elem, within = offset % r->elem;
    mem += r->disp + (ptrdiff_t)i * r->stride;
    if (within || c->left < r->elem) { /* a part of a piece */
        size_t len = r->elem - within;
        if (r->child)
            copy_layout(c, r->child, mem, within);
        else
            move(c, mem + within, len < c->left ? len : c->left);
        i++;
        mem += r->stride;
    }
    size_t whole = c->left / r->elem;
    if (whole > r->count - i)
        whole = r->count - i;
    if (r->child)
        copy_layouts(c, r->child, mem, whole, r->stride);
    else if (whole)
        move_series(c, mem, whole, r->elem, r->stride);
    if (c->left == 0 || i + whole == r->count)
        return;
    mem += (ptrdiff_t)whole * r->stride;
    if (r->child)
        copy_layout(c, r->child, mem, 0);
    else
        move(c, mem, c->left);
}

static void copy_layout(struct copy *c, const struct mr_layout *l, char *base, size_t offset)
{
    if (offset == 0 && c->left >= l->size) {
        for (size_t i = 0; i < l->num; i++)
            copy_whole_run(c, &l->runs[i], base);
        return;
    }
    for (size_t i = offset ? find_run(l, offset) : 0; i < l->num && c->left; i++) {
        size_t within = offset > l->runs[i].offset ? offset - l->runs[i].offset : 0;
        if (within == 0 && c->left >= mr_run_size(&l->runs[i]))
            copy_whole_run(c, &l->runs[i], base);
        else
            copy_run(c, &l->runs[i], base, within);
    }
}

static void copy_type(struct copy *c, const struct mr_type *type, char *buf, size_t offset)
{
    if (c->left == 0)
        return;
    if (type->contiguous) {
        move(c, buf + type->true_lb + offset, c->left);
        return;
    }
    const struct mr_layout *l = type->layout;
    struct mr_run all = {.elem = type->size, .stride = type->extent, .child = l};
    if (l->num == 1 && l->runs[0].count == 1 && !l->runs[0].child &&
        !l->runs[0].at) { /* one stretch with a gap behind */
        all = l->runs[0];
        all.stride = type->extent;
    }
    all.count = (offset + c->left + all.elem - 1) / all.elem;
    copy_run(c, &all, buf, offset);
}

void mr_type_pack(const void *buf, size_t count, const struct mr_type *type, size_t offset, void *out, size_t len)
{
    struct copy c = {.flat = out, .left = len};
    copy_type(&c, type, (char *)(uintptr_t)buf, offset);
}

void mr_type_unpack(void *buf, size_t count, const struct mr_type *type, size_t offset, const void *in, size_t len)
{
    struct copy c = {.flat = (char *)(uintptr_t)in, .left = len, .unpack = true};
    copy_type(&c, type, buf, offset);
}

void mr_type_copy(const void *in, size_t in_count, const struct mr_type *in_type, void *out, size_t out_count,
                  const struct mr_type *out_type)
{
    size_t len = in_count * in_type->size, cap = out_count * out_type->size;
    if (len > cap)
        len = cap;
    if (len == 0)
        return;
    const char *from = (const char *)in + in_type->true_lb;
    if (in_type->contiguous && out_type->contiguous) {
        char *to = (char *)out + out_type->true_lb;
        if (from != to)
            memcpy(to, from, len);
    } else if (in_type->contiguous) {
        mr_type_unpack(out, out_count, out_type, 0, from, len);
    } else if (out_type->contiguous) {
        mr_type_pack(in, in_count, in_type, 0, (char *)out + out_type->true_lb, len);
    } else {
        char chunk[8192];
        for (size_t done = 0; done < len;) {
            size_t n = len - done < sizeof(chunk) ? len - done : sizeof(chunk);
            mr_type_pack(in, in_count, in_type, done, chunk, n);
            mr_type_unpack(out, out_count, out_type, done, chunk, n);
            done += n;
        }
    }
}
