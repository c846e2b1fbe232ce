/* SPDX-License-Identifier: BSD-3-Clause */
/* Building layouts (layout.h): merging as runs are appended. */
#include "libmrmpi/core/layout.h"

#include <stdlib.h>

/* A child of no more runs than this is copied into its parent rather than pointed to. */
enum { INLINE_RUNS = 16 };

struct mr_layout *mr_layout_new(void)
{
    return calloc(1, sizeof(struct mr_layout));
}

void mr_layout_free(struct mr_layout *l)
{
    if (l)
        free(l->runs);
    free(l);
}

static void touch(struct mr_layout *l, ptrdiff_t lo, ptrdiff_t hi)
{
    if (l->size == 0 || lo < l->lo)
        l->lo = lo;
    if (l->size == 0 || hi > l->hi)
        l->hi = hi;
}

/* The memory that a run touches. */
static void run_bounds(const struct mr_run *r, ptrdiff_t *lo, ptrdiff_t *hi)
{
    ptrdiff_t last = (ptrdiff_t)(r->count - 1) * r->stride;
    ptrdiff_t first_lo = r->disp + (r->child ? r->child->lo : 0);
    ptrdiff_t first_hi = r->disp + (r->child ? r->child->hi : (ptrdiff_t)r->elem);
    *lo = first_lo + (last < 0 ? last : 0);
    *hi = first_hi + (last > 0 ? last : 0);
}

/* Let the last run swallow r if the two together are one stretch or one regular series. */
static bool merge(struct mr_layout *l, const struct mr_run *r)
{
    if (!l->num || r->child || r->count != 1)
        return false;
    struct mr_run *last = &l->runs[l->num - 1];
    if (last->child)
        return false;
    if (last->count == 1 && last->disp + (ptrdiff_t)last->elem == r->disp) {
        last->elem += r->elem;
        return true;
    }
    if (last->elem != r->elem)
        return false;
    if (last->count == 1)
        last->stride = r->disp - last->disp;
    else if (r->disp != last->disp + (ptrdiff_t)last->count * last->stride)
        return false;
    last->count++;
    return true;
}

static bool append(struct mr_layout *l, struct mr_run r)
{
    if (r.count == 0 || r.elem == 0)
        return true;
    if (!r.child && (r.count == 1 || r.stride == (ptrdiff_t)r.elem)) {
        r.elem *= r.count;
        r.count = 1;
    }
    if (r.count == 1)
        r.stride = 0;
    ptrdiff_t lo, hi;
    run_bounds(&r, &lo, &hi);
    touch(l, lo, hi);
    r.offset = l->size;
    l->size += r.count * r.elem;
    if (merge(l, &r))
        return true;
    if (l->num == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 2;
        struct mr_run *runs = realloc(l->runs, cap * sizeof(*runs));
        if (!runs)
            return false;
        l->runs = runs;
        l->cap = cap;
    }
    l->runs[l->num++] = r;
    return true;
}

bool mr_layout_add(struct mr_layout *l, ptrdiff_t disp, size_t count, ptrdiff_t stride, const struct mr_layout *child)
{
    if (count == 0 || child->size == 0)
        return true;
    if (count == 1 && child->num <= INLINE_RUNS) {
        for (size_t i = 0; i < child->num; i++) {
            struct mr_run r = child->runs[i];
            r.disp += disp;
            if (!append(l, r))
                return false;
        }
        return true;
    }
    if (child->num == 1) {
        struct mr_run r = child->runs[0];
        r.disp += disp;
        if (r.count == 1) {
            r.count = count;
            r.stride = stride;
            return append(l, r);
        }
        if (stride == (ptrdiff_t)r.count * r.stride) { /* the series goes on without a break */
            r.count *= count;
            return append(l, r);
        }
    }
    return append(l,
                  (struct mr_run){.disp = disp, .count = count, .elem = child->size, .stride = stride, .child = child});
}
