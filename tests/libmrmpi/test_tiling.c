/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places of a view's bytes: over random filetypes, each byte is where packing takes it from, the count of bytes before
 * a place is right, and stretches are these bytes in order. Invalid filetypes are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/core/core.h"
#include "libmrmpi/core/layout.h"
#include "libmrmpi/io/tiling.h"
#include "tests/check.h"

struct mr_comm *mr_comm_world;

static uint32_t seed = 1;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* ---- random filetypes: in order, without overlaps ---------------------------------------------------------------- */

static struct mr_type *indexed_of(struct mr_type *old)
{
    int64_t lengths[9], disps[9], at = below(3);
    int n = 1 + (int)below(9), same = below(2);

    for (int i = 0; i < n; i++) {
        lengths[i] = same ? 2 : below(4);
        disps[i] = at;
        at += lengths[i] + (same == 1 && n % 2 ? 3 : below(4));
    }
    return mr_type_indexed(n, lengths, disps, old, false);
}

static struct mr_type *struct_of(struct mr_type *old)
{
    int64_t lengths[4], disps[4], at = below(5);
    struct mr_type *types[4];
    int n = 1 + (int)below(4);

    for (int i = 0; i < n; i++) {
        types[i] = below(2) ? old : mr_type_byte;
        lengths[i] = 1 + below(3);
        disps[i] = at - (types[i]->size ? types[i]->layout->lo : 0);
        at += lengths[i] * types[i]->extent + below(5);
    }
    return mr_type_struct(n, lengths, disps, types, false);
}

static struct mr_type *random_type(int depth)
{
    struct mr_type *old = depth ? random_type(depth - 1) : mr_type_get(mr_type_byte), *t;

    switch (below(5)) {
    case 0:
        t = mr_type_contiguous(1 + below(5), old, false);
        break;
    case 1:
        t = mr_type_vector(1 + below(6), 1 + below(3), 3 + below(3), old, false);
        break;
    case 2:
        t = indexed_of(old);
        break;
    case 3:
        t = struct_of(old);
        break;
    default:
        t = mr_type_resized(old, 0, (old->size ? old->layout->hi : 0) + below(9), false);
    }
    mr_type_put(old);
    return t;
}

/* ---- the order by packing ---------------------------------------------------------------------------------------- */

enum { TILES = 3, ROOM = 1 << 13 };

static int64_t where[ROOM]; /* of each byte of TILES tiles, from the view's displacement on */

static void look(const struct mr_type *t, size_t tiles)
{
    static unsigned char low[ROOM], high[ROOM], got_low[ROOM], got_high[ROOM];

    for (int i = 0; i < ROOM; i++) {
        low[i] = (unsigned char)i;
        high[i] = (unsigned char)(i >> 8);
    }
    mr_type_pack(low, tiles, t, 0, got_low, tiles * t->size);
    mr_type_pack(high, tiles, t, 0, got_high, tiles * t->size);
    for (size_t i = 0; i < tiles * t->size; i++)
        where[i] = got_low[i] | got_high[i] << 8;
}

/* Checks of single bytes, of which there are millions. */
static void same(int64_t a, int64_t b)
{
    if (a != b)
        ck_abort_msg("%lld, not %lld", (long long)a, (long long)b);
}

static void check_places(const struct mr_tiling *v)
{
    size_t bytes = TILES * v->type->size, n = 0;
    int64_t last = where[bytes - 1];

    for (size_t i = 0; i < bytes; i++)
        same(mr_tiling_at(v, i), v->disp + where[i]);
    for (int64_t at = -3; at <= last; at++) {
        same((int64_t)mr_tiling_before(v, v->disp + at), (int64_t)n);
        if (n < bytes && where[n] == at)
            n++;
    }
    ck_assert_uint_eq(mr_tiling_before(v, v->disp + last + 1), bytes);
}

static void check_stretches(const struct mr_tiling *v)
{
    size_t bytes = TILES * v->type->size, from = below((uint32_t)bytes), len = 1 + below((uint32_t)(bytes - from));
    size_t n = from, had;
    struct mr_stretches list = {0};

    ck_assert(mr_tiling_stretches(v, 0, 1, &list)); /* the next stretch is not joined */
    had = list.num;
    ck_assert(mr_tiling_stretches(v, from, len, &list));
    for (size_t k = had; k < list.num; k++)
        for (uint32_t c = 0; c < list.piece[k].count; c++)
            for (uint32_t i = 0; i < list.piece[k].elem; i++, n++)
                same(list.piece[k].at + (int64_t)c * list.piece[k].stride + i, v->disp + where[n]);
    ck_assert_uint_eq(n, from + len);
    free(list.piece);
}

static void check_images(const struct mr_tiling *v)
{
    static unsigned char image[ROOM], data[ROOM], back[ROOM];
    size_t bytes = TILES * v->type->size, from = below((uint32_t)bytes), len = 1 + below((uint32_t)(bytes - from));
    int64_t start = v->disp + where[from] - below(2) * below(10);

    for (size_t i = 0; i < len; i++)
        data[i] = (unsigned char)below(255);
    memset(image, 255, sizeof(image));
    mr_tiling_scatter(v, from, len, (char *)image, start, data);
    for (size_t i = 0; i < len; i++) {
        unsigned char *at = &image[v->disp + where[from + i] - start];

        same(*at, data[i]);
        *at = 255;
    }
    for (size_t i = 0; i < sizeof(image); i++)
        same(image[i], 255);
    mr_tiling_scatter(v, from, len, (char *)image, start, data);
    mr_tiling_gather(v, from, len, (char *)image, start, back);
    ck_assert(!memcmp(back, data, len));
}

static bool grows(const struct mr_type *t)
{
    for (size_t i = 1; i < t->size; i++)
        if (where[i] <= where[i - 1])
            return false;
    return true;
}

START_TEST(places)
{
    int tried = 0;

    while (tried < 1000) {
        struct mr_type *t = random_type((int)below(4));
        struct mr_tiling v = {below(2) ? (int64_t)below(1000) : (int64_t)1 << 40, t};

        bool fits = t->size && t->layout->lo >= 0 && TILES * t->extent + t->layout->hi < ROOM;

        if (fits) {
            look(t, 1);
            ck_assert_int_eq(mr_tiling_order(t) == MR_TILING_GROWS, grows(t));
        }
        if (fits && mr_tiling_order(t) == MR_TILING_GROWS && mr_tiling_repeats(t)) {
            look(t, TILES);
            check_places(&v);
            check_stretches(&v);
            check_images(&v);
            tried++;
        }
        mr_type_put(t);
    }
}
END_TEST

static enum mr_tiling_order order(struct mr_type *t)
{
    enum mr_tiling_order o = mr_tiling_order(t);

    mr_type_put(t);
    return o;
}
#define GROWS(t)     ck_assert_int_eq(order(t), MR_TILING_GROWS)
#define OVERLAPS(t)  ck_assert_int_eq(order(t), MR_TILING_OVERLAPS)
#define DECREASES(t) ck_assert_int_eq(order(t), MR_TILING_DECREASES)

START_TEST(orders)
{
    const int64_t ones[] = {1, 1, 1}, twos[] = {2, 2, 2};

    GROWS(mr_type_indexed(3, ones, (const int64_t[]){0, 2, 4}, mr_type_byte, false));
    GROWS(mr_type_indexed(3, twos, (const int64_t[]){0, 2, 4}, mr_type_byte, false));
    DECREASES(mr_type_indexed(3, ones, (const int64_t[]){0, 4, 2}, mr_type_byte, false));
    OVERLAPS(mr_type_indexed(3, twos, (const int64_t[]){0, 1, 4}, mr_type_byte, false));
    OVERLAPS(mr_type_indexed(3, ones, (const int64_t[]){2, 2, 4}, mr_type_byte, false));
    OVERLAPS(mr_type_indexed(3, (const int64_t[]){8, 1, 1}, (const int64_t[]){0, 1, 4}, mr_type_byte, false));
    DECREASES(mr_type_indexed(3, ones, (const int64_t[]){-2, 2, 4}, mr_type_byte, false));
    OVERLAPS(mr_type_hvector(3, 2, 1, mr_type_byte, false));
    OVERLAPS(mr_type_hvector(3, 2, 0, mr_type_byte, false));
    DECREASES(mr_type_hvector(3, 1, -2, mr_type_byte, false));
}
END_TEST

START_TEST(nested_disorder)
{
    const int64_t ones[] = {1, 1};
    struct mr_type *child = mr_type_indexed(2, ones, (const int64_t[]){4, 0}, mr_type_byte, false),
                   *spread = mr_type_resized(child, 0, 16, false),
                   *twice = mr_type_indexed(2, ones, (const int64_t[]){1, 1}, mr_type_byte, false),
                   *apart = mr_type_indexed(2, ones, (const int64_t[]){0, 8}, mr_type_byte, false);

    DECREASES(mr_type_vector(3, 1, 2, spread, false));
    OVERLAPS(mr_type_hvector(3, 1, 4, twice, false));
    OVERLAPS(mr_type_hvector(3, 1, 0, twice, false));
    DECREASES(mr_type_hvector(3, 1, 4, apart, false)); /* 0 8 4 12 8 16 */
    OVERLAPS(mr_type_hvector(3, 1, 8, apart, false));
    GROWS(mr_type_hvector(3, 1, 9, apart, false));
    mr_type_put(apart);
    mr_type_put(twice);
    mr_type_put(spread);
    mr_type_put(child);
}
END_TEST

/* Overlapping copies: only the first is there. */
START_TEST(short_extent)
{
    struct mr_type *vector = mr_type_vector(3, 1, 4, mr_type_byte, false), *t = mr_type_resized(vector, 0, 1, false);
    struct mr_tiling v = {10, t};

    ck_assert(mr_tiling_order(t) == MR_TILING_GROWS && !mr_tiling_repeats(t));
    ck_assert(mr_tiling_repeats(vector));
    ck_assert_int_eq(mr_tiling_at(&v, 2), 18);
    ck_assert_uint_eq(mr_tiling_before(&v, 11), 1);
    ck_assert_uint_eq(mr_tiling_before(&v, 1000), 3);
    mr_type_put(t);
    mr_type_put(vector);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("tiling");

    tcase_add_test(tc, places);
    tcase_add_test(tc, orders);
    tcase_add_test(tc, nested_disorder);
    tcase_add_test(tc, short_extent);
    return check_run(tc, NULL);
}
