/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every way in which memory is unmapped is reported, with a range that covers it, before it happens. This program takes
 * the place of the ABI library: its definitions come ahead of the C library's.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "libmrmpi/memory/watch.h"
#include "tests/check.h"

#define BIG (64u << 20)

static bool began, (*can_lose_track)(void);
static volatile size_t too_many = SIZE_MAX / 2;
static volatile unsigned reports; /* volatile: the compiler believes that free and the like call nobody here */
static volatile uintptr_t reported_from, reported_to;
static uintptr_t wanted_from, wanted_to;
static volatile char *still_there; /* read while the report is made */

void mr_memory_watch_begin(bool (*lost_track)(void))
{
    can_lose_track = lost_track;
    began = true;
}

bool mr_memory_watched(void)
{
    return began;
}

void mr_memory_unmapped(const void *addr, size_t len)
{
    uintptr_t from = (uintptr_t)addr, to = from + len;

    if (still_there && (uintptr_t)still_there >= from && (uintptr_t)still_there < to)
        (void)*still_there;
    if (!reports++ || from < reported_from)
        reported_from = from;
    if (to > reported_to)
        reported_to = to;
}

static void expect_reports_of(const void *addr, size_t len)
{
    reports = 0;
    reported_from = reported_to = 0;
    still_there = (volatile char *)addr;
    wanted_from = (uintptr_t)addr;
    wanted_to = wanted_from + len;
}

static void check_covered(void)
{
    still_there = NULL;
    ck_assert_uint_gt(reports, 0);
    ck_assert_uint_le(reported_from, wanted_from);
    ck_assert_uint_ge(reported_to, wanted_to);
}

START_TEST(is_in_force)
{
    ck_assert(began);
}
END_TEST

START_TEST(mappings)
{
    size_t page = 4096, len = 16 * page;
    char *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;

    ck_assert_ptr_ne(p, MAP_FAILED);
    expect_reports_of(p, page);
    ck_assert_int_eq(madvise(p, page, MADV_DONTNEED), 0);
    check_covered();

    expect_reports_of(p, page);
    ck_assert_int_eq(madvise(p, page, MADV_WILLNEED), 0);
    still_there = NULL;
    ck_assert_uint_eq(reports, 0);

    expect_reports_of(p + page, page);
    ck_assert_ptr_eq(mmap(p + page, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                     p + page);
    check_covered();

    strcpy(p, "moved");
    expect_reports_of(p, len);
    q = mremap(p, len, 64 * page, MREMAP_MAYMOVE);
    ck_assert_ptr_ne(q, MAP_FAILED);
    check_covered();
    ck_assert_str_eq(q, "moved");

    expect_reports_of(q, 64 * page);
    ck_assert_int_eq(munmap(q, 64 * page), 0);
    check_covered();
}
END_TEST

START_TEST(blocks_with_their_own_mapping)
{
    char *p = malloc(BIG), *q;

    ck_assert_ptr_nonnull(p);
    memset(p, 1, BIG);
    expect_reports_of(p, BIG);
    q = realloc(p, 2 * BIG);
    ck_assert_ptr_nonnull(q);
    check_covered();
    ck_assert_int_eq(q[BIG - 1], 1);
    expect_reports_of(q, 2 * BIG);
    free(q);
    check_covered();

    p = aligned_alloc(1 << 20, BIG);
    ck_assert_ptr_nonnull(p);
    expect_reports_of(p, BIG);
    free(p);
    check_covered();

    p = reallocarray(NULL, BIG / 8, 8);
    ck_assert_ptr_nonnull(p);
    expect_reports_of(p, BIG);
    free(p);
    check_covered();
    ck_assert_ptr_null(reallocarray(NULL, too_many, 4));
}
END_TEST

START_TEST(small_blocks_of_the_main_heap_are_nobodys_business)
{
    void *p = malloc(1000);

    expect_reports_of(p, 1000);
    p = realloc(p, 5000);
    free(p);
    free(NULL);
    still_there = NULL;
    ck_assert_uint_eq(reports, 0);
}
END_TEST

static void *in_a_thread(void *arg)
{
    void *p = malloc(100000);

    expect_reports_of(p, 100000);
    free(p);
    check_covered();
    return NULL;
}

START_TEST(blocks_of_a_thread)
{
    pthread_t t;

    ck_assert_int_eq(pthread_create(&t, NULL, in_a_thread, NULL), 0);
    pthread_join(t, NULL);
}
END_TEST

START_TEST(segments)
{
    int id = shmget(IPC_PRIVATE, 65536, 0600 | IPC_CREAT);
    void *p;

    ck_assert_int_ge(id, 0);
    p = shmat(id, NULL, 0);
    shmctl(id, IPC_RMID, NULL);
    ck_assert_ptr_ne(p, (void *)-1);
    expect_reports_of(p, 65536);
    ck_assert_int_eq(shmdt(p), 0);
    check_covered();
}
END_TEST

START_TEST(trimming)
{
    expect_reports_of(NULL, 0);
    malloc_trim(0);
    still_there = NULL;
    ck_assert_uint_gt(reports, 0);
    ck_assert_uint_eq(reported_to, UINTPTR_MAX);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memory");

    tcase_add_test(t, is_in_force);
    tcase_add_test(t, mappings);
    tcase_add_test(t, blocks_with_their_own_mapping);
    tcase_add_test(t, small_blocks_of_the_main_heap_are_nobodys_business);
    tcase_add_test(t, blocks_of_a_thread);
    tcase_add_test(t, segments);
    tcase_add_test(t, trimming);
    return check_run(t, NULL);
}
