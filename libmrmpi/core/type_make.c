/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The constructors of datatypes. Each is a list of blocks (length copies of a type at a displacement); bounds and
 * layout are computed block by block (`struct maker`), the arguments are kept as the recipe.
 */
#include "libmrmpi/core/core.h"
#include "libmrmpi/core/layout.h"
#include "libmrmpi/core/objects.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct maker {
    struct mr_type *t;
    bool failed;
    bool any, any_lb, any_ub; /* blocks seen; sticky bounds seen */
    ptrdiff_t lb, ub;
};

static void *copy_of(const void *p, size_t bytes)
{
    void *q = malloc(bytes ? bytes : 1);
    if (q && bytes)
        memcpy(q, p, bytes);
    return q;
}

/* A new type with its recipe. ints and aints are copied, the types referenced. */
static struct maker begin(enum mr_combiner combiner, int ni, const int *ints, int na, const ptrdiff_t *aints, int nt,
                          struct mr_type *const *types)
{
    struct maker m = {.t = calloc(1, sizeof(*m.t))};
    struct mr_recipe *r = calloc(1, sizeof(*r));
    struct mr_layout *l = mr_layout_new();
    if (r) {
        *r = (struct mr_recipe){combiner,
                                ni,
                                na,
                                nt,
                                copy_of(ints, (size_t)ni * sizeof(*ints)),
                                copy_of(aints, (size_t)na * sizeof(*aints)),
                                copy_of(types, (size_t)nt * sizeof(*types))};
    }
    if (!m.t || !l || !r || !r->ints || !r->aints || !r->types) {
        if (r) {
            free(r->ints);
            free(r->aints);
            free(r->types);
        }
        free(r);
        mr_layout_free(l);
        free(m.t);
        m.t = NULL;
        m.failed = true;
        return m;
    }
    m.t->refs = 1;
    m.t->recipe = r;
    m.t->layout = l;
    m.t->align = 1;
    m.t->basic = MR_BASIC_MIXED;
    for (int i = 0; i < nt; i++)
        mr_type_get(types[i]);
    return m;
}

static void bound(struct maker *m, ptrdiff_t lo, ptrdiff_t hi, const struct mr_type *child)
{
    /* a sticky bound beats all others; among equals the outermost wins */
    if (child->sticky_lb >= m->any_lb) {
        if (!m->any || child->sticky_lb > m->any_lb || lo < m->lb)
            m->lb = lo;
        m->any_lb = child->sticky_lb;
    }
    if (child->sticky_ub >= m->any_ub) {
        if (!m->any || child->sticky_ub > m->any_ub || hi > m->ub)
            m->ub = hi;
        m->any_ub = child->sticky_ub;
    }
    m->any = true;
}

/* count copies of child, stride apart, at disp: elements, bounds and alignment. */
static void account(struct maker *m, ptrdiff_t disp, size_t count, ptrdiff_t stride, const struct mr_type *child)
{
    ptrdiff_t last = (ptrdiff_t)(count - 1) * stride;
    ptrdiff_t lo = disp + child->lb, hi = disp + mr_type_ub(child);
    /* MPI_LB only says where the type begins, MPI_UB where it ends */
    if (child->builtin && child->basic == MR_BASIC_UB)
        lo = m->any ? m->lb : PTRDIFF_MAX;
    if (child->builtin && child->basic == MR_BASIC_LB)
        hi = m->any ? m->ub : PTRDIFF_MIN;
    bound(m, last < 0 && lo != PTRDIFF_MAX ? lo + last : lo, last > 0 && hi != PTRDIFF_MIN ? hi + last : hi, child);
    if (child->align > m->t->align)
        m->t->align = child->align;
    if (child->size) {
        if (m->t->elements == 0)
            m->t->basic = child->basic;
        else if (m->t->basic != child->basic)
            m->t->basic = MR_BASIC_MIXED;
    }
    m->t->elements += count * child->elements;
}

static void block(struct maker *m, ptrdiff_t disp, size_t length, const struct mr_type *child)
{
    if (m->failed || length == 0)
        return;
    account(m, disp, length, child->extent, child);
    if (!mr_layout_add(m->t->layout, disp, length, child->extent, child->layout))
        m->failed = true;
}

static struct mr_type *end(struct maker *m)
{
    struct mr_type *t = m->t;
    if (m->failed) {
        if (t)
            mr_type_put(t);
        return NULL;
    }
    const struct mr_layout *l = t->layout;
    if (m->lb == PTRDIFF_MAX)
        m->lb = l->size ? l->lo : 0;
    if (m->ub == PTRDIFF_MIN)
        m->ub = l->size ? l->hi : 0;
    t->lb = m->lb;
    t->extent = m->ub - m->lb;
    t->sticky_lb = m->any_lb;
    t->sticky_ub = m->any_ub;
    t->size = l->size;
    t->true_lb = l->size ? l->lo : 0;
    t->true_extent = l->size ? l->hi - l->lo : 0;
    t->contiguous =
        l->size == 0 || (l->num == 1 && l->runs[0].count == 1 && !l->runs[0].child && (ptrdiff_t)l->size == t->extent);
    return t;
}

struct mr_type *mr_type_dup(struct mr_type *t)
{
    struct maker m = begin(MR_COMBINER_DUP, 0, NULL, 0, NULL, 1, &t);
    block(&m, 0, 1, t);
    struct mr_type *dup = end(&m);
    if (dup) {
        dup->lb = t->lb;
        dup->extent = t->extent;
        dup->contiguous = t->contiguous;
        dup->committed = t->committed;
    }
    return dup;
}

struct mr_type *mr_type_contiguous(int count, struct mr_type *t)
{
    struct maker m = begin(MR_COMBINER_CONTIGUOUS, 1, &count, 0, NULL, 1, &t);
    block(&m, 0, (size_t)count, t);
    return end(&m);
}

/* count blocks of `length` elements, `stride` bytes apart. */
static struct mr_type *vector(struct maker m, int count, int length, ptrdiff_t stride, struct mr_type *t)
{
    if (m.failed || count == 0 || length == 0)
        return end(&m);
    /* the blocks of a vector are one layout, repeated: kept as a recipe-less part of this type's own runs where it
     * merges */
    struct mr_layout *inner = mr_layout_new();
    if (!inner || !mr_layout_add(inner, 0, (size_t)length, t->extent, t->layout)) {
        mr_layout_free(inner);
        m.failed = true;
        return end(&m);
    }
    bool plain = inner->num == 1 && inner->runs[0].count == 1;
    ptrdiff_t last = (ptrdiff_t)(count - 1) * stride;
    account(&m, 0, (size_t)length, t->extent, t);
    if (count > 1) {
        size_t elements = m.t->elements;
        account(&m, last, (size_t)length, t->extent, t);
        m.t->elements = elements * (size_t)count;
    }
    if (plain || length == 1) {
        if (!mr_layout_add(m.t->layout, 0, (size_t)count, stride, length == 1 ? t->layout : inner))
            m.failed = true;
    } else {
        for (int i = 0; i < count && !m.failed; i++)
            if (!mr_layout_add(m.t->layout, i * stride, (size_t)length, t->extent, t->layout))
                m.failed = true;
    }
    mr_layout_free(inner);
    return end(&m);
}

struct mr_type *mr_type_vector(int count, int blocklength, int stride, struct mr_type *t)
{
    int ints[3] = {count, blocklength, stride};
    return vector(begin(MR_COMBINER_VECTOR, 3, ints, 0, NULL, 1, &t), count, blocklength, stride * t->extent, t);
}

struct mr_type *mr_type_hvector(int count, int blocklength, ptrdiff_t stride, struct mr_type *t)
{
    int ints[2] = {count, blocklength};
    return vector(begin(MR_COMBINER_HVECTOR, 2, ints, 1, &stride, 1, &t), count, blocklength, stride, t);
}

/* ints = count, lengths..., more... ; NULL if there is no memory */
static int *int_list(int count, const int *lengths, const int *more, int *num)
{
    *num = 1 + count + (more ? count : 0);
    int *ints = malloc((size_t)*num * sizeof(*ints));
    if (!ints)
        return NULL;
    ints[0] = count;
    if (count) {
        memcpy(ints + 1, lengths, (size_t)count * sizeof(*ints));
        if (more)
            memcpy(ints + 1 + count, more, (size_t)count * sizeof(*ints));
    }
    return ints;
}

struct mr_type *mr_type_indexed(int count, const int *lengths, const int *disps, struct mr_type *t)
{
    int num, *ints = int_list(count, lengths, disps, &num);
    if (!ints)
        return NULL;
    struct maker m = begin(MR_COMBINER_INDEXED, num, ints, 0, NULL, 1, &t);
    free(ints);
    for (int i = 0; i < count; i++)
        block(&m, disps[i] * t->extent, (size_t)lengths[i], t);
    return end(&m);
}

struct mr_type *mr_type_hindexed(int count, const int *lengths, const ptrdiff_t *disps, struct mr_type *t)
{
    int num, *ints = int_list(count, lengths, NULL, &num);
    if (!ints)
        return NULL;
    struct maker m = begin(MR_COMBINER_HINDEXED, num, ints, count, disps, 1, &t);
    free(ints);
    for (int i = 0; i < count; i++)
        block(&m, disps[i], (size_t)lengths[i], t);
    return end(&m);
}

struct mr_type *mr_type_indexed_block(int count, int length, const int *disps, struct mr_type *t)
{
    int *ints = malloc((size_t)(count + 2) * sizeof(*ints));
    if (!ints)
        return NULL;
    ints[0] = count;
    ints[1] = length;
    if (count)
        memcpy(ints + 2, disps, (size_t)count * sizeof(*ints));
    struct maker m = begin(MR_COMBINER_INDEXED_BLOCK, count + 2, ints, 0, NULL, 1, &t);
    free(ints);
    for (int i = 0; i < count; i++)
        block(&m, disps[i] * t->extent, (size_t)length, t);
    return end(&m);
}

struct mr_type *mr_type_hindexed_block(int count, int length, const ptrdiff_t *disps, struct mr_type *t)
{
    int ints[2] = {count, length};
    struct maker m = begin(MR_COMBINER_HINDEXED_BLOCK, 2, ints, count, disps, 1, &t);
    for (int i = 0; i < count; i++)
        block(&m, disps[i], (size_t)length, t);
    return end(&m);
}

struct mr_type *mr_type_struct(int count, const int *lengths, const ptrdiff_t *disps, struct mr_type *const *types)
{
    int num, *ints = int_list(count, lengths, NULL, &num);
    if (!ints)
        return NULL;
    struct maker m = begin(MR_COMBINER_STRUCT, num, ints, count, disps, count, types);
    free(ints);
    for (int i = 0; i < count; i++)
        block(&m, disps[i], (size_t)lengths[i], types[i]);
    struct mr_type *t = end(&m);
    /* C pads a struct to its alignment, so that arrays of it work; markers say that the user did it himself */
    if (t && !t->sticky_ub && !t->sticky_lb && t->extent % t->align) {
        t->extent += t->align - t->extent % t->align;
        t->contiguous = t->size == 0;
    }
    return t;
}

struct mr_type *mr_type_resized(struct mr_type *t, ptrdiff_t lb, ptrdiff_t extent)
{
    ptrdiff_t aints[2] = {lb, extent};
    struct maker m = begin(MR_COMBINER_RESIZED, 0, NULL, 2, aints, 1, &t);
    block(&m, 0, 1, t);
    m.lb = lb;
    m.ub = lb + extent;
    m.any_lb = m.any_ub = true;
    return end(&m);
}

/*
 * A subarray is a nest of vectors from the fastest dimension outwards, shifted to where it starts, with the extent of
 * the whole array. The vectors are temporary types of their own: the layout that points into them keeps them through
 * the recipe.
 */
struct mr_type *mr_type_subarray(int ndims, const int *sizes, const int *subsizes, const int *starts,
                                 bool fortran_order, int order_constant, struct mr_type *t)
{
    struct mr_type *inner = mr_type_get(t);
    ptrdiff_t stride = t->extent, shift = 0;
    for (int k = 0; k < ndims && inner; k++) {
        int d = fortran_order ? k : ndims - 1 - k;
        struct mr_type *outer =
            k == 0 ? mr_type_contiguous(subsizes[d], inner) : mr_type_hvector(subsizes[d], 1, stride, inner);
        mr_type_put(inner);
        inner = outer;
        shift += starts[d] * stride;
        stride *= sizes[d];
    }
    int num = 3 * ndims + 2, *ints = malloc((size_t)num * sizeof(*ints));
    if (!ints || !inner) {
        free(ints);
        if (inner)
            mr_type_put(inner);
        return NULL;
    }
    ints[0] = ndims;
    memcpy(ints + 1, sizes, (size_t)ndims * sizeof(*ints));
    memcpy(ints + 1 + ndims, subsizes, (size_t)ndims * sizeof(*ints));
    memcpy(ints + 1 + 2 * ndims, starts, (size_t)ndims * sizeof(*ints));
    ints[num - 1] = order_constant;
    struct mr_type *both[2] = {t, inner};
    struct maker m = begin(MR_COMBINER_SUBARRAY, num, ints, 0, NULL, 2, both); /* types[1]: ours, not the user's */
    free(ints);
    block(&m, shift, 1, inner);
    mr_type_put(inner);
    m.lb = 0;
    m.ub = stride;
    m.any_lb = m.any_ub = true;
    return end(&m);
}
