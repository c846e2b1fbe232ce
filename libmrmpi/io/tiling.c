/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking through the layouts of filetypes. */
#include "libmrmpi/io/tiling.h"

#include <stdlib.h>

#include "libmrmpi/core/core.h"

static size_t piece_size(const struct mr_run *r, size_t i)
{
    return r->before ? r->before[i + 1] - r->before[i] : r->elem;
}

static size_t run_bytes_before(const struct mr_run *r, size_t i)
{
    return r->before ? r->before[i] : i * r->elem;
}

/* From where the layout is. */
static ptrdiff_t piece_at(const struct mr_run *r, size_t i)
{
    return r->disp + (r->at ? r->at[i] : (ptrdiff_t)i * r->stride);
}

static ptrdiff_t piece_lo(const struct mr_run *r, size_t i)
{
    return piece_at(r, i) + (r->child ? r->child->lo : 0);
}

static ptrdiff_t piece_hi(const struct mr_run *r, size_t i)
{
    return piece_at(r, i) + (r->child ? r->child->hi : (ptrdiff_t)piece_size(r, i));
}

/* ---- may it be a filetype? --------------------------------------------------------------------------------------- */

static ptrdiff_t last_start(const struct mr_layout *l);

/* Where the last stretch in the piece begins. */
static ptrdiff_t piece_last(const struct mr_run *r, size_t i)
{
    return piece_at(r, i) + (r->child ? last_start(r->child) : 0);
}

static ptrdiff_t last_start(const struct mr_layout *l)
{
    size_t k = l->num;

    while (k && !l->runs[k - 1].count)
        k--;
    return k ? piece_last(&l->runs[k - 1], l->runs[k - 1].count - 1) : 0;
}

/* Of all pieces so far: the beginning of the last piece, and the end of the farthest. */
struct so_far {
    bool any;
    ptrdiff_t start, end;
};

static enum mr_tiling_order worse(enum mr_tiling_order a, enum mr_tiling_order b)
{
    return a < b ? a : b;
}

static enum mr_tiling_order add_piece(const struct mr_run *r, size_t i, struct so_far *s)
{
    const struct so_far was = *s;

    s->start = piece_last(r, i);
    s->end = was.any && was.end > piece_hi(r, i) ? was.end : piece_hi(r, i);
    s->any = true;
    if (was.any && piece_lo(r, i) < was.start)
        return MR_TILING_DECREASES;
    return was.any && piece_lo(r, i) < was.end ? MR_TILING_OVERLAPS : MR_TILING_GROWS;
}

/* A layout with pieces in order begins at its first piece. */
static enum mr_tiling_order layout_order(const struct mr_layout *l)
{
    enum mr_tiling_order order = MR_TILING_GROWS;
    struct so_far s = {0};

    for (size_t k = 0; k < l->num && order != MR_TILING_DECREASES; k++) {
        const struct mr_run *r = &l->runs[k];
        const size_t some = r->at || r->count < 2 ? r->count : 2; /* two of a series tell of all */

        if (r->child && r->count)
            order = worse(order, layout_order(r->child));
        for (size_t i = 0; i < some; i++)
            order = worse(order, add_piece(r, i, &s));
        if (some < r->count)
            add_piece(r, r->count - 1, &s);
    }
    return order;
}

enum mr_tiling_order mr_tiling_order(const struct mr_type *type)
{
    if (!type->size)
        return MR_TILING_GROWS;
    if (type->true_lb < 0)
        return MR_TILING_DECREASES;
    return type->contiguous ? MR_TILING_GROWS : layout_order(type->layout);
}

bool mr_tiling_repeats(const struct mr_type *type)
{
    return type->contiguous || type->extent >= type->layout->hi - type->layout->lo;
}

bool mr_tiling_reaches(const struct mr_tiling *t, uint64_t bytes)
{
    const struct mr_type *type = t->type;
    int64_t end;

    if (!type->size || bytes > INT64_MAX)
        return !bytes;
    if (bytes > type->size && !mr_tiling_repeats(type))
        return false;
    return !__builtin_mul_overflow((int64_t)(bytes / type->size) + 1, type->extent, &end) &&
           !__builtin_add_overflow(end, type->true_lb + type->true_extent, &end) &&
           !__builtin_add_overflow(end, t->disp, &end);
}

/* ---- where the nth byte is --------------------------------------------------------------------------------------- */

/* The last run that contains nth or begins before it. */
static size_t run_of(const struct mr_layout *l, size_t nth)
{
    size_t lo = 0, hi = l->num;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (l->runs[mid].offset <= nth)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static size_t nth_piece(const struct mr_run *r, size_t nth)
{
    size_t lo = 0, hi = r->count;

    if (!r->before)
        return nth / r->elem;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (r->before[mid] <= nth)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static ptrdiff_t layout_at(const struct mr_layout *l, size_t nth)
{
    const struct mr_run *r = &l->runs[run_of(l, nth)];
    size_t i;

    nth -= r->offset;
    i = nth_piece(r, nth);
    nth -= run_bytes_before(r, i);
    return piece_at(r, i) + (r->child ? layout_at(r->child, nth) : (ptrdiff_t)nth);
}

int64_t mr_tiling_at(const struct mr_tiling *t, uint64_t nth)
{
    uint64_t tile = nth / t->type->size;

    if (mr_tiling_dense(t))
        return t->disp + t->type->true_lb + (int64_t)nth;
    return t->disp + (int64_t)tile * t->type->extent + layout_at(t->type->layout, nth - tile * t->type->size);
}

/* ---- how many are before a place --------------------------------------------------------------------------------- */

static size_t layout_before(const struct mr_layout *l, ptrdiff_t place);

/* The place is behind the run's first byte. */
static size_t run_before(const struct mr_run *r, ptrdiff_t place)
{
    size_t lo = 0, hi = r->count, rest;

    if (!r->at && r->count > 1 && r->stride) {
        lo = (size_t)((place - piece_lo(r, 0) - 1) / r->stride);
        lo = lo < r->count ? lo : r->count - 1;
    } else {
        while (hi - lo > 1) {
            size_t mid = lo + (hi - lo) / 2;

            if (piece_lo(r, mid) < place)
                lo = mid;
            else
                hi = mid;
        }
    }
    if (r->child)
        return run_bytes_before(r, lo) + layout_before(r->child, place - piece_at(r, lo));
    rest = (size_t)(place - piece_at(r, lo));
    return run_bytes_before(r, lo) + (rest < piece_size(r, lo) ? rest : piece_size(r, lo));
}

static size_t layout_before(const struct mr_layout *l, ptrdiff_t place)
{
    size_t lo = 0, hi = l->num;

    if (place <= l->lo)
        return 0;
    if (place >= l->hi)
        return l->size;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (piece_lo(&l->runs[mid], 0) < place)
            lo = mid;
        else
            hi = mid;
    }
    return l->runs[lo].offset + run_before(&l->runs[lo], place);
}

uint64_t mr_tiling_before(const struct mr_tiling *t, int64_t offset)
{
    int64_t place = offset - t->disp, lo;
    uint64_t tile;

    if (mr_tiling_dense(t))
        return place > t->type->true_lb ? (uint64_t)(place - t->type->true_lb) : 0;
    lo = t->type->layout->lo;
    if (place <= lo)
        return 0;
    if (!mr_tiling_repeats(t->type))
        return layout_before(t->type->layout, place);
    tile = (uint64_t)((place - lo) / t->type->extent);
    return tile * t->type->size + layout_before(t->type->layout, place - (int64_t)tile * t->type->extent);
}

/* ---- stretches --------------------------------------------------------------------------------------------------- */

static bool append_stretch(struct mr_stretches *to, struct mr_rma_piece p)
{
    if (to->num == to->cap) {
        size_t cap = to->cap ? 2 * to->cap : 64;
        struct mr_rma_piece *piece = realloc(to->piece, cap * sizeof(*piece));

        if (!piece)
            return false;
        to->piece = piece;
        to->cap = cap;
    }
    to->piece[to->num++] = p;
    return true;
}

/* Adds a stretch: as the end of the last one, or as the next of a series, if possible. */
static bool put_one(struct mr_stretches *to, int64_t at, uint32_t len)
{
    struct mr_rma_piece *last = to->num > to->first ? &to->piece[to->num - 1] : NULL;

    if (last && last->count == 1 && last->at + last->elem == at && len <= UINT32_MAX - last->elem) {
        last->elem += len;
        return true;
    }
    if (last && last->elem == len && last->count < UINT32_MAX &&
        (last->count == 1 || at == last->at + (int64_t)last->count * last->stride)) {
        if (last->count == 1)
            last->stride = at - last->at;
        last->count++;
        return true;
    }
    return append_stretch(to, (struct mr_rma_piece){.at = at, .count = 1, .elem = len});
}

static bool put_stretch(struct mr_stretches *to, int64_t at, uint64_t len)
{
    const uint32_t most = 1u << 30;
    bool fine = true;

    for (; len > most && fine; at += most, len -= most)
        fine = put_one(to, at, most);
    return fine && (!len || put_one(to, at, (uint32_t)len));
}

/* A series of whole pieces. */
static bool put_series(struct mr_stretches *to, int64_t at, size_t elem, size_t count, ptrdiff_t stride)
{
    if (count < 2 || elem > 1u << 30 || count > UINT32_MAX) {
        bool fine = true;

        for (; count && fine; at += stride, count--)
            fine = put_stretch(to, at, elem);
        return fine;
    }
    return append_stretch(to, (struct mr_rma_piece){at, stride, (uint32_t)count, (uint32_t)elem});
}

static bool put_layout(struct mr_stretches *to, const struct mr_layout *l, int64_t base, size_t from, size_t end);

/* Bytes [from, end) of the run's. */
static bool put_run(struct mr_stretches *to, const struct mr_run *r, int64_t base, size_t from, size_t end)
{
    for (size_t i = nth_piece(r, from); from < end;) {
        size_t first = run_bytes_before(r, i), stop = first + piece_size(r, i), whole;

        if (!r->child && !r->at && from == first && (whole = (end - first) / r->elem) > 1) {
            if (!put_series(to, base + piece_at(r, i), r->elem, whole, r->stride))
                return false;
            i += whole;
            from += whole * r->elem;
            continue;
        }
        stop = stop < end ? stop : end;
        if (!(r->child ? put_layout(to, r->child, base + piece_at(r, i), from - first, stop - first)
                       : put_stretch(to, base + piece_at(r, i) + (int64_t)(from - first), stop - from)))
            return false;
        from = stop;
        i++;
    }
    return true;
}

static bool put_layout(struct mr_stretches *to, const struct mr_layout *l, int64_t base, size_t from, size_t end)
{
    for (size_t k = run_of(l, from); k < l->num && l->runs[k].offset < end; k++) {
        const struct mr_run *r = &l->runs[k];
        size_t a = from > r->offset ? from - r->offset : 0, b = end - r->offset;

        if (!put_run(to, r, base, a, b < mr_run_size(r) ? b : mr_run_size(r)))
            return false;
    }
    return true;
}

static bool is_one_stretch(const struct mr_layout *l)
{
    return l->num == 1 && l->runs[0].count == 1 && !l->runs[0].child;
}

bool mr_tiling_stretches(const struct mr_tiling *t, uint64_t nth, uint64_t len, struct mr_stretches *to)
{
    size_t size = t->type->size;

    to->first = to->num;
    if (mr_tiling_dense(t))
        return put_stretch(to, mr_tiling_at(t, nth), len);
    while (len) {
        uint64_t tile = nth / size, from = nth - tile * size, n = size - from < len ? size - from : len, whole;

        if (!from && (whole = len / size) > 1 && is_one_stretch(t->type->layout)) {
            if (!put_series(to, mr_tiling_at(t, nth), size, whole, t->type->extent))
                return false;
            nth += whole * size;
            len -= whole * size;
            continue;
        }
        if (!put_layout(to, t->type->layout, t->disp + (int64_t)tile * t->type->extent, from, from + n))
            return false;
        nth += n;
        len -= n;
    }
    return true;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

/* The beginning of the tile with the nth byte; the rest of nth inside the tile. */
static ptrdiff_t tile_of(const struct mr_tiling *t, uint64_t nth, int64_t from, size_t *rest)
{
    uint64_t tile = nth / t->type->size;

    *rest = nth - tile * t->type->size;
    return t->disp + (int64_t)tile * t->type->extent - from;
}

static size_t tiles(const struct mr_tiling *t, size_t bytes)
{
    return (bytes + t->type->size - 1) / t->type->size;
}

void mr_tiling_gather(const struct mr_tiling *t, uint64_t nth, size_t len, const char *image, int64_t from, void *data)
{
    size_t rest;
    ptrdiff_t at = tile_of(t, nth, from, &rest);

    mr_type_pack(image + at, tiles(t, rest + len), t->type, rest, data, len);
}

void mr_tiling_scatter(const struct mr_tiling *t, uint64_t nth, size_t len, char *image, int64_t from, const void *data)
{
    size_t rest;
    ptrdiff_t at = tile_of(t, nth, from, &rest);

    mr_type_unpack(image + at, tiles(t, rest + len), t->type, rest, data, len);
}
