/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of libpmix, their waiters and the watchdog. */
#include "libmrmpi/launch/pmix_answer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 250 };

/* Of the process, for all its lives in a job. */
static struct {
    pthread_mutex_t lock; /* of first and idle */
    struct mr_answer *first;
    bool runs, idle;
    int timer; /* a timerfd; set while somebody waits */
} watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- answers ---- */

/*
 * Threads hand over an answer by atomics. A thread sanitizer in the program does not see these, but sees the memory, by
 * malloc, memcpy and free; so both threads also use a lock, each when the other one is past it.
 */
static void show_order(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

struct mr_answer *mr_answer_new(void)
{
    struct mr_answer *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    PMIX_VALUE_CONSTRUCT(&a->value);
    sem_init(&a->news, 0, 0);
    a->holders = 2;
    return a;
}

static void free_answer(struct mr_answer *a)
{
    show_order();
    sem_destroy(&a->news);
    PMIX_VALUE_DESTRUCT(&a->value);
    for (size_t i = 0; i < a->num_info; i++)
        PMIX_INFO_DESTRUCT(&a->info[i]);
    free(a);
}

void mr_answer_release(struct mr_answer *a)
{
    if (!a)
        return;
    show_order();
    if (!a->given && atomic_fetch_sub(&a->holders, 1) > 1)
        return;
    while (a->given && a->holders > 1) /* libpmix's thread lets go at once */
        syscall(SYS_sched_yield);
    free_answer(a);
}

void mr_answer_give(struct mr_answer *a, pmix_status_t status, const pmix_value_t *value)
{
    a->status = status;
    if (status == PMIX_SUCCESS && value) {
        pmix_value_t *copy = &a->value;

        PMIX_VALUE_XFER(a->status, copy, (pmix_value_t *)value);
    }
    show_order();
    atomic_store(&a->given, true);
    sem_post(&a->news);
    if (atomic_fetch_sub(&a->holders, 1) == 1)
        free_answer(a);
}

/* ---- waiters ---- */

/*
 * The next tick. By the system call itself, as all of the watchdog: simulated hosts give timers another clock. No
 * thread wakes before the tick: in a simulation, a thread woken for nothing moves the end of a short wait.
 */
static void set_tick(void)
{
    const struct itimerspec tick = {.it_value.tv_nsec = TICK_MS * 1000000};

    syscall(SYS_timerfd_settime, watchdog.timer, 0, &tick, NULL);
}

static void begin_waiting(struct mr_answer *a, int64_t ms)
{
    pthread_mutex_lock(&watchdog.lock);
    a->left_ms = ms;
    a->next = watchdog.first;
    watchdog.first = a;
    bool idle = watchdog.idle;
    watchdog.idle = false;
    pthread_mutex_unlock(&watchdog.lock);
    if (idle)
        set_tick();
}

static void end_waiting(struct mr_answer *a)
{
    struct mr_answer **at = &watchdog.first;

    pthread_mutex_lock(&watchdog.lock);
    while (*at != a)
        at = &(*at)->next;
    *at = a->next;
    pthread_mutex_unlock(&watchdog.lock);
}

bool mr_answer_wait(struct mr_answer *a, int64_t ms)
{
    if (!a->given) {
        begin_waiting(a, ms);
        while (sem_wait(&a->news))
            continue;
        end_waiting(a);
    }
    bool given = a->given;
    show_order();
    return given;
}

void mr_answer_wake_all(void)
{
    pthread_mutex_lock(&watchdog.lock);
    for (struct mr_answer *a = watchdog.first; a; a = a->next)
        sem_post(&a->news);
    pthread_mutex_unlock(&watchdog.lock);
}

/* ---- the watchdog ---- */

/* False: nobody waits any more. */
static bool count_tick(void)
{
    pthread_mutex_lock(&watchdog.lock);
    for (struct mr_answer *a = watchdog.first; a; a = a->next) {
        bool waits = a->left_ms > 0;

        a->left_ms -= a->left_ms == INT64_MAX ? 0 : TICK_MS;
        if (waits && a->left_ms <= 0)
            sem_post(&a->news);
    }
    watchdog.idle = !watchdog.first;
    bool goes_on = !watchdog.idle;
    pthread_mutex_unlock(&watchdog.lock);
    return goes_on;
}

static void *watch_waiters(void *arg)
{
    uint64_t ticks;

    while (syscall(SYS_read, watchdog.timer, &ticks, sizeof(ticks)) == sizeof(ticks) || errno == EINTR)
        if (count_tick())
            set_tick();
    return NULL; /* the program has closed all descriptors */
}

/* The program's signals are for its own threads. */
static int start_thread(void *(*run)(void *), void *arg)
{
    sigset_t all, saved;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &saved);
    int err = pthread_create(&thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &saved, NULL);
    if (!err)
        pthread_detach(thread);
    return -err;
}

void mr_answer_start_watchdog(void)
{
    if (watchdog.runs)
        return;
    watchdog.timer = (int)syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (watchdog.timer < 0)
        return;
    watchdog.idle = true;
    watchdog.runs = !start_thread(watch_waiters, NULL);
    if (!watchdog.runs)
        syscall(SYS_close, watchdog.timer);
}

/* ---- calls that wait ---- */

struct answered_call {
    struct mr_answer *answer;
    pmix_status_t (*call)(void);
};

static void *make_call(void *arg)
{
    struct answered_call c = *(struct answered_call *)arg;

    free(arg);
    mr_answer_give(c.answer, c.call(), NULL);
    return NULL;
}

int mr_answer_from_call(struct mr_answer *a, pmix_status_t (*call)(void))
{
    struct answered_call *c = malloc(sizeof(*c));

    if (!c)
        return -ENOMEM;
    *c = (struct answered_call){.answer = a, .call = call};
    int err = start_thread(make_call, c);
    if (err)
        free(c);
    return err;
}
