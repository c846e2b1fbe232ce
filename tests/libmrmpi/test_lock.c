/* SPDX-License-Identifier: BSD-3-Clause */
/* The library's lock among threads: no thread starves, and a thread without work is left asleep. */
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "libmrmpi/base/lock.h"
#include "tests/check.h"

enum { THREADS = 6, TIMES = 3000 };

struct sleeper {
    pthread_t thread;
    struct mr_lock_wish wish;
    bool queued; /* it has the lock for the first time, and gives way next */
    int turns;
    bool enough;
};

/* A thread that calls MPI, or waits there until done. */
static void *sleeps(void *arg)
{
    struct sleeper *s = arg;

    mr_lock();
    s->queued = true;
    do
        s->turns++;
    while (!s->enough && (mr_lock_yield(s->wish), true));
    mr_unlock();
    return NULL;
}

/* With the lock: waits until a thread queues for it. */
static void wait_until_wanted(void)
{
    while (!(__atomic_load_n(&mr_lock_word, __ATOMIC_ACQUIRE) & MR_LOCK_WANTED))
        sched_yield();
}

static bool yield_lock(void)
{
    return mr_lock_yield((struct mr_lock_wish){.at_once = true});
}

START_TEST(giving_way_is_not_in_vain)
{
    mr_threaded = true;
    for (int i = 0; i < 200; i++) {
        struct sleeper s = {.enough = true};

        mr_lock();
        ck_assert(!yield_lock());
        pthread_create(&s.thread, NULL, sleeps, &s);
        wait_until_wanted();
        ck_assert(yield_lock());
        ck_assert_int_eq(s.turns, 1);
        ck_assert(!yield_lock());
        mr_unlock();
        pthread_join(s.thread, NULL);
    }
}
END_TEST

/* A thread that unlocks and locks at once, however slowly the other wakes. */
START_TEST(unlocking_lets_others_in)
{
    struct sleeper s = {.enough = true};

    mr_threaded = true;
    mr_lock();
    pthread_create(&s.thread, NULL, sleeps, &s);
    wait_until_wanted();
    while (!s.turns) {
        mr_unlock();
        mr_lock();
    }
    mr_unlock();
    pthread_join(s.thread, NULL);
    ck_assert_uint_eq(mr_lock_word, 0);
}
END_TEST

static void start_waiting(struct sleeper *s)
{
    mr_lock();
    pthread_create(&s->thread, NULL, sleeps, s);
    wait_until_wanted();
    mr_unlock();
    for (bool queued = false; !queued;) { /* it has had the lock, and has given way to us */
        mr_lock();
        queued = s->queued;
        if (!queued)
            mr_unlock();
    }
}

static void end_waiting(struct sleeper *s)
{
    s->enough = true;
    mr_unlock();
    pthread_join(s->thread, NULL);
    ck_assert_uint_eq(mr_lock_word, 0);
}

START_TEST(who_waits_for_a_request_is_asked_when_it_is_complete)
{
    bool complete = false;
    struct sleeper s = {.wish = {.complete = &complete}};
    int turns;

    mr_threaded = true;
    start_waiting(&s);
    wait_until_wanted();
    turns = s.turns;
    for (int i = 0; i < 10; i++) {
        mr_lock_news++;
        ck_assert(!yield_lock());
    }
    ck_assert_int_eq(s.turns, turns);
    complete = true;
    ck_assert(yield_lock());
    ck_assert_int_gt(s.turns, turns);
    end_waiting(&s);
}
END_TEST

START_TEST(who_looks_itself_is_asked_when_there_is_news)
{
    struct sleeper s = {.wish = {.seen = 1000000}};
    int turns, rounds = 0;

    mr_threaded = true;
    mr_lock_news = 1000000 - 3; /* the three calls of mr_lock */
    start_waiting(&s);
    wait_until_wanted();
    mr_lock_news = 1000000;
    turns = s.turns;
    for (int i = 0; i < 10; i++)
        ck_assert(!yield_lock());
    ck_assert_int_eq(s.turns, turns);
    mr_lock_news++;
    ck_assert(yield_lock());
    ck_assert_int_gt(s.turns, turns);
    /* and now and then without any: it may wait for something outside */
    mr_lock_news = 1000000;
    while (!yield_lock())
        ck_assert_int_lt(rounds++, 1000);
    end_waiting(&s);
}
END_TEST

static int inside, count;

static void *counts(void *arg)
{
    for (int i = 0; i < TIMES; i++) {
        mr_lock();
        ck_assert_int_eq(++inside, 1);
        count++;
        inside--;
        if (i % 3 == 0)
            mr_lock_yield((struct mr_lock_wish){.seen = mr_lock_news, .at_once = i % 2});
        ck_assert_int_eq(++inside, 1);
        inside--;
        mr_unlock();
    }
    return NULL;
}

START_TEST(one_at_a_time)
{
    pthread_t thread[THREADS];

    mr_threaded = true;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, counts, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    ck_assert_int_eq(count, THREADS * TIMES);
    ck_assert_uint_eq(mr_lock_word, 0);
}
END_TEST

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void *calls_late(void *arg)
{
    usleep(50000);
    return sleeps(arg);
}

/* A nap of the lock's holder does not delay a thread that calls MPI, whether it came before or comes meanwhile. */
START_TEST(naps_end_when_the_lock_is_wanted)
{
    struct sleeper s = {.enough = true};
    uint64_t begin = now_ms();

    mr_threaded = true;
    mr_lock();
    pthread_create(&s.thread, NULL, _i ? calls_late : sleeps, &s);
    if (!_i)
        wait_until_wanted();
    mr_lock_nap(30000000000);
    ck_assert_uint_lt(now_ms() - begin, 15000);
    wait_until_wanted();
    ck_assert(yield_lock());
    ck_assert_int_eq(s.turns, 1);
    mr_unlock();
    pthread_join(s.thread, NULL);
    ck_assert_uint_eq(mr_lock_word, 0);
}
END_TEST

/* Threads waiting for a missing event would find nothing new. */
START_TEST(naps_last_while_nobody_has_a_reason)
{
    bool complete = false;
    struct sleeper s = {.wish = {.complete = &complete}};
    uint64_t begin;

    mr_threaded = true;
    mr_lock();
    pthread_create(&s.thread, NULL, sleeps, &s);
    wait_until_wanted();
    ck_assert(yield_lock()); /* yields in turn, and waits */
    begin = now_ms();
    mr_lock_nap(200000000);
    ck_assert_uint_ge(now_ms() - begin, 199);
    s.enough = complete = true;
    ck_assert(yield_lock());
    mr_unlock();
    pthread_join(s.thread, NULL);
    mr_threaded = false;
    begin = now_ms();
    mr_lock_nap(100000000);
    ck_assert_uint_ge(now_ms() - begin, 99);
}
END_TEST

/* A nap ends when its descriptor can be read, in a process of one thread and of several. */
START_TEST(a_descriptor_ends_naps)
{
    uint64_t begin = now_ms();
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    mr_threaded = _i;
    mr_lock();
    mr_lock_nap_by(100000000, ends[0]);
    ck_assert_uint_ge(now_ms() - begin, 99);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    begin = now_ms();
    mr_lock_nap_by(30000000000, ends[0]);
    ck_assert_uint_lt(now_ms() - begin, 15000);
    mr_unlock();
    close(ends[0]);
    close(ends[1]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lock");

    tcase_add_test(t, giving_way_is_not_in_vain);
    tcase_add_test(t, unlocking_lets_others_in);
    tcase_add_test(t, who_waits_for_a_request_is_asked_when_it_is_complete);
    tcase_add_test(t, who_looks_itself_is_asked_when_there_is_news);
    tcase_add_test(t, one_at_a_time);
    tcase_add_loop_test(t, naps_end_when_the_lock_is_wanted, 0, 2);
    tcase_add_test(t, naps_last_while_nobody_has_a_reason);
    tcase_add_loop_test(t, a_descriptor_ends_naps, 0, 2);
    return check_run(t, NULL);
}
