/* SPDX-License-Identifier: BSD-3-Clause */
/* The constructors of datatypes but for arrays (type_array.c): bounds, alignment, recipe; see maker.h. */
#include "libmrmpi/core/maker.h"

#include <stdlib.h>
#include <string.h>

static struct mr_recipe *recipe_new(struct shape s)
{
    struct mr_recipe *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    *r = (struct mr_recipe){.combiner = s.combiner, .large = s.large};
    size_t ints = (size_t)(s.ints + (s.large ? 0 : s.counts)), aints = s.large ? 0 : (size_t)s.aints;
    size_t counts = s.large ? (size_t)(s.counts + s.aints) : 0;
    /* one more of each, so no allocation has zero bytes; two types more for hidden types */
    r->ints = malloc((ints + 1) * sizeof(*r->ints));
    r->aints = malloc((aints + 1) * sizeof(*r->aints));
    r->counts = malloc((counts + 1) * sizeof(*r->counts));
    r->types = malloc(((size_t)s.types + MAKER_HIDDEN) * sizeof(*r->types));
    if (r->ints && r->aints && r->counts && r->types)
        return r;
    mr_recipe_free(r);
    return NULL;
}

struct maker maker_begin(struct shape shape, struct mr_type *const *types)
{
    struct maker m = {.t = calloc(1, sizeof(*m.t)), .types = shape.types};
    struct mr_recipe *r = recipe_new(shape);
    struct mr_layout *l = mr_layout_new();
    if (!m.t || !l || !r) {
        mr_recipe_free(r);
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
    for (int i = 0; i < shape.types; i++)
        r->types[r->num_types++] = mr_type_get(types[i]);
    return m;
}

void maker_int(struct maker *m, int64_t value)
{
    if (!m->failed)
        m->t->recipe->ints[m->t->recipe->num_ints++] = (int)value;
}

void maker_count(struct maker *m, int64_t value)
{
    if (m->failed)
        return;
    struct mr_recipe *r = m->t->recipe;
    if (r->large)
        r->counts[r->num_counts++] = value;
    else
        r->ints[r->num_ints++] = (int)value;
}

void maker_aint(struct maker *m, int64_t value)
{
    if (m->failed)
        return;
    struct mr_recipe *r = m->t->recipe;
    if (r->large)
        r->counts[r->num_counts++] = value;
    else
        r->aints[r->num_aints++] = value;
}

void maker_counts(struct maker *m, int64_t n, const int64_t *values)
{
    for (int64_t i = 0; i < n; i++)
        maker_count(m, values[i]);
}

static void maker_aints(struct maker *m, int64_t n, const int64_t *values)
{
    for (int64_t i = 0; i < n; i++)
        maker_aint(m, values[i]);
}

bool maker_hide(struct maker *m, struct mr_type *step)
{
    if (!step || m->failed) {
        if (step)
            mr_type_put(step);
        m->failed = true;
        return false;
    }
    struct mr_recipe *r = m->t->recipe;
    r->types[r->num_types++] = step;
    r->num_hidden++;
    return true;
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

void maker_block(struct maker *m, ptrdiff_t disp, size_t length, const struct mr_type *child)
{
    if (m->failed || length == 0)
        return;
    account(m, disp, length, child->extent, child);
    if (!mr_layout_add(m->t->layout, disp, length, child->extent, child->layout))
        m->failed = true;
}

struct mr_type *maker_end(struct maker *m)
{
    struct mr_type *t = m->t;
    if (m->failed || !mr_layout_finish(t->layout)) {
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

void maker_bounds(struct maker *m, ptrdiff_t lb, ptrdiff_t ub)
{
    m->lb = lb;
    m->ub = ub;
    m->any_lb = m->any_ub = true;
}

struct mr_type *mr_type_dup(struct mr_type *t)
{
    struct maker m = maker_begin((struct shape){.combiner = MR_COMBINER_DUP, .types = 1}, &t);
    maker_block(&m, 0, 1, t);
    struct mr_type *dup = maker_end(&m);
    if (dup) {
        dup->lb = t->lb;
        dup->extent = t->extent;
        dup->contiguous = t->contiguous;
        dup->committed = t->committed;
    }
    return dup;
}

struct mr_type *mr_type_contiguous(int64_t count, struct mr_type *t, bool large)
{
    struct maker m = maker_begin((struct shape){MR_COMBINER_CONTIGUOUS, large, .counts = 1, .types = 1}, &t);
    maker_count(&m, count);
    maker_block(&m, 0, (size_t)count, t);
    return maker_end(&m);
}

/* count blocks of `length` elements, `stride` bytes apart: one run of the layout, whatever a block is. */
static void add_series(struct maker *m, int64_t count, int64_t length, ptrdiff_t stride, struct mr_type *t)
{
    if (m->failed || count == 0 || length == 0)
        return;
    account(m, 0, (size_t)length, t->extent, t);
    if (count > 1) {
        size_t elements = m->t->elements;
        account(m, (ptrdiff_t)(count - 1) * stride, (size_t)length, t->extent, t);
        m->t->elements = elements * (size_t)count;
    }
    const struct mr_layout *piece = t->layout;
    if (length > 1) {
        struct mr_type *step = mr_type_contiguous(length, t, false);
        if (!maker_hide(m, step))
            return;
        piece = step->layout;
    }
    if (!mr_layout_add(m->t->layout, 0, (size_t)count, stride, piece))
        m->failed = true;
}

struct mr_type *mr_type_vector(int64_t count, int64_t length, int64_t stride, struct mr_type *t, bool large)
{
    struct maker m = maker_begin((struct shape){MR_COMBINER_VECTOR, large, .counts = 3, .types = 1}, &t);
    maker_counts(&m, 3, (int64_t[]){count, length, stride});
    add_series(&m, count, length, stride * t->extent, t);
    return maker_end(&m);
}

struct mr_type *mr_type_hvector(int64_t count, int64_t length, int64_t stride, struct mr_type *t, bool large)
{
    struct maker m = maker_begin((struct shape){MR_COMBINER_HVECTOR, large, .counts = 2, .aints = 1, .types = 1}, &t);
    maker_counts(&m, 2, (int64_t[]){count, length});
    maker_aint(&m, stride);
    add_series(&m, count, length, stride, t);
    return maker_end(&m);
}

struct mr_type *mr_type_indexed(int64_t count, const int64_t *lengths, const int64_t *disps, struct mr_type *t,
                                bool large)
{
    struct maker m = maker_begin((struct shape){MR_COMBINER_INDEXED, large, .counts = 2 * count + 1, .types = 1}, &t);
    maker_count(&m, count);
    maker_counts(&m, count, lengths);
    maker_counts(&m, count, disps);
    for (int64_t i = 0; i < count; i++)
        maker_block(&m, disps[i] * t->extent, (size_t)lengths[i], t);
    return maker_end(&m);
}

struct mr_type *mr_type_hindexed(int64_t count, const int64_t *lengths, const int64_t *disps, struct mr_type *t,
                                 bool large)
{
    struct maker m =
        maker_begin((struct shape){MR_COMBINER_HINDEXED, large, .counts = count + 1, .aints = count, .types = 1}, &t);
    maker_count(&m, count);
    maker_counts(&m, count, lengths);
    maker_aints(&m, count, disps);
    for (int64_t i = 0; i < count; i++)
        maker_block(&m, disps[i], (size_t)lengths[i], t);
    return maker_end(&m);
}

struct mr_type *mr_type_indexed_block(int64_t count, int64_t length, const int64_t *disps, struct mr_type *t,
                                      bool large)
{
    struct maker m = maker_begin((struct shape){MR_COMBINER_INDEXED_BLOCK, large, .counts = count + 2, .types = 1}, &t);
    maker_counts(&m, 2, (int64_t[]){count, length});
    maker_counts(&m, count, disps);
    for (int64_t i = 0; i < count; i++)
        maker_block(&m, disps[i] * t->extent, (size_t)length, t);
    return maker_end(&m);
}

struct mr_type *mr_type_hindexed_block(int64_t count, int64_t length, const int64_t *disps, struct mr_type *t,
                                       bool large)
{
    struct maker m =
        maker_begin((struct shape){MR_COMBINER_HINDEXED_BLOCK, large, .counts = 2, .aints = count, .types = 1}, &t);
    maker_counts(&m, 2, (int64_t[]){count, length});
    maker_aints(&m, count, disps);
    for (int64_t i = 0; i < count; i++)
        maker_block(&m, disps[i], (size_t)length, t);
    return maker_end(&m);
}

struct mr_type *mr_type_struct(int64_t count, const int64_t *lengths, const int64_t *disps,
                               struct mr_type *const *types, bool large)
{
    struct maker m = maker_begin(
        (struct shape){MR_COMBINER_STRUCT, large, .counts = count + 1, .aints = count, .types = (int)count}, types);
    maker_count(&m, count);
    maker_counts(&m, count, lengths);
    maker_aints(&m, count, disps);
    for (int64_t i = 0; i < count; i++)
        maker_block(&m, disps[i], (size_t)lengths[i], types[i]);
    struct mr_type *t = maker_end(&m);
    /* C pads a struct to its alignment, for arrays; with markers the user did the padding */
    if (t && !t->sticky_ub && !t->sticky_lb && t->extent % t->align) {
        t->extent += t->align - t->extent % t->align;
        t->contiguous = t->size == 0;
    }
    return t;
}

struct mr_type *mr_type_resized(struct mr_type *t, ptrdiff_t lb, ptrdiff_t extent, bool large)
{
    struct maker m = maker_begin((struct shape){MR_COMBINER_RESIZED, large, .aints = 2, .types = 1}, &t);
    maker_aint(&m, lb);
    maker_aint(&m, extent);
    maker_block(&m, 0, 1, t);
    maker_bounds(&m, lb, lb + extent);
    return maker_end(&m);
}
