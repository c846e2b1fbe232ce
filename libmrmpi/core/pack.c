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

static inline void move(struct copy *c, char *mem, size_t len)
{
    if (c->unpack)
        memcpy(mem, c->flat, len);
    else
        memcpy(c->flat, mem, len);
    c->flat += len;
    c->left -= len;
}

/* n whole pieces of a size known to the compiler: the inner loop of vectors of basic types. */
#define MOVE_FIXED(bytes)                                                                                              \
    case bytes:                                                                                                        \
        if (c->unpack)                                                                                                 \
            for (size_t i = 0; i < n; i++, mem += stride, flat += (bytes))                                             \
                memcpy(mem, flat, (bytes));                                                                            \
        else                                                                                                           \
            for (size_t i = 0; i < n; i++, mem += stride, flat += (bytes))                                             \
                memcpy(flat, mem, (bytes));                                                                            \
        break

static void move_pieces(struct copy *c, char *mem, size_t n, size_t elem, ptrdiff_t stride)
{
    char *flat = c->flat;
    switch (elem) {
        MOVE_FIXED(1);
        MOVE_FIXED(2);
        MOVE_FIXED(4);
        MOVE_FIXED(8);
        MOVE_FIXED(16);
    default:
        for (size_t i = 0; i < n; i++, mem += stride, flat += elem)
            memcpy(c->unpack ? mem : flat, c->unpack ? flat : mem, elem);
    }
    c->flat += n * elem;
    c->left -= n * elem;
}

static void copy_layout(struct copy *c, const struct mr_layout *l, char *base, size_t offset);

/* count pieces at mem, from offset on. */
static void copy_run(struct copy *c, const struct mr_run *r, char *mem, size_t offset)
{
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
    move_pieces(c, mem, whole, r->elem, r->stride);
    if (c->left && i + whole < r->count)
        move(c, mem + (ptrdiff_t)whole * r->stride, c->left);
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

static void copy_layout(struct copy *c, const struct mr_layout *l, char *base, size_t offset)
{
    for (size_t i = offset ? find_run(l, offset) : 0; i < l->num && c->left; i++) {
        size_t within = offset > l->runs[i].offset ? offset - l->runs[i].offset : 0;
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
    if (l->num == 1 && l->runs[0].count == 1 && !l->runs[0].child) { /* one stretch with a gap after it */
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
