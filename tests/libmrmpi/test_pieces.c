/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes cut into pieces: over random types and limits, the lists have all data, in order and once, within the
 * limits; operations on pieces equal operations on elements. Invalid lists are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/core/core.h"
#include "tests/check.h"

struct mr_comm *mr_comm_world;

static uint32_t seed = 1;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* ---- random types ------------------------------------------------------------------------------------------------ */

static struct mr_type *indexed_of(struct mr_type *old)
{
    int64_t lengths[9], disps[9];
    int n = 1 + (int)below(9);

    for (int i = 0; i < n; i++) {
        lengths[i] = below(4);
        disps[i] = 5 * i + (int64_t)below(2);
    }
    return mr_type_indexed(n, lengths, disps, old, false);
}

/* Of one basic type: for accumulates. */
static struct mr_type *random_type(struct mr_type *basic, int depth)
{
    struct mr_type *old = depth ? random_type(basic, depth - 1) : mr_type_get(basic), *t;

    switch (below(5)) {
    case 0:
        t = mr_type_contiguous(1 + below(4), old, false);
        break;
    case 1:
        t = mr_type_vector(1 + below(7), 1 + below(3), 3 + below(3), old, false);
        break;
    case 2:
        t = mr_type_vector(1 + below(5), 1, -2 - (int64_t)below(2), old, false);
        break;
    case 3:
        t = mr_type_resized(old, old->lb, old->extent + 16, false);
        break;
    default:
        t = indexed_of(old);
    }
    mr_type_put(old);
    ck_assert_ptr_nonnull(t);
    t->committed = true;
    return t;
}

/* ---- memory of a type, in the middle of memory that must not be touched ------------------------------------------ */

struct memory {
    char *all, *at; /* at: displacement 0 */
    size_t len;
};

static struct memory memory_for(const struct mr_type *t, size_t count)
{
    struct mr_span s = mr_type_span(t, count);
    struct memory m = {.len = s.len + 64};

    m.all = malloc(m.len);
    ck_assert_ptr_nonnull(m.all);
    m.at = m.all + 32 - s.lo;
    for (size_t i = 0; i < m.len; i++)
        m.all[i] = (char)below(100);
    return m;
}

struct seen {
    const struct mr_type *t;
    size_t count, most, unit, next;
    unsigned pieces, lists;
    char *mem;
    char *flat; /* gathered, or to be scattered */
    bool scatter;
};

static enum mr_err see(const struct mr_pieces *p, size_t offset, void *arg)
{
    struct seen *s = arg;
    int64_t lo, hi;

    ck_assert_uint_eq(offset, s->next);
    ck_assert_uint_gt(p->bytes, 0);
    ck_assert_uint_le(p->bytes, s->most);
    ck_assert_uint_eq(p->bytes % s->unit, 0);
    ck_assert_uint_le(p->num, s->pieces);
    ck_assert(mr_pieces_span(p->piece, p->num, p->bytes, &lo, &hi));
    ck_assert(lo >= mr_type_span(s->t, s->count).lo);
    ck_assert(hi <= mr_type_span(s->t, s->count).lo + (int64_t)mr_type_span(s->t, s->count).len);
    if (s->scatter)
        mr_pieces_scatter(s->mem, p->piece, p->num, p->bytes, s->flat + offset);
    else
        mr_pieces_gather(s->mem, p->piece, p->num, p->bytes, s->flat + offset);
    s->next += p->bytes;
    s->lists++;
    return MR_SUCCESS;
}

START_TEST(cut_and_moved)
{
    static const enum mr_basic basics[] = {MR_BASIC_CHAR, MR_BASIC_INT, MR_BASIC_DOUBLE, MR_BASIC_SHORT_INT,
                                           MR_BASIC_LONG_DOUBLE_INT};

    for (int round = 0; round < 2000; round++) {
        struct mr_type *basic = &mr_type_basic[basics[below(5)]], *t = random_type(basic, (int)below(3));
        size_t count = 1 + below(4), bytes = count * t->size;
        size_t most = (1 + below(40)) * basic->size;
        struct memory m = memory_for(t, count), copy = m;
        char *flat = malloc(bytes + 1), *want = malloc(bytes + 1);
        struct seen s = {.t = t,
                         .count = count,
                         .most = most,
                         .unit = basic->size,
                         .pieces = 2 + below(MR_PIECES_MAX - 1),
                         .mem = m.at,
                         .flat = flat};

        mr_type_pack(m.at, count, t, 0, want, bytes);
        ck_assert_int_eq(mr_pieces_cut(t, count, most, basic->size, s.pieces, see, &s), MR_SUCCESS);
        ck_assert_uint_eq(s.next, bytes);
        ck_assert(!memcmp(flat, want, bytes));

        copy.all = malloc(m.len);
        memcpy(copy.all, m.all, m.len);
        for (size_t i = 0; i < bytes; i++)
            flat[i] = (char)below(100);
        mr_type_unpack(copy.all + (m.at - m.all), count, t, 0, flat, bytes);
        s.next = 0;
        s.scatter = true;
        ck_assert_int_eq(mr_pieces_cut(t, count, most, basic->size, s.pieces, see, &s), MR_SUCCESS);
        ck_assert(!memcmp(copy.all, m.all, m.len)); /* nothing beside, either */
        free(m.all);
        free(copy.all);
        free(flat);
        free(want);
        mr_type_put(t);
    }
}
END_TEST

/* ---- over array sections ----------------------------------------------------------------------------------------- */

/* Elements that do not overlap, in any direction; lo: the lowest distance from the first, len: from there to the end.
 */
static struct mr_section random_section(ptrdiff_t *lo, size_t *len)
{
    static const size_t elems[] = {1, 2, 3, 4, 8, 12, 16, 32};
    struct mr_section s = {.elem = elems[below(8)], .total = 1, .dims = 1 + (int)below(3)};
    ptrdiff_t stride = (ptrdiff_t)s.elem, hi = (ptrdiff_t)s.elem;

    *lo = 0;
    for (int d = 0; d < s.dims; d++) {
        s.dim[d].extent = 1 + below(8);
        stride *= 1 + (ptrdiff_t)below(2);
        s.dim[d].stride = below(3) ? stride : -stride;
        if (s.dim[d].stride < 0)
            *lo += s.dim[d].stride * (s.dim[d].extent - 1);
        else
            hi += s.dim[d].stride * (s.dim[d].extent - 1);
        s.total *= (size_t)s.dim[d].extent;
        stride *= s.dim[d].extent;
    }
    *len = (size_t)(hi - *lo);
    return s;
}

static char *element_of(const struct mr_section *s, size_t n, char *first)
{
    for (int d = 0; d < s->dims; d++) {
        first += (ptrdiff_t)(n % (size_t)s->dim[d].extent) * s->dim[d].stride;
        n /= (size_t)s->dim[d].extent;
    }
    return first;
}

static struct mr_type *mixed_type(void)
{
    struct mr_type *old[3] = {random_type(&mr_type_basic[MR_BASIC_SHORT_INT], 1),
                              random_type(&mr_type_basic[MR_BASIC_DOUBLE], 0), &mr_type_basic[MR_BASIC_INT]};
    int64_t lengths[3] = {below(3), 1, 1 + below(2)}, disps[3] = {64, 200, 0};
    struct mr_type *t = mr_type_struct(3, lengths, disps, old, false);

    mr_type_put(old[0]);
    mr_type_put(old[1]);
    ck_assert_ptr_nonnull(t);
    return t;
}

/* The data is what the type has in memory without holes, and all other memory stays. */
START_TEST(on_sections)
{
    static const enum mr_basic basics[] = {MR_BASIC_CHAR, MR_BASIC_INT, MR_BASIC_DOUBLE, MR_BASIC_SHORT_INT};
    int made_some = 0, refused = 0;

    for (int round = 0; round < 6000; round++) {
        struct mr_type *basic = &mr_type_basic[basics[below(4)]], *made = NULL;
        struct mr_type *t = below(4) ? random_type(basic, (int)below(3)) : mixed_type();
        size_t count = below(3), bytes = count * t->size, len;
        ptrdiff_t lo;
        struct mr_section s = random_section(&lo, &len);
        struct mr_span span = mr_type_span(t, count);
        bool fits = !bytes || (span.lo >= 0 && (size_t)span.lo + span.len <= s.total * s.elem);
        enum mr_err err = mr_type_on_section(t, count, &s, &made);

        ck_assert_int_eq(err, fits ? MR_SUCCESS : MR_ERR_BUFFER);
        if (fits) {
            char *flat = malloc(s.total * s.elem), *holey = malloc(len), *want = malloc(bytes + 1),
                 *got = malloc(bytes + 1), *after = malloc(len);

            for (size_t i = 0; i < len; i++)
                holey[i] = (char)below(100);
            for (size_t n = 0; n < s.total; n++)
                memcpy(flat + n * s.elem, element_of(&s, n, holey - lo), s.elem);
            ck_assert_uint_eq(made->size, bytes);
            mr_type_pack(flat, count, t, 0, want, bytes);
            mr_type_pack(holey - lo, 1, made, 0, got, bytes);
            ck_assert(!memcmp(want, got, bytes));
            for (size_t i = 0; i < bytes; i++)
                got[i] = (char)below(100);
            mr_type_unpack(flat, count, t, 0, got, bytes);
            memcpy(after, holey, len);
            for (size_t n = 0; n < s.total; n++)
                memcpy(element_of(&s, n, after - lo), flat + n * s.elem, s.elem);
            mr_type_unpack(holey - lo, 1, made, 0, got, bytes);
            ck_assert(!memcmp(after, holey, len));
            free(flat);
            free(holey);
            free(want);
            free(got);
            free(after);
            mr_type_put(made);
            made_some += bytes > 0;
        }
        refused += !fits;
        mr_type_put(t);
    }
    ck_assert_int_gt(made_some, 500);
    ck_assert_int_gt(refused, 500);
}
END_TEST

/* Built-in types stay, whole, where no hole of the section is within: for reductions and other forms of files. */
START_TEST(builtins_stay)
{
    struct mr_type *pair = &mr_type_basic[MR_BASIC_SHORT_INT], *t = mr_type_vector(2, 1, 2, pair, false), *made;
    struct mr_section s = {.elem = 8, .total = 3, .dims = 1, .dim = {{3, 24}}};

    ck_assert_int_eq(mr_type_on_section(t, 1, &s, &made), MR_SUCCESS);
    ck_assert_int_eq(made->basic, MR_BASIC_SHORT_INT);
    ck_assert_uint_eq(made->elements, 4);
    ck_assert_int_eq(made->true_extent, 48 + pair->true_extent);
    mr_type_put(made);
    s = (struct mr_section){.elem = 4, .total = 6, .dims = 2, .dim = {{2, 4}, {3, 24}}};
    ck_assert_int_eq(mr_type_on_section(t, 1, &s, &made), MR_SUCCESS);
    ck_assert_int_eq(made->basic, MR_BASIC_SHORT_INT);
    mr_type_put(made);
    s = (struct mr_section){.elem = 4, .total = 6, .dims = 1, .dim = {{6, 8}}};
    ck_assert_int_eq(mr_type_on_section(t, 1, &s, &made), MR_SUCCESS);
    ck_assert_int_eq(made->basic, MR_BASIC_BYTE);
    mr_type_put(made);
    mr_type_put(t);
}
END_TEST

static enum mr_err refuse(const struct mr_pieces *p, size_t offset, void *arg)
{
    ++*(int *)arg;
    return MR_ERR_RANK;
}

START_TEST(errors_end_it)
{
    struct mr_type *t = mr_type_vector(1000, 1, 2, &mr_type_basic[MR_BASIC_INT], false);
    int calls = 0;

    t->committed = true;
    ck_assert_int_eq(mr_pieces_cut(t, 10, 64, 4, 8, refuse, &calls), MR_ERR_RANK);
    ck_assert_int_eq(calls, 1);
    mr_type_put(t);
    calls = 0;
    ck_assert_int_eq(mr_pieces_cut(&mr_type_basic[MR_BASIC_INT], 0, 64, 4, 8, refuse, &calls), MR_SUCCESS);
    ck_assert_int_eq(calls, 0);
}
END_TEST

/* ---- lists of others --------------------------------------------------------------------------------------------- */

START_TEST(lists_that_make_no_sense)
{
    struct mr_rma_piece p[2] = {{.at = 8, .stride = -16, .count = 3, .elem = 4}, {.at = 100, .count = 1, .elem = 1}};
    int64_t lo, hi;

    ck_assert(mr_pieces_span(p, 2, 13, &lo, &hi));
    ck_assert_int_eq(lo, -24);
    ck_assert_int_eq(hi, 101);
    ck_assert(!mr_pieces_span(p, 2, 12, &lo, &hi)); /* another number of bytes */
    ck_assert(mr_pieces_span(NULL, 0, 7, &lo, &hi));
    ck_assert(lo == 0 && hi == 7);
    ck_assert(!mr_pieces_span(NULL, 0, SIZE_MAX, &lo, &hi));
    p[1].count = 0;
    ck_assert(!mr_pieces_span(p, 2, 12, &lo, &hi));
    p[1] = (struct mr_rma_piece){.at = INT64_MAX - 2, .count = 1, .elem = 4};
    ck_assert(!mr_pieces_span(p, 2, 16, &lo, &hi));
    p[1] = (struct mr_rma_piece){.at = 1, .stride = INT64_MAX / 2, .count = 4, .elem = 1};
    ck_assert(!mr_pieces_span(p, 2, 16, &lo, &hi));
    p[1] = (struct mr_rma_piece){.at = INT64_MIN + 8, .stride = -8, .count = 3, .elem = 1};
    ck_assert(!mr_pieces_span(p, 2, 15, &lo, &hi));
    p[1] = (struct mr_rma_piece){.at = 0, .count = UINT32_MAX, .elem = UINT32_MAX};
    ck_assert(!mr_pieces_span(p, 2, 12 + (size_t)(uint32_t)(UINT32_MAX * UINT32_MAX), &lo, &hi));
}
END_TEST

/* ---- operations -------------------------------------------------------------------------------------------------- */

struct done {
    struct mr_type *basic;
    enum mr_op_id op;
    char *mem, *in, *old;
};

static enum mr_err apply(const struct mr_pieces *p, size_t offset, void *arg)
{
    struct done *d = arg;
    void *scratch = malloc(MR_PIECES_SCRATCH(p->bytes));

    mr_pieces_apply(d->mem, p->piece, p->num, p->bytes, d->op, d->basic, d->in + offset,
                    d->old ? d->old + offset : NULL, scratch);
    free(scratch);
    return MR_SUCCESS;
}

/* The same by elements: unpacked, combined, packed again. */
static void apply_to_elements(const struct done *d, const struct mr_type *t, size_t count, char *mem)
{
    size_t bytes = count * t->size, n = bytes / d->basic->size, room = n * (size_t)d->basic->extent;
    char *flat = malloc(bytes + 1), *a = calloc(1, room + 32), *b = calloc(1, room + 32);

    mr_type_pack(mem, count, t, 0, flat, bytes);
    mr_type_unpack(b, n, d->basic, 0, flat, bytes);
    mr_type_unpack(a, n, d->basic, 0, d->in, bytes);
    if (d->op == MR_OP_REPLACE)
        memcpy(b, a, room);
    else if (d->op != MR_OP_NO_OP)
        mr_op_apply(&mr_op_builtin[d->op], a, b, n, d->basic);
    mr_type_pack(b, n, d->basic, 0, flat, bytes);
    mr_type_unpack(mem, count, t, 0, flat, bytes);
    free(flat);
    free(a);
    free(b);
}

START_TEST(accumulated)
{
    static const struct {
        enum mr_basic basic;
        enum mr_op_id op;
    } kinds[] = {{MR_BASIC_INT, MR_OP_SUM},           {MR_BASIC_LONG, MR_OP_BXOR},
                 {MR_BASIC_SHORT, MR_OP_MAX},         {MR_BASIC_SHORT_INT, MR_OP_MINLOC},
                 {MR_BASIC_DOUBLE_INT, MR_OP_MAXLOC}, {MR_BASIC_LONG_DOUBLE_INT, MR_OP_REPLACE},
                 {MR_BASIC_UNSIGNED, MR_OP_NO_OP},    {MR_BASIC_CHAR, MR_OP_PROD},
                 {MR_BASIC_2INT, MR_OP_MINLOC},       {MR_BASIC_INT, MR_OP_REPLACE}};

    for (int round = 0; round < 2000; round++) {
        unsigned kind = below(sizeof(kinds) / sizeof(kinds[0]));
        struct mr_type *basic = &mr_type_basic[kinds[kind].basic], *t = random_type(basic, (int)below(3));
        size_t count = 1 + below(4), bytes = count * t->size;
        struct memory m = memory_for(t, count);
        char *before = malloc(bytes + 1), *want = malloc(m.len), *in = malloc(bytes + 1 + below(8));
        struct done d = {.basic = basic, .op = kinds[kind].op, .mem = m.at, .in = in, .old = malloc(bytes + 1)};

        for (size_t i = 0; i < bytes; i++)
            in[i] = (char)below(100);
        mr_type_pack(m.at, count, t, 0, before, bytes);
        memcpy(want, m.all, m.len);
        apply_to_elements(&d, t, count, want + (m.at - m.all));
        ck_assert_int_eq(mr_pieces_cut(t, count, (1 + below(20)) * basic->size, basic->size, 2 + below(20), apply, &d),
                         MR_SUCCESS);
        ck_assert(!memcmp(d.old, before, bytes));
        ck_assert_msg(!memcmp(m.all, want, m.len), "kind %u", kind);
        free(m.all);
        free(before);
        free(want);
        free(in);
        free(d.old);
        mr_type_put(t);
    }
}
END_TEST

START_TEST(swapped)
{
    int64_t mem = 5, in[2] = {7, 5}, old = 0;

    mr_pieces_apply((char *)&mem, NULL, 0, 8, MR_PIECES_SWAP, &mr_type_basic[MR_BASIC_LONG], in, &old, NULL);
    ck_assert(mem == 7 && old == 5);
    mr_pieces_apply((char *)&mem, NULL, 0, 8, MR_PIECES_SWAP, &mr_type_basic[MR_BASIC_LONG], in, &old, NULL);
    ck_assert(mem == 7 && old == 7);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("pieces");
    tcase_add_test(c, cut_and_moved);
    tcase_add_test(c, on_sections);
    tcase_add_test(c, builtins_stay);
    tcase_add_test(c, errors_end_it);
    tcase_add_test(c, lists_that_make_no_sense);
    tcase_add_test(c, accumulated);
    tcase_add_test(c, swapped);
    return check_run(c, NULL);
}
