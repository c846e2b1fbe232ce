/* SPDX-License-Identifier: BSD-3-Clause */
/* Building layouts (layout.h): merging as runs are appended. */
#include "libmrmpi/core/layout.h"

#include <stdint.h>
#include <stdlib.h>

/* A child of no more runs than this is copied into its parent rather than pointed to. */
enum { INLINE_RUNS = 16 };

struct mr_layout *mr_layout_new(void)
{
    return calloc(1, sizeof(struct mr_layout));
}

void mr_layout_free(struct mr_layout *l)
{
    if (l) {
        free(l->runs);
        free(l->at);
        free(l->before);
    }
    free(l);
}

static void touch(struct mr_layout *l, ptrdiff_t lo, ptrdiff_t hi)
{
    if (l->size == 0 || lo < l->lo)
        l->lo = lo;
    if (l->size == 0 || hi > l->hi)
        l->hi = hi;
}

/* The memory touched by a run. */
static void run_bounds(const struct mr_run *r, ptrdiff_t *lo, ptrdiff_t *hi)
{
    if (r->at) {
        *lo = PTRDIFF_MAX;
        *hi = PTRDIFF_MIN;
        for (size_t i = 0; i < r->count; i++) {
            size_t len = r->before ? r->before[i + 1] - r->before[i] : r->elem;
            ptrdiff_t first = r->disp + r->at[i], end = first + (ptrdiff_t)len;
            *lo = first < *lo ? first : *lo;
            *hi = end > *hi ? end : *hi;
        }
        return;
    }
    ptrdiff_t last = (ptrdiff_t)(r->count - 1) * r->stride;
    ptrdiff_t first_lo = r->disp + (r->child ? r->child->lo : 0);
    ptrdiff_t first_hi = r->disp + (r->child ? r->child->hi : (ptrdiff_t)r->elem);
    *lo = first_lo + (last < 0 ? last : 0);
    *hi = first_hi + (last > 0 ? last : 0);
}

/* Lets the last run swallow r if the two together are one stretch or one regular series. */
static bool merge(struct mr_layout *l, const struct mr_run *r)
{
    if (!l->num || r->child || r->at || r->count != 1)
        return false;
    struct mr_run *last = &l->runs[l->num - 1];
    if (last->child || last->at)
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

static bool append_run(struct mr_layout *l, struct mr_run r)
{
    if (mr_run_size(&r) == 0)
        return true;
    if (!r.child && !r.at && (r.count == 1 || r.stride == (ptrdiff_t)r.elem)) {
        r.elem *= r.count;
        r.count = 1;
    }
    if (r.count == 1)
        r.stride = 0;
    ptrdiff_t lo, hi;
    run_bounds(&r, &lo, &hi);
    touch(l, lo, hi);
    r.offset = l->size;
    l->size += mr_run_size(&r);
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
            if (!append_run(l, r))
                return false;
        }
        return true;
    }
    if (child->num == 1) {
        struct mr_run r = child->runs[0];
        r.disp += disp;
        if (r.count == 1 && !r.at) {
            r.count = count;
            r.stride = stride;
            return append_run(l, r);
        }
        if (!r.at && stride == (ptrdiff_t)r.count * r.stride) { /* the series goes on without a break */
            r.count *= count;
            return append_run(l, r);
        }
    }
    return append_run(
        l, (struct mr_run){.disp = disp, .count = count, .elem = child->size, .stride = stride, .child = child});
}

/* Few pieces in a row predict nothing: a list is as good for them, if there are some. */
enum { SHORT_SERIES = 4, LIST_MIN = 4 };

static bool is_short_series(const struct mr_run *r)
{
    return !r->child && !r->at && r->count <= SHORT_SERIES;
}

/* Runs from i on that go into a list together. */
struct group {
    size_t runs, pieces; /* runs: 0 for too few */
    bool equal;
};

static struct group irregular(const struct mr_layout *l, size_t i)
{
    struct group g = {.equal = true};
    size_t n = 0;
    for (; i + n < l->num && is_short_series(&l->runs[i + n]); n++) {
        g.pieces += l->runs[i + n].count;
        g.equal &= l->runs[i + n].elem == l->runs[i].elem;
    }
    g.runs = n >= LIST_MIN ? n : 0;
    return g;
}

/* The runs of a group as one; at and before are its place in the layout's lists. */
static struct mr_run listed(const struct mr_run *first, struct group g, ptrdiff_t *at, size_t *before)
{
    size_t n = 0, bytes = 0;
    for (size_t k = 0; k < g.runs; k++) {
        const struct mr_run *r = &first[k];
        for (size_t p = 0; p < r->count; p++, bytes += r->elem) {
            if (!g.equal)
                before[n] = bytes;
            at[n++] = r->disp + (ptrdiff_t)p * r->stride;
        }
    }
    if (!g.equal)
        before[n] = bytes;
    return (struct mr_run){.offset = first->offset,
                           .count = n,
                           .elem = g.equal ? first->elem : 0,
                           .at = at,
                           .before = g.equal ? NULL : before};
}

bool mr_layout_finish(struct mr_layout *l)
{
    struct group g;
    size_t room = 0, room_before = 0, to = 0, used = 0, used_before = 0;
    for (size_t i = 0; i < l->num; i += g.runs ? g.runs : 1) {
        g = irregular(l, i);
        room += g.runs ? g.pieces : 0;
        room_before += g.runs && !g.equal ? g.pieces + 1 : 0;
    }
    if (room == 0)
        return true;
    l->at = malloc(room * sizeof(*l->at));
    l->before = malloc((room_before + 1) * sizeof(*l->before));
    if (!l->at || !l->before)
        return false;
    for (size_t i = 0; i < l->num; i += g.runs ? g.runs : 1) {
        g = irregular(l, i);
        if (g.runs == 0) {
            l->runs[to++] = l->runs[i];
            continue;
        }
        l->runs[to++] = listed(&l->runs[i], g, l->at + used, l->before + used_before);
        used += g.pieces;
        used_before += g.equal ? 0 : g.pieces + 1;
    }
    l->num = to;
    return true;
}
