/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every way to unmap memory is reported, with a covering range, before it happens: also by calls inside the C library,
 * which interposition does not reach.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libmrmpi/verbs/memory/calls.h"
#include "libmrmpi/verbs/memory/patch.h"
#include "tests/check.h"

#define BIG (64u << 20)

static volatile size_t too_many = SIZE_MAX / 2;
static volatile unsigned reports; /* volatile: the compiler believes that free and the like call nobody here */
static volatile uintptr_t reported_from, reported_to;
static uintptr_t wanted_from, wanted_to;
static volatile char *still_there; /* read while the report is made */

static void take_note(const void *addr, size_t len)
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

START_TEST(errors_are_those_of_the_kernel)
{
    errno = 0;
    ck_assert_int_eq(munmap((void *)1, 4096), -1);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_ptr_eq(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), MAP_FAILED);
    ck_assert_int_eq(errno, EINVAL);
    ck_assert_int_eq(syscall(SYS_close, -1), -1);
    ck_assert_int_eq(errno, EBADF);
    ck_assert_int_eq(syscall(SYS_getpid), getpid());
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

    expect_reports_of(q, page);
    ck_assert_int_eq(syscall(SYS_madvise, q, page, MADV_DONTNEED), 0);
    check_covered();

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

/* More than one of a thread's heaps holds: the last goes with its last block. */
static void *in_a_thread(void *arg)
{
    char *p[5];

    for (int i = 0; i < 5; i++) {
        p[i] = malloc(20 << 20);
        ck_assert_ptr_nonnull(p[i]);
    }
    expect_reports_of(p[4], 20 << 20);
    for (int i = 4; i >= 0; i--)
        free(p[i]);
    check_covered();
    return NULL;
}

START_TEST(blocks_of_a_thread)
{
    pthread_t t;

    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    ck_assert_int_eq(pthread_create(&t, NULL, in_a_thread, NULL), 0);
    pthread_join(t, NULL);
}
END_TEST

static void *tell_where(void *where)
{
    *(void **)where = __builtin_frame_address(0);
    return NULL;
}

/* More than the C library keeps for further threads */
START_TEST(stacks_of_threads)
{
    pthread_attr_t attr;
    pthread_t t;
    char *stack = NULL;
    uintptr_t from, to;

    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, BIG), 0);
    reports = 0;
    reported_from = reported_to = 0;
    ck_assert_int_eq(pthread_create(&t, &attr, tell_where, &stack), 0);
    pthread_join(t, NULL);
    from = reported_from;
    to = reported_to;
    ck_assert_uint_gt(reports, 0);
    ck_assert((uintptr_t)stack >= from && (uintptr_t)stack < to);
}
END_TEST

START_TEST(the_end_of_the_main_heap)
{
    char *p;

    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
    p = malloc(16 << 20);
    ck_assert_ptr_nonnull(p);
    ck_assert((void *)p < sbrk(0)); /* mapped */
    expect_reports_of(p + (4 << 20), 1 << 20);
    free(p);
    check_covered();
    ck_assert((void *)(p + (4 << 20)) >= sbrk(0));

    expect_reports_of(sbrk(0), 4096);
    ck_assert_ptr_ne(sbrk(4096), (void *)-1);
    still_there = NULL;
    ck_assert_uint_eq(reports, 0); /* growing */
    expect_reports_of((char *)sbrk(0) - 4096, 4096);
    ck_assert_ptr_ne(sbrk(-4096), (void *)-1);
    check_covered();
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
    char *p[1000], *end;

    for (int i = 0; i < 1000; i++) {
        p[i] = malloc(10000);
        ck_assert_ptr_nonnull(p[i]);
    }
    end = malloc(10000);
    for (int i = 0; i < 1000; i++)
        free(p[i]);
    expect_reports_of(p[500], 8192);
    malloc_trim(0);
    check_covered();
    free(end);
}
END_TEST

/* A function too short for a jump stays unchanged. */
START_TEST(what_has_no_room)
{
    ck_assert(!mr_patch_function((void *)tell_where, 1, (void *)in_a_thread));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memory");
    const char *failed = mr_calls_lead(take_note);

    if (failed) {
        fprintf(stderr, "%s\n", failed);
        return 1;
    }
    tcase_add_test(t, errors_are_those_of_the_kernel);
    tcase_add_test(t, mappings);
    tcase_add_test(t, blocks_with_their_own_mapping);
    tcase_add_test(t, small_blocks_of_the_main_heap_are_nobodys_business);
    tcase_add_test(t, blocks_of_a_thread);
    tcase_add_test(t, stacks_of_threads);
    tcase_add_test(t, the_end_of_the_main_heap);
    tcase_add_test(t, segments);
    tcase_add_test(t, trimming);
    tcase_add_test(t, what_has_no_room);
    return check_run(t, NULL);
}
