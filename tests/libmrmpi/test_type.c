/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes against a naive reference: a type is the list of its bytes' displacements, made by following the definition
 * of each constructor byte by byte. Random nests of constructors are packed and unpacked in random pieces.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/core/core.h"
#include "tests/check.h"

/* Stand-ins: no communicator is made here. */
struct mr_comm *mr_comm_world;

struct ref {
    struct mr_type *t;
    size_t n;
    ptrdiff_t *at; /* displacement of each byte of data, in order */
    ptrdiff_t lb, ub;
    bool sticky, any; /* resized somewhere inside: bounds are taken from the library's */
};

static struct ref make_ref(struct mr_type *t)
{
    return (struct ref){.t = t, .at = malloc(16)};
}

static void put(struct ref *r, const struct ref *child, ptrdiff_t disp, int length)
{
    ptrdiff_t extent = child->ub - child->lb;
    if (length == 0)
        return;
    r->at = realloc(r->at, (r->n + child->n * (size_t)length + 1) * sizeof(ptrdiff_t));
    for (int k = 0; k < length; k++) {
        for (size_t i = 0; i < child->n; i++)
            r->at[r->n++] = disp + k * extent + child->at[i];
        ptrdiff_t lo = disp + k * extent + child->lb, hi = disp + k * extent + child->ub;
        r->lb = !r->any || lo < r->lb ? lo : r->lb;
        r->ub = !r->any || hi > r->ub ? hi : r->ub;
        r->any = true;
    }
}

static struct ref basic(enum mr_basic b)
{
    struct ref r = make_ref(&mr_type_basic[b]);
    r.at = realloc(r.at, r.t->size * sizeof(ptrdiff_t));
    for (size_t i = 0; i < r.t->size; i++)
        r.at[r.n++] = (ptrdiff_t)i;
    r.ub = r.t->extent;
    return r;
}

static int rnd(int n)
{
    return rand() % n;
}

static struct ref build(int depth);

static void drop(struct ref *r)
{
    mr_type_put(r->t);
    free(r->at);
}

static struct ref build_vector(const struct ref *c, bool bytes)
{
    int count = rnd(5), length = rnd(4), stride = rnd(7) - 1;
    ptrdiff_t step = bytes ? stride * 5 : stride * (c->ub - c->lb);
    struct ref r = make_ref(bytes ? mr_type_hvector(count, length, step, c->t, false)
                                  : mr_type_vector(count, length, stride, c->t, false));
    for (int i = 0; i < count; i++)
        put(&r, c, i * step, length);
    return r;
}

static struct ref build_indexed(const struct ref *c)
{
    int count = rnd(6);
    int64_t lengths[6], disps[6];
    for (int i = 0; i < count; i++) {
        lengths[i] = rnd(4);
        disps[i] = rnd(20);
    }
    struct ref r = make_ref(mr_type_indexed(count, lengths, disps, c->t, false));
    for (int i = 0; i < count; i++)
        put(&r, c, disps[i] * (c->ub - c->lb), (int)lengths[i]);
    return r;
}

static struct ref build_block(const struct ref *c)
{
    int count = rnd(6), length = rnd(4);
    int64_t disps[6];
    for (int i = 0; i < count; i++)
        disps[i] = rnd(100);
    struct ref r = make_ref(mr_type_hindexed_block(count, length, disps, c->t, false));
    for (int i = 0; i < count; i++)
        put(&r, c, disps[i], length);
    return r;
}

static struct ref build_struct(const struct ref *c, int depth)
{
    struct ref d = build(depth - 1);
    int64_t lengths[3] = {rnd(3), rnd(3), rnd(3)};
    int64_t disps[3] = {rnd(40), rnd(200), rnd(500)};
    struct mr_type *types[3] = {c->t, d.t, c->t};
    struct ref r = make_ref(mr_type_struct(3, lengths, disps, types, false));
    put(&r, c, disps[0], (int)lengths[0]);
    put(&r, &d, disps[1], (int)lengths[1]);
    put(&r, c, disps[2], (int)lengths[2]);
    if (!c->sticky && !d.sticky) /* the padding is the implementation's */
        ck_assert_int_ge(r.t->extent, r.ub - r.lb);
    r.ub = r.lb + r.t->extent;
    r.sticky = d.sticky;
    drop(&d);
    return r;
}

/* The coordinate of the process grid that owns element i of a dimension. */
static int owner(enum mr_distribution kind, int64_t i, int64_t block, int nprocs)
{
    return kind == MR_DISTRIBUTE_NONE ? 0 : (int)(i / block % nprocs);
}

/* The elements of the array in the order of memory, without those of other processes. */
static struct ref build_darray(const struct ref *c)
{
    int64_t sizes[2] = {1 + rnd(7), 1 + rnd(7)}, blocks[2];
    int psizes[2], kind_numbers[2], coords[2], dargs[2] = {0, 0};
    enum mr_distribution kinds[2];
    bool fortran = rnd(2);
    for (int d = 0; d < 2; d++) {
        kinds[d] = (enum mr_distribution)rnd(3);
        kind_numbers[d] = (int)kinds[d];
        psizes[d] = kinds[d] == MR_DISTRIBUTE_NONE ? 1 : 1 + rnd(3);
        blocks[d] = kinds[d] == MR_DISTRIBUTE_BLOCK ? (sizes[d] + psizes[d] - 1) / psizes[d] + rnd(2) : 1 + rnd(3);
        coords[d] = rnd(psizes[d]);
    }
    struct mr_darray a = {
        psizes[0] * psizes[1], coords[0] * psizes[1] + coords[1], 2, sizes, kind_numbers, dargs, psizes, kinds, blocks};
    struct ref r = make_ref(mr_type_darray(&a, (struct mr_order){fortran, 0}, c->t, false));
    int slow = fortran ? 1 : 0, fast = 1 - slow;
    for (int64_t i = 0; i < sizes[slow]; i++)
        for (int64_t k = 0; k < sizes[fast]; k++)
            if (owner(kinds[slow], i, blocks[slow], psizes[slow]) == coords[slow] &&
                owner(kinds[fast], k, blocks[fast], psizes[fast]) == coords[fast])
                put(&r, c, (i * sizes[fast] + k) * (c->ub - c->lb), 1);
    r.lb = 0;
    r.ub = sizes[0] * sizes[1] * (c->ub - c->lb);
    r.sticky = true;
    return r;
}

static struct ref build_subarray(const struct ref *c)
{
    int64_t sizes[2] = {1 + rnd(5), 1 + rnd(5)}, sub[2] = {1 + rnd((int)sizes[0]), 1 + rnd((int)sizes[1])};
    int64_t starts[2] = {rnd((int)(sizes[0] - sub[0]) + 1), rnd((int)(sizes[1] - sub[1]) + 1)};
    bool fortran = rnd(2);
    struct ref r = make_ref(mr_type_subarray(2, sizes, sub, starts, (struct mr_order){fortran, 0}, c->t, false));
    int slow = fortran ? 1 : 0, fast = 1 - slow;
    ptrdiff_t extent = c->ub - c->lb;
    for (int i = 0; i < sub[slow]; i++)
        put(&r, c, ((starts[slow] + i) * sizes[fast] + starts[fast]) * extent, (int)sub[fast]);
    r.lb = 0;
    r.ub = sizes[0] * sizes[1] * extent;
    r.sticky = true;
    return r;
}

static struct ref build(int depth)
{
    static const enum mr_basic basics[] = {MR_BASIC_CHAR, MR_BASIC_INT, MR_BASIC_DOUBLE, MR_BASIC_SHORT};
    if (depth == 0)
        return basic(basics[rnd(4)]);
    struct ref c = build(depth - 1), r;
    switch (rnd(9)) {
    case 0:
        r = build_vector(&c, false);
        break;
    case 1:
        r = build_vector(&c, true);
        break;
    case 2:
        r = build_indexed(&c);
        break;
    case 3:
        r = build_block(&c);
        break;
    case 4:
        r = build_struct(&c, depth);
        break;
    case 5:
        r = build_subarray(&c);
        break;
    case 6: {
        int n = rnd(5);
        r = make_ref(mr_type_contiguous(n, c.t, false));
        put(&r, &c, 0, n);
        break;
    }
    case 7:
        r = build_darray(&c);
        break;
    default:
        r = make_ref(mr_type_resized(c.t, -rnd(8), 1 + rnd(600), false));
        put(&r, &c, 0, 1);
        r.lb = r.t->recipe->aints[0];
        r.ub = r.lb + r.t->recipe->aints[1];
        r.sticky = true;
    }
    r.sticky |= c.sticky;
    if (r.sticky) { /* the winning bound is tested by name below; here it only places the copies */
        r.lb = r.t->lb;
        r.ub = mr_type_ub(r.t);
    }
    drop(&c);
    return r;
}

static void compare_layout(const struct ref *r)
{
    ptrdiff_t lo = 0, hi = 0;
    for (size_t i = 0; i < r->n; i++) {
        lo = i == 0 || r->at[i] < lo ? r->at[i] : lo;
        hi = i == 0 || r->at[i] + 1 > hi ? r->at[i] + 1 : hi;
    }
    ck_assert_uint_eq(r->t->size, r->n);
    ck_assert_int_eq(r->t->true_lb, lo);
    ck_assert_int_eq(r->t->true_extent, hi - lo);
    ck_assert_int_eq(r->t->lb, r->lb);
    ck_assert_int_eq(mr_type_ub(r->t), r->ub);
}

/* Pack count elements in random pieces; each byte must be the one the reference names. */
static void compare_pack(const struct ref *r, size_t count)
{
    struct mr_span span = mr_type_span(r->t, count);
    size_t total = count * r->n, guard = 64;
    unsigned char *mem = malloc(span.len + 2 * guard), *flat = malloc(total + 1),
                  *back = calloc(1, span.len + 2 * guard);
    for (size_t i = 0; i < span.len + 2 * guard; i++)
        mem[i] = (unsigned char)rand();
    unsigned char *buf = mem + guard - span.lo, *out = back + guard - span.lo;
    ptrdiff_t extent = r->ub - r->lb;
    for (size_t done = 0; done < total;) {
        size_t n = 1 + (size_t)rnd(total > 4000 ? 4000 : 50);
        n = n < total - done ? n : total - done;
        mr_type_pack(buf, count, r->t, done, flat + done, n);
        mr_type_unpack(out, count, r->t, done, flat + done, n);
        done += n;
    }
    size_t wrong = 0; /* an assertion for each would take seconds */
    for (size_t i = 0; i < total; i++) {
        ptrdiff_t at = (ptrdiff_t)(i / r->n) * extent + r->at[i % r->n];
        wrong += flat[i] != buf[at] || out[at] != buf[at];
    }
    ck_assert_uint_eq(wrong, 0);
    /* bytes outside the data are untouched */
    unsigned char *again = calloc(1, span.len + 2 * guard);
    for (size_t i = 0; i < total; i++) {
        ptrdiff_t at = guard - span.lo + (ptrdiff_t)(i / r->n) * extent + r->at[i % r->n];
        again[at] = mem[at];
    }
    ck_assert_mem_eq(again, back, span.len + 2 * guard);
    if (r->t->contiguous && total)
        ck_assert_mem_eq(flat, buf + r->t->true_lb, total);
    free(again);
    free(mem);
    free(flat);
    free(back);
}

START_TEST(random_types)
{
    srand((unsigned)_i + 1);
    for (int k = 0; k < 400; k++) {
        struct ref r = build(1 + rnd(3));
        ck_assert_ptr_nonnull(r.t);
        if (r.n < 20000) {
            compare_layout(&r);
            /* copies that overlap in memory cannot be unpacked and compared byte by byte */
            bool overlap = false;
            unsigned char *seen = calloc(1, (size_t)r.t->true_extent + 1);
            for (size_t i = 0; i < r.n; i++)
                overlap |= seen[r.at[i] - r.t->true_lb]++ != 0;
            free(seen);
            ptrdiff_t extent = r.ub - r.lb;
            bool apart = extent >= r.t->true_extent;
            if (!overlap)
                compare_pack(&r, apart ? (size_t)rnd(4) : 1);
            if (!overlap && apart && r.n < 200 && k % 4 == 0) /* enough of them to be copied piece by piece */
                compare_pack(&r, 10 + (size_t)rnd(60));
        }
        drop(&r);
    }
}
END_TEST

/*
 * Columns of a matrix side by side, and series of numbers a few places apart: copied by special loops, with all
 * remainders.
 */
START_TEST(many_series)
{
    static const enum mr_basic basics[] = {MR_BASIC_CHAR, MR_BASIC_INT, MR_BASIC_DOUBLE, MR_BASIC_C_DOUBLE_COMPLEX};
    srand((unsigned)_i + 1);
    for (int k = 0; k < 40; k++) {
        struct ref e = basic(basics[rnd(4)]);
        int size = (int)e.t->size, rows = 1 + rnd(40), count = 1 + rnd(40), length = rnd(3) ? 1 : 1 + rnd(12);
        ptrdiff_t pitch = (length + rnd(3)) * size, stride = rows * pitch + rnd(3) * size;
        if (rnd(2)) { /* rows, not columns */
            stride = pitch;
            pitch = count * stride + rnd(3) * size;
        }
        struct mr_type *series = mr_type_hvector(count, length, stride, e.t, false);
        struct ref r = make_ref(mr_type_hvector(rows, 1, pitch, series, false));
        for (int i = 0; i < rows; i++)
            for (int n = 0; n < count; n++)
                put(&r, &e, i * pitch + n * stride, length);
        compare_layout(&r);
        compare_pack(&r, 1);
        mr_type_put(series);
        drop(&r);
        drop(&e);
    }
}
END_TEST

START_TEST(vector_is_one_run)
{
    struct mr_type *v = mr_type_vector(1 << 20, 1, 3, &mr_type_basic[MR_BASIC_DOUBLE], false);
    double *mem = malloc(sizeof(double) * 3 << 20), *flat = malloc(sizeof(double) << 20);
    for (int i = 0; i < 3 << 20; i++)
        mem[i] = i;
    mr_type_pack(mem, 1, v, 0, flat, v->size);
    int good = 0;
    for (int i = 0; i < 1 << 20; i++)
        good += flat[i] == 3.0 * i;
    ck_assert_int_eq(good, 1 << 20);
    ck_assert_int_eq(v->extent, (ptrdiff_t)sizeof(double) * ((3 << 20) - 2));
    free(mem);
    free(flat);
    mr_type_put(v);
}
END_TEST

START_TEST(contiguous_is_seen)
{
    struct mr_type *i = &mr_type_basic[MR_BASIC_INT];
    struct mr_type *a = mr_type_vector(4, 3, 3, i, false), *b = mr_type_contiguous(0, i, false),
                   *c = mr_type_vector(2, 1, 2, i, false);
    struct mr_type *d = mr_type_struct(2, (int64_t[]){1, 1}, (int64_t[]){0, 4}, (struct mr_type *[]){i, i}, false);
    ck_assert(a->contiguous && a->size == 48);
    ck_assert(b->contiguous && b->size == 0 && b->extent == 0);
    ck_assert(!c->contiguous);
    ck_assert(d->contiguous && d->extent == 8);
    mr_type_put(a);
    mr_type_put(b);
    mr_type_put(c);
    mr_type_put(d);
}
END_TEST

START_TEST(struct_is_padded_like_c)
{
    struct s {
        double d;
        char c;
    };
    struct mr_type *t =
        mr_type_struct(2, (int64_t[]){1, 1}, (int64_t[]){offsetof(struct s, d), offsetof(struct s, c)},
                       (struct mr_type *[]){&mr_type_basic[MR_BASIC_DOUBLE], &mr_type_basic[MR_BASIC_CHAR]}, false);
    ck_assert_int_eq(t->extent, sizeof(struct s));
    ck_assert_uint_eq(t->size, 9);
    mr_type_put(t);
}
END_TEST

START_TEST(markers_set_the_bounds)
{
    struct mr_type *i = &mr_type_basic[MR_BASIC_INT];
    struct mr_type *t =
        mr_type_struct(3, (int64_t[]){1, 1, 1}, (int64_t[]){-3, 0, 6},
                       (struct mr_type *[]){&mr_type_basic[MR_BASIC_LB], i, &mr_type_basic[MR_BASIC_UB]}, false);
    ck_assert_int_eq(t->lb, -3);
    ck_assert_int_eq(t->extent, 9);
    struct mr_type *two = mr_type_contiguous(2, t, false); /* markers at -3, 6, 15: from MPI's own example */
    ck_assert_int_eq(two->lb, -3);
    ck_assert_int_eq(two->extent, 18);
    struct mr_type *r = mr_type_resized(two, 1, 5, false);
    ck_assert_int_eq(r->lb, 1);
    ck_assert_int_eq(r->extent, 5);
    ck_assert_int_eq(r->true_lb, 0);
    ck_assert_int_eq(r->true_extent, 13);
    mr_type_put(r);
    mr_type_put(two);
    mr_type_put(t);
}
END_TEST

START_TEST(elements_are_counted)
{
    struct mr_type *t =
        mr_type_struct(2, (int64_t[]){1, 3}, (int64_t[]){0, 8},
                       (struct mr_type *[]){&mr_type_basic[MR_BASIC_DOUBLE], &mr_type_basic[MR_BASIC_SHORT]}, false);
    struct mr_type *many = mr_type_contiguous(5, t, false);
    ck_assert_uint_eq(many->size, 70);
    ck_assert_uint_eq(many->elements, 20);
    ck_assert_uint_eq(mr_type_elements(many, 70), 20);
    ck_assert_uint_eq(mr_type_elements(many, 28 + 8 + 2), 8 + 2);
    ck_assert_uint_eq(mr_type_elements(many, 28 + 7), 8); /* half a double is none */
    ck_assert_uint_eq(mr_type_elements(&mr_type_basic[MR_BASIC_SHORT_INT], 8), 3);
    mr_type_put(many);
    mr_type_put(t);
}
END_TEST

START_TEST(copy_between_layouts)
{
    struct mr_type *i = &mr_type_basic[MR_BASIC_INT], *v = mr_type_vector(3000, 1, 2, i, false),
                   *w = mr_type_vector(1000, 3, 5, i, false);
    int *a = malloc(24000), *b = calloc(1, 20000);
    for (int k = 0; k < 6000; k++)
        a[k] = k;
    mr_type_copy(a, 1, v, b, 1, w);
    for (int k = 0; k < 3000; k++)
        ck_assert_int_eq(b[k / 3 * 5 + k % 3], 2 * k);
    free(a);
    free(b);
    mr_type_put(v);
    mr_type_put(w);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("type");
    tcase_add_loop_test(t, many_series, 0, 4);
    tcase_add_loop_test(t, random_types, 0, 10);
    tcase_add_test(t, vector_is_one_run);
    tcase_add_test(t, contiguous_is_seen);
    tcase_add_test(t, struct_is_padded_like_c);
    tcase_add_test(t, markers_set_the_bounds);
    tcase_add_test(t, elements_are_counted);
    tcase_add_test(t, copy_between_layouts);
    return check_run(t, NULL);
}
