/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's lock. A mutex would go, again and again, to a thread that unlocks and locks in a loop: a sleeping
 * thread needs time to wake, on a busy machine milliseconds, and would never find the mutex free. There is a queue
 * instead, and the lock is handed over without being free in between.
 */
#include "libmrmpi/base/lock.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <time.h>

/* After so many polls in vain another thread polls although there is no news: its event may be invisible to us. */
#define ROUNDS_ALONE 500
#define NAP_SLICE_NS 50000 /* a nap ends so soon after somebody wants the lock */

struct waiter {
    struct waiter *next;
    sem_t called;
    struct mr_lock_wish wish;
    bool passed;   /* it has the lock, and is out of the queue */
    bool awake;    /* told that the lock was free */
    bool deserves; /* another thread took the lock first: next time the lock is handed over */
};

bool mr_threaded;
uint32_t mr_lock_word;
uint64_t mr_lock_news;
static unsigned rounds_alone; /* by the holder */

/* Guards the queue, and MR_LOCK_WANTED, which shows that there is one. */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *first, **end = &first;

static void enqueue_waiter(struct waiter *w)
{
    w->next = NULL;
    *end = w;
    end = &w->next;
    __atomic_fetch_or(&mr_lock_word, MR_LOCK_WANTED, __ATOMIC_RELAXED);
}

static void dequeue_waiter(struct waiter *w)
{
    struct waiter **at = &first;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    if (!*at)
        end = at;
    if (!first)
        __atomic_fetch_and(&mr_lock_word, ~(uint32_t)MR_LOCK_WANTED, __ATOMIC_RELAXED);
}

static bool take_if_free(void)
{
    return !(__atomic_fetch_or(&mr_lock_word, MR_LOCK_HELD, __ATOMIC_ACQUIRE) & MR_LOCK_HELD);
}

/* By the holder, who gives the lock up. */
static void pass_lock(struct waiter *w)
{
    dequeue_waiter(w);
    w->passed = true;
    sem_post(&w->called);
}

static void sleep_until_called(struct waiter *w)
{
    pthread_mutex_unlock(&guard);
    while (sem_wait(&w->called) && errno == EINTR)
        ;
    pthread_mutex_lock(&guard);
}

/* In the queue, with the guard, which is given back. */
static void wait_in_queue(struct waiter *w)
{
    for (sleep_until_called(w); !w->passed; sleep_until_called(w)) {
        if (take_if_free()) {
            dequeue_waiter(w);
            break;
        }
        w->awake = false;
        w->deserves = true;
    }
    pthread_mutex_unlock(&guard);
    sem_destroy(&w->called);
}

void mr_lock_wait(void)
{
    struct waiter w = {.wish = {.at_once = true}};

    pthread_mutex_lock(&guard);
    /* in this order: an unlock either leaves the lock free for us, or sees MR_LOCK_WANTED */
    __atomic_fetch_or(&mr_lock_word, MR_LOCK_WANTED, __ATOMIC_SEQ_CST);
    if (take_if_free()) {
        if (!first)
            __atomic_fetch_and(&mr_lock_word, ~(uint32_t)MR_LOCK_WANTED, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&guard);
        return;
    }
    sem_init(&w.called, 0, 0);
    enqueue_waiter(&w);
    wait_in_queue(&w);
}

/* A caller that saw MR_LOCK_WANTED before the queue was there, or after its end, finds no queue. */
void mr_lock_pass(void)
{
    pthread_mutex_lock(&guard);
    if (first && first->deserves) {
        pass_lock(first);
    } else {
        __atomic_fetch_and(&mr_lock_word, ~(uint32_t)MR_LOCK_HELD, __ATOMIC_RELEASE);
        if (first && !first->awake) {
            first->awake = true;
            sem_post(&first->called);
        }
    }
    pthread_mutex_unlock(&guard);
}

static bool has_reason(const struct mr_lock_wish *w)
{
    return w->at_once || (w->complete ? *w->complete : w->seen != mr_lock_news);
}

static bool lock_is_wanted(void)
{
    struct waiter *w = first;

    while (w && !has_reason(&w->wish))
        w = w->next;
    return w;
}

static bool is_wanted_now(void)
{
    bool yes;

    pthread_mutex_lock(&guard);
    yes = lock_is_wanted();
    pthread_mutex_unlock(&guard);
    return yes;
}

/* True: by the descriptor. */
static bool woken_by(int fd, uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};

    if (fd >= 0)
        return ppoll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, &time, NULL) > 0;
    nanosleep(&time, NULL);
    return false;
}

/*
 * Without a descriptor by sleeping, not by waiting for a condition: on a simulated fabric a time-out lets no time pass,
 * a sleep does.
 */
void mr_lock_nap_by(uint64_t ns, int fd)
{
    while (ns && !(mr_threaded && is_wanted_now())) {
        uint64_t slice = mr_threaded && ns > NAP_SLICE_NS ? NAP_SLICE_NS : ns;

        if (woken_by(fd, slice))
            return;
        ns -= slice;
    }
}

void mr_lock_nap(uint64_t ns)
{
    mr_lock_nap_by(ns, -1);
}

static struct waiter *whose_turn(void)
{
    struct waiter *w = first;

    while (w && !has_reason(&w->wish))
        w = w->next;
    if (w || ++rounds_alone < ROUNDS_ALONE)
        return w;
    return first;
}

bool mr_lock_hand_over(struct mr_lock_wish wish)
{
    struct waiter w = {.wish = wish}, *next;

    pthread_mutex_lock(&guard);
    next = whose_turn();
    if (!next) {
        pthread_mutex_unlock(&guard);
        return false;
    }
    rounds_alone = 0;
    sem_init(&w.called, 0, 0);
    enqueue_waiter(&w);
    pass_lock(next);
    wait_in_queue(&w);
    return true;
}
