/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the ranks of a node have a core each: asked of all of them. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "libmrmpi/channel/shm_cores.h"
#include "tests/check.h"

static struct mr_node_cores node;

static struct mr_cores from_to(int first, int last)
{
    struct mr_cores c = {{0}};

    for (int i = first; i <= last; i++)
        c.of[i / 64] |= UINT64_C(1) << (i % 64);
    return c;
}

static bool join(int ranks, int first, int last)
{
    struct mr_cores c = from_to(first, last);

    return mr_cores_join(&node, &c, ranks);
}

/* As a launcher binds them where cores have two threads each. */
START_TEST(ranks_with_few_cores_of_their_own)
{
    node = (struct mr_node_cores){0};
    for (int r = 0; r < 96; r++)
        ck_assert(!join(96, 2 * r, 2 * r + 1));
}
END_TEST

START_TEST(ranks_that_share_what_is_too_little)
{
    node = (struct mr_node_cores){0};
    for (int r = 0; r < 4; r++)
        ck_assert(!join(5, 100, 103));
    ck_assert(join(5, 100, 103));
}
END_TEST

START_TEST(as_many_cores_as_ranks)
{
    node = (struct mr_node_cores){0};
    for (int r = 0; r < 4; r++)
        ck_assert(!join(4, 0, 3));
}
END_TEST

START_TEST(ranks_on_the_very_same_core)
{
    node = (struct mr_node_cores){0};
    ck_assert(!join(2, MR_CORES_MOST - 1, MR_CORES_MOST - 1));
    ck_assert(join(2, MR_CORES_MOST - 1, MR_CORES_MOST - 1));
}
END_TEST

enum { THREADS = 8 };

static void *join_in_thread(void *told)
{
    if (join(THREADS, 0, THREADS - 2))
        __atomic_fetch_add((int *)told, 1, __ATOMIC_RELAXED);
    return NULL;
}

START_TEST(one_is_the_last)
{
    for (int round = 0; round < 200; round++) {
        pthread_t t[THREADS];
        int told = 0;

        node = (struct mr_node_cores){0};
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&t[i], NULL, join_in_thread, &told), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(t[i], NULL);
        ck_assert_int_eq(told, 1);
    }
}
END_TEST

START_TEST(mine_are_those_that_the_kernel_allows)
{
    struct mr_cores mine;
    cpu_set_t set;
    int num = 0;

    mr_cores_mine(&mine);
    for (int i = 0; i < MR_CORES_MOST / 64; i++)
        num += __builtin_popcountll(mine.of[i]);
    ck_assert_int_gt(num, 0);
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        for (int i = 0; i < CPU_SETSIZE; i++)
            ck_assert_int_eq(mine.of[i / 64] >> (i % 64) & 1, !!CPU_ISSET(i, &set));
}
END_TEST

static bool job_lives;

static bool alive(void)
{
    return job_lives;
}

static void *join_late(void *arg)
{
    usleep(20000);
    join(2, 0, 1);
    return arg;
}

START_TEST(the_first_waits_for_the_last)
{
    pthread_t late;

    node = (struct mr_node_cores){0};
    job_lives = true;
    join(2, 0, 1);
    ck_assert_int_eq(pthread_create(&late, NULL, join_late, NULL), 0);
    mr_cores_await(&node, 2, alive);
    ck_assert_uint_eq(node.joined, 2);
    pthread_join(late, NULL);
}
END_TEST

START_TEST(but_not_in_a_job_that_has_failed)
{
    node = (struct mr_node_cores){0};
    job_lives = false;
    join(2, 0, 1);
    mr_cores_await(&node, 2, alive);
    ck_assert_uint_eq(node.joined, 1);
}
END_TEST

int main(void)
{
    TCase *c = tcase_create("cores");

    tcase_add_test(c, ranks_with_few_cores_of_their_own);
    tcase_add_test(c, ranks_that_share_what_is_too_little);
    tcase_add_test(c, as_many_cores_as_ranks);
    tcase_add_test(c, ranks_on_the_very_same_core);
    tcase_add_test(c, one_is_the_last);
    tcase_add_test(c, the_first_waits_for_the_last);
    tcase_add_test(c, but_not_in_a_job_that_has_failed);
    tcase_add_test(c, mine_are_those_that_the_kernel_allows);
    return check_run(c, NULL);
}
