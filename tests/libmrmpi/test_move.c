/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copying pieces (core/move.h), and numbers a few places apart at each level of vector instructions: against copies
 * byte by byte, of pieces of all sizes, at any address and distance. Bytes between the pieces stay unchanged, and
 * nothing is read or written behind the last piece.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libmrmpi/core/move.h"
#include "libmrmpi/core/move_loops.h"
#include "tests/check.h"

/* Two regions that end at unmapped memory, and the expected contents of the target. */
enum { ROOM = 1 << 17, PAGE = 4096 };
static char *source, *target, *want;

static char *region(void)
{
    char *p = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(p != MAP_FAILED && mprotect(p + ROOM, PAGE, PROT_NONE) == 0);
    return p;
}

static void setup(void)
{
    source = region();
    target = region();
    want = malloc(ROOM);
    for (size_t i = 0; i < ROOM; i++)
        source[i] = (char)rand();
}

static void fresh(void)
{
    memset(target, 0x55, ROOM);
    memset(want, 0x55, ROOM);
}

/* Where a series begins that ends where the memory does. */
static ptrdiff_t begin(ptrdiff_t step, size_t n, size_t elem)
{
    ptrdiff_t last = (ptrdiff_t)(n - 1) * step;
    return ROOM - (ptrdiff_t)elem - (last > 0 ? last : 0);
}

/* Apart by nothing, a little, or a lot; from the front or from the back. */
static ptrdiff_t some_step(size_t elem)
{
    ptrdiff_t step = (ptrdiff_t)elem * (1 + rand() % 5) + (rand() % 3 ? 0 : rand() % 40);
    return rand() % 4 ? step : -step;
}

static size_t some_size(void)
{
    static const size_t common[] = {1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64};
    return rand() % 2 ? common[rand() % 12] : 1 + (size_t)rand() % 400;
}

START_TEST(series)
{
    for (int turn = 0; turn < 6000; turn++) {
        size_t elem = some_size(), n = 1 + (size_t)rand() % 40;
        ptrdiff_t to_step = rand() % 2 ? (ptrdiff_t)elem : some_step(elem), from_step = some_step(elem);
        ptrdiff_t to = begin(to_step, n, elem), from = begin(from_step, n, elem);
        fresh();
        for (size_t i = 0; i < n; i++)
            memcpy(want + to + (ptrdiff_t)i * to_step, source + from + (ptrdiff_t)i * from_step, elem);
        mr_move_series(target + to, to_step, source + from, from_step, n, elem);
        ck_assert_msg(!memcmp(target, want, ROOM), "%zu of %zu bytes, %td to %td", n, elem, from_step, to_step);
    }
}
END_TEST

START_TEST(numbers)
{
    for (int level = 0; level <= (int)mr_vectors(); level++) {
        const struct mr_moves *m = mr_moves_at((enum mr_vectors)level);
        for (int turn = 0; turn < 2000; turn++) {
            size_t elem = turn % 2 ? 4 : 8, n = 1 + (size_t)rand() % 150;
            ptrdiff_t step = (ptrdiff_t)elem * (2 + rand() % 3), from = begin(step, n, elem);
            ptrdiff_t to = begin((ptrdiff_t)elem, n, elem);
            fresh();
            for (size_t i = 0; i < n; i++)
                memcpy(want + to + (ptrdiff_t)(i * elem), source + from + (ptrdiff_t)i * step, elem);
            ck_assert((elem == 4 ? m->numbers_4 : m->numbers_8)(target + to, source + from, step, n));
            ck_assert_msg(!memcmp(target, want, ROOM), "level %d, %zu of %zu bytes every %td", level, n, elem, step);
            /* sizes without a loop are left alone */
            ck_assert(!(elem == 4 ? m->numbers_4 : m->numbers_8)(target + to, source, 5 * (ptrdiff_t)elem, 1));
            ck_assert(!(elem == 4 ? m->numbers_4 : m->numbers_8)(target + to, source, 2 * (ptrdiff_t)elem + 1, 1));
            ck_assert(!memcmp(target, want, ROOM));
        }
    }
}
END_TEST

/* And out of one stretch; levels without a loop report this, and the highest must have one. */
START_TEST(numbers_spread)
{
    for (int level = 0; level <= (int)mr_vectors(); level++) {
        const struct mr_moves *m = mr_moves_at((enum mr_vectors)level);
        for (int turn = 0; turn < 2000; turn++) {
            size_t elem = turn % 2 ? 4 : 8, n = 1 + (size_t)rand() % 150;
            ptrdiff_t step = (ptrdiff_t)elem * (2 + rand() % 3), to = begin(step, n, elem);
            ptrdiff_t from = begin((ptrdiff_t)elem, n, elem);
            bool done;
            fresh();
            done = (elem == 4 ? m->spread_4 : m->spread_8)(target + to, step, source + from, n);
            for (size_t i = 0; i < n && done; i++)
                memcpy(want + to + (ptrdiff_t)i * step, source + from + (ptrdiff_t)(i * elem), elem);
            ck_assert(done || level != MR_VECTORS_AVX512 || (elem == 8 && step != 16));
            ck_assert_msg(!memcmp(target, want, ROOM), "level %d, %zu of %zu bytes every %td", level, n, elem, step);
            ck_assert(!(elem == 4 ? m->spread_4 : m->spread_8)(target + to, 5 * (ptrdiff_t)elem, source, 1));
            ck_assert(!(elem == 4 ? m->spread_4 : m->spread_8)(target + to, 2 * (ptrdiff_t)elem + 1, source, 1));
            ck_assert(!(elem == 4 ? m->spread_4 : m->spread_8)(target + to, -2 * (ptrdiff_t)elem, source, 1));
            ck_assert(!memcmp(target, want, ROOM));
        }
    }
}
END_TEST

START_TEST(tile)
{
    for (int turn = 0; turn < 500; turn++) {
        size_t elem = (size_t)4 << rand() % 3, n = 1 + (size_t)rand() % 50;
        ptrdiff_t size = (ptrdiff_t)elem, row = size + rand() % 9, step = MR_MOVE_ROWS * row + rand() % 100;
        bool back = rand() % 2; /* from one row of numbers after the other, or to them */
        ptrdiff_t from_row = back ? (ptrdiff_t)n * size : row, from_step = back ? size : step;
        ptrdiff_t to_row = back ? row : (ptrdiff_t)n * size, to_step = back ? step : size;
        ptrdiff_t from = begin(from_step, n, elem) - (MR_MOVE_ROWS - 1) * from_row;
        ptrdiff_t to = begin(to_step, n, elem) - (MR_MOVE_ROWS - 1) * to_row;
        fresh();
        for (int r = 0; r < MR_MOVE_ROWS; r++)
            for (size_t i = 0; i < n; i++)
                memcpy(want + to + r * to_row + (ptrdiff_t)i * to_step,
                       source + from + r * from_row + (ptrdiff_t)i * from_step, elem);
        mr_move_tile(target + to, to_row, to_step, source + from, from_row, from_step, n, elem);
        ck_assert_msg(!memcmp(target, want, ROOM), "%zu of %zu bytes, rows %td to %td", n, elem, from_row, to_row);
    }
}
END_TEST

START_TEST(lists)
{
    enum { MAX = 60 };
    for (int turn = 0; turn < 3000; turn++) {
        ptrdiff_t at[MAX], place = 0;
        size_t before[MAX + 1], n = 1 + (size_t)rand() % MAX, elem = rand() % 3 ? some_size() : 0;
        before[0] = (size_t)rand() % 1000; /* a list's middle part */
        for (size_t i = 0; i < n; i++) {
            size_t len = elem ? elem : some_size();
            at[i] = place;
            before[i + 1] = before[i] + len;
            place += (ptrdiff_t)len + rand() % 20;
        }
        size_t bytes = before[n] - before[0], end = (size_t)at[n - 1] + before[n] - before[n - 1];
        char *flat = source + ROOM - bytes, *mem = source + ROOM - end;
        fresh();
        for (size_t i = 0; i < n; i++)
            memcpy(want + ROOM - bytes + before[i] - before[0], mem + at[i], before[i + 1] - before[i]);
        mr_move_gather(target + ROOM - bytes, mem, at, n, elem, elem ? NULL : before);
        ck_assert_msg(!memcmp(target, want, ROOM), "gather %zu of %zu bytes", n, elem);
        fresh();
        for (size_t i = 0; i < n; i++)
            memcpy(want + ROOM - end + at[i], flat + before[i] - before[0], before[i + 1] - before[i]);
        mr_move_scatter(target + ROOM - end, flat, at, n, elem, elem ? NULL : before);
        ck_assert_msg(!memcmp(target, want, ROOM), "scatter %zu of %zu bytes", n, elem);
    }
}
END_TEST

/* Pieces of 64 bytes, at each level. */
START_TEST(lists_of_64)
{
    enum { MAX = 60 };
    for (int level = 0; level <= (int)mr_vectors(); level++)
        for (int turn = 0; turn < 500; turn++) {
            const struct mr_moves *m = mr_moves_at((enum mr_vectors)level);
            size_t n = 1 + (size_t)rand() % MAX, len = n * 64;
            ptrdiff_t at[MAX], end = 0;
            for (size_t i = 0; i < n; i++, end += 64) {
                end += rand() % 3 ? rand() % 100 : 0;
                at[i] = end;
            }
            fresh();
            for (size_t i = 0; i < n; i++)
                memcpy(want + ROOM - len + i * 64, source + ROOM - end + at[i], 64);
            m->gather_64(target + ROOM - len, source + ROOM - end, at, n);
            ck_assert_msg(!memcmp(target, want, ROOM), "level %d, %zu gathered", level, n);
            fresh();
            for (size_t i = 0; i < n; i++)
                memcpy(want + ROOM - end + at[i], source + ROOM - len + i * 64, 64);
            m->scatter_64(target + ROOM - end, source + ROOM - len, at, n);
            ck_assert_msg(!memcmp(target, want, ROOM), "level %d, %zu scattered", level, n);
        }
}
END_TEST

/* Records of any pieces that do not overlap, in and out, up to where no memory is. */
START_TEST(records)
{
    enum { MAX = 16 };
    unsigned done = 0;
    for (int level = 0; level <= (int)mr_vectors(); level++)
        for (int turn = 0; turn < 2000; turn++) {
            const struct mr_moves *m = mr_moves_at((enum mr_vectors)level);
            struct mr_move_piece piece[MAX];
            size_t num = 1 + (size_t)rand() % MAX, n = 1 + (size_t)rand() % 40, size = 0;
            ptrdiff_t extent = 0, stride, mem;
            bool unpack = turn % 2, could;
            for (size_t i = 0; i < num; i++) {
                extent += rand() % 3 ? 0 : rand() % 8;
                piece[i] = (struct mr_move_piece){.place = extent, .at = size, .len = 1 + (size_t)rand() % 6};
                extent += (ptrdiff_t)piece[i].len;
                size += piece[i].len;
            }
            for (size_t i = 0; i + 1 < num; i++) { /* in another order in memory than packed */
                size_t k = i + (size_t)rand() % (num - i);
                ptrdiff_t place = piece[i].place;
                if (piece[k].len != piece[i].len)
                    continue;
                piece[i].place = piece[k].place;
                piece[k].place = place;
            }
            for (size_t i = 0; i < num; i++)
                piece[i].place -= 20;
            stride = extent + rand() % 30;
            stride = rand() % 2 ? stride : -stride;
            mem = begin(stride, n, (size_t)extent) + 20;
            fresh();
            could = m->records((unpack ? target : source) + mem, stride, (unpack ? source : target) + ROOM - n * size,
                               size, n, piece, num, unpack);
            done += could;
            for (size_t r = 0; r < n && could; r++)
                for (size_t i = 0; i < num; i++) {
                    size_t flat = ROOM - (n - r) * size + piece[i].at;
                    ptrdiff_t at = mem + (ptrdiff_t)r * stride + piece[i].place;
                    memcpy(want + (unpack ? at : (ptrdiff_t)flat), source + (unpack ? (ptrdiff_t)flat : at),
                           piece[i].len);
                }
            ck_assert_msg(!memcmp(target, want, ROOM), "level %d, %zu records of %zu bytes", level, n, size);
        }
#ifdef __x86_64__
    ck_assert(done || !__builtin_cpu_supports("avx512vbmi"));
#else
    ck_assert_uint_eq(done, 0);
#endif
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("move");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, series);
    tcase_add_test(t, numbers);
    tcase_add_test(t, numbers_spread);
    tcase_add_test(t, tile);
    tcase_add_test(t, lists);
    tcase_add_test(t, lists_of_64);
    tcase_add_test(t, records);
    return check_run(t, NULL);
}
