/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packing and unpacking: bytes [offset, offset + len) of the packed form of (buf, count, type). Stateless: where an
 * offset lies is found again by division and bisection, so a protocol may resume anywhere at no cost worth remembering.
 */
#include "libmrmpi/core/core.h"
#include "libmrmpi/core/layout.h"
#include "libmrmpi/core/objects.h"

#include <string.h>

struct copy {
    char *flat;  /* the packed side */
    size_t left; /* bytes still to go */
    bool unpack;
};

#define INLINE static inline __attribute__((always_inline))

INLINE void move_bytes(bool unpack, char *mem, char *flat, size_t n)
{
    memcpy(unpack ? mem : flat, unpack ? flat : mem, n);
}

/* A piece whose size the compiler does not know: pieces are small as a rule, and then a call of memcpy costs more than
 * the copy. The end is moved with a step that may overlap the one before. */
INLINE void move_piece(bool unpack, char *mem, char *flat, size_t n)
{
    if (n > 64 || n < 4) {
        move_bytes(unpack, mem, flat, n);
    } else if (n >= 16) {
        for (size_t k = 0; k + 16 < n; k += 16)
            move_bytes(unpack, mem + k, flat + k, 16);
        move_bytes(unpack, mem + n - 16, flat + n - 16, 16);
    } else if (n >= 8) {
        move_bytes(unpack, mem, flat, 8);
        move_bytes(unpack, mem + n - 8, flat + n - 8, 8);
    } else {
        move_bytes(unpack, mem, flat, 4);
        move_bytes(unpack, mem + n - 4, flat + n - 4, 4);
    }
}

/* n pieces, stride apart; and `rows` of such series, pitch apart. The loop over a size that is known is what counts. */
INLINE void series(bool unpack, char *mem, char *flat, size_t rows, ptrdiff_t pitch, size_t n, size_t elem,
                   ptrdiff_t stride)
{
#define FIXED(bytes)                                                                                                   \
    case bytes:                                                                                                        \
        for (; rows; rows--, mem += pitch) {                                                                           \
            char *at = mem;                                                                                            \
            _Pragma("GCC unroll 4") for (size_t i = 0; i < n; i++, at += stride, flat += (bytes))                      \
                move_bytes(unpack, at, flat, bytes);                                                                   \
        }                                                                                                              \
        break
    switch (elem) {
        FIXED(1);
        FIXED(2);
        FIXED(4);
        FIXED(8);
        FIXED(12);
        FIXED(16);
        FIXED(24);
        FIXED(32);
    default:
        for (; rows; rows--, mem += pitch) {
            char *at = mem;
            for (size_t i = 0; i < n; i++, at += stride, flat += elem)
                move_piece(unpack, at, flat, elem);
        }
    }
#undef FIXED
}

/* n pieces at listed places: of elem bytes each, or of what `before` says. */
INLINE void list(bool unpack, char *mem, char *flat, size_t n, size_t elem, const ptrdiff_t *at, const size_t *before)
{
#define FIXED(bytes)                                                                                                   \
    case bytes:                                                                                                        \
        _Pragma("GCC unroll 4") for (size_t i = 0; i < n; i++, flat += (bytes))                                        \
            move_bytes(unpack, mem + at[i], flat, bytes);                                                              \
        break
    switch (elem) {
        FIXED(4);
        FIXED(8);
        FIXED(16);
    case 0:
        for (size_t i = 0; i < n; i++) {
            size_t len = before[i + 1] - before[i];
            move_piece(unpack, mem + at[i], flat, len);
            flat += len;
        }
        break;
    default:
        for (size_t i = 0; i < n; i++, flat += elem)
            move_piece(unpack, mem + at[i], flat, elem);
    }
#undef FIXED
}

static inline void move(struct copy *c, char *mem, size_t len)
{
    move_bytes(c->unpack, mem, c->flat, len);
    c->flat += len;
    c->left -= len;
}

/* rows, pitch apart, of n whole pieces, stride apart. */
static void move_rows(struct copy *c, char *mem, size_t rows, ptrdiff_t pitch, size_t n, size_t elem, ptrdiff_t stride)
{
    if (c->unpack)
        series(true, mem, c->flat, rows, pitch, n, elem, stride);
    else
        series(false, mem, c->flat, rows, pitch, n, elem, stride);
    c->flat += rows * n * elem;
    c->left -= rows * n * elem;
}

static void move_series(struct copy *c, char *mem, size_t n, size_t elem, ptrdiff_t stride)
{
    move_rows(c, mem, 1, 0, n, elem, stride);
}

static inline size_t data_before(const struct mr_run *r, size_t piece)
{
    return r->before ? r->before[piece] : piece * r->elem;
}

/* n whole pieces of a run's list, from the first one on. */
static void move_list(struct copy *c, const struct mr_run *r, char *mem, size_t first, size_t n)
{
    const size_t *before = r->before ? r->before + first : NULL,
                 len = data_before(r, first + n) - data_before(r, first);
    if (c->unpack)
        list(true, mem, c->flat, n, r->elem, r->at + first, before);
    else
        list(false, mem, c->flat, n, r->elem, r->at + first, before);
    c->flat += len;
    c->left -= len;
}

static void copy_layout(struct copy *c, const struct mr_layout *l, char *base, size_t offset);

static inline bool is_series(const struct mr_layout *l)
{
    return l->num == 1 && !l->runs[0].child && !l->runs[0].at;
}

/* All of a run: no division, no search. */
static inline void copy_whole_run(struct copy *c, const struct mr_run *r, char *mem)
{
    mem += r->disp;
    if (r->at)
        move_list(c, r, mem, 0, r->count);
    else if (!r->child)
        move_series(c, mem, r->count, r->elem, r->stride);
    else if (is_series(r->child))
        move_rows(c, mem + r->child->runs[0].disp, r->count, r->stride, r->child->runs[0].count, r->child->runs[0].elem,
                  r->child->runs[0].stride);
    else
        for (size_t i = 0; i < r->count; i++, mem += r->stride)
            copy_layout(c, r->child, mem, 0);
}

/* The run in which offset lies. */
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

/* The piece of a run with a list in which offset lies; their number for the run's end. */
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
    size_t i = find_piece(r, offset), within = offset - data_before(r, i);
    if (within) {
        size_t len = data_before(r, i + 1) - offset;
        move(c, mem + r->at[i] + (ptrdiff_t)within, len < c->left ? len : c->left);
        i++;
    }
    if (c->left == 0 || i == r->count)
        return;
    size_t end = data_before(r, i) + c->left, size = mr_run_size(r);
    size_t last = find_piece(r, end < size ? end : size); /* what ends before it is whole */
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
    if (r->child) {
        for (; i < r->count && c->left; i++, mem += r->stride, within = 0)
            copy_layout(c, r->child, mem, within);
        return;
    }
    if (within || c->left < r->elem) { /* a part of a piece */
        size_t len = r->elem - within;
        move(c, mem + within, len < c->left ? len : c->left);
        i++;
        mem += r->stride;
    }
    size_t whole = c->left / r->elem;
    if (whole > r->count - i)
        whole = r->count - i;
    move_series(c, mem, whole, r->elem, r->stride);
    if (c->left && i + whole < r->count)
        move(c, mem + (ptrdiff_t)whole * r->stride, c->left);
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
    if (l->num == 1 && l->runs[0].count == 1 && !l->runs[0].child &&
        !l->runs[0].at) { /* one stretch with a gap after it */
        struct mr_run r = l->runs[0];
        r.stride = type->extent;
        r.count = (offset + c->left + r.elem - 1) / r.elem;
        copy_run(c, &r, buf, offset);
        return;
    }
    size_t i = offset / type->size, within = offset % type->size;
    for (buf += (ptrdiff_t)i * type->extent; c->left; buf += type->extent, within = 0)
        copy_layout(c, l, buf, within);
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
