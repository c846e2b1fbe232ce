/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping, and waiting until a time, in virtual time. An actor that sleeps hands its wake-up time to the engine and is
 * woken when virtual time gets there; another thread really sleeps, and its process's clock moves on by the length.
 *
 * Absolute times that a program computes are virtual; the kernel wants real ones, so they are carried over as "so much
 * later than now".
 */
#include "simfab/preload/clock.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <string.h>

/* pthread_cond_* exist in two versions; the linker's default for dlsym is the old one */
#define REAL_COND(name)                                                                                                \
    ({                                                                                                                 \
        static __typeof__(&name) real_;                                                                                \
        if (!real_)                                                                                                    \
            real_ = (__typeof__(&name))sfp_real_version(#name, "GLIBC_2.3.2");                                         \
        real_;                                                                                                         \
    })

static uint64_t ns_of(const struct timespec *ts)
{
    return (uint64_t)ts->tv_sec * SFP_NS_PER_S + (uint64_t)ts->tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / SFP_NS_PER_S), .tv_nsec = (long)(ns % SFP_NS_PER_S)};
}

static bool valid(const struct timespec *ts)
{
    return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < (long)SFP_NS_PER_S;
}

/* Sleep of ns from now; 0, or EINTR with the rest in *left (real sleeps only). */
static int sleep_ns(uint64_t ns, struct timespec *left)
{
    struct sf_actor *a = (sfp_guest_leaves(), sfp_enter_if_actor());
    uint64_t until = sfp_clock_peek() + ns * SFP_PS_PER_NS;
    struct timespec ts = timespec_of(ns);
    int err;

    if (a && !sfp_proc.dead) {
        int reason = sfp_wait(a, SF_ACTOR_SLEEP, until);

        if (reason == SFP_WAKE_SIGNAL && sfp_now(a) < until) {
            if (left)
                *left = timespec_of((until - sfp_now(a)) / SFP_PS_PER_NS);
            return EINTR;
        }
        if (reason >= 0) {
            sfp_clock_advance_to(until);
            return 0;
        }
    }
    err = (int)sfp_syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, &ts) ? errno : 0;
    if (err == EINTR) {
        uint64_t rest = ns_of(&ts) * SFP_PS_PER_NS;

        sfp_clock_advance_to(until > rest ? until - rest : 0);
        if (left)
            *left = ts;
    } else {
        sfp_clock_advance_to(until);
    }
    return err;
}

SFP_EXPORT int clock_nanosleep(clockid_t id, int flags, const struct timespec *req, struct timespec *rem)
{
    uint64_t epoch, at, now;

    if (!sfp_clock_is_virtual() || !sfp_clock_epoch(id, &epoch)) {
        int err;

        sfp_guest_leaves();
        sfp_block_begin();
        err = SFP_REAL(clock_nanosleep)(id, flags, req, rem);
        sfp_block_end();
        return err;
    }
    if (!valid(req))
        return EINVAL;
    if (!(flags & TIMER_ABSTIME))
        return sleep_ns(ns_of(req), rem);
    at = ns_of(req);
    now = epoch + sfp_clock_peek() / SFP_PS_PER_NS;
    return at > now ? sleep_ns(at - now, NULL) : 0;
}

SFP_EXPORT int nanosleep(const struct timespec *req, struct timespec *rem)
{
    int err = clock_nanosleep(CLOCK_REALTIME, 0, req, rem);

    if (!err)
        return 0;
    errno = err;
    return -1;
}

SFP_EXPORT int usleep(useconds_t us)
{
    struct timespec ts = timespec_of((uint64_t)us * 1000);

    return nanosleep(&ts, NULL);
}

SFP_EXPORT unsigned int sleep(unsigned int seconds)
{
    struct timespec ts = {.tv_sec = seconds}, left = {0};

    return nanosleep(&ts, &left) ? (unsigned)left.tv_sec + (left.tv_nsec >= 500000000) : 0;
}

/* ---- waiting until an absolute time ---------------------------------------------------------------------------- */

/* A virtual absolute time of clock id, as the real one that is as far away; *virtual_ps is when that is. */
static struct timespec to_real(clockid_t id, const struct timespec *abs, uint64_t *virtual_ps)
{
    struct timespec real;
    uint64_t epoch = 0, now, at = ns_of(abs);

    sfp_clock_epoch(id, &epoch);
    now = epoch + sfp_clock_peek() / SFP_PS_PER_NS;
    *virtual_ps = at > epoch ? (at - epoch) * SFP_PS_PER_NS : 0;
    sfp_syscall(SYS_clock_gettime, id, &real);
    return timespec_of(ns_of(&real) + (at > now ? at - now : 0));
}

/* A condition variable does not tell its clock, but no machine has been up for thirty years. */
static clockid_t guess_clock(const struct timespec *abs)
{
    return abs->tv_sec > 1000000000 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

/* A few milliseconds of the real clock id from now, and not later than at. */
static struct timespec soon(clockid_t id, const struct timespec *at)
{
    struct timespec now;
    uint64_t slice;

    sfp_syscall(SYS_clock_gettime, id, &now);
    slice = ns_of(&now) + SFP_SLICE_MS_MAX * 1000000ull;
    return sfp_is_actor() && !sfp_proc.dead ? timespec_of(slice) : *at;
}

/*
 * Around a real call that waits until a time: EXPR uses `real_abs` and gives an error number or -1 with errno. An actor
 * waits for a few milliseconds at once until its time has come; AGAIN says whether it may be asked again: the waiter of a
 * condition variable would miss what happens in between, so it is woken for nothing, as it must expect to be.
 */
#define TIMED_WAIT(clock_id, abs, failed_by_time, again, expr)                                                         \
    ({                                                                                                                 \
        uint64_t until_;                                                                                               \
        struct timespec end_ = to_real((clock_id), (abs), &until_), real_abs;                                          \
        int result_;                                                                                                   \
        bool goes_on_ = false;                                                                                         \
        sfp_block_begin_until(until_);                                                                                 \
        do {                                                                                                           \
            real_abs = soon((clock_id), &end_);                                                                        \
            result_ = (expr);                                                                                          \
        } while (result_ && (failed_by_time) && (goes_on_ = sfp_is_actor() && sfp_wait_goes_on(until_)) && (again));   \
        sfp_block_end();                                                                                               \
        if (result_ && (failed_by_time) && goes_on_)                                                                   \
            result_ = 0;                                                                                               \
        else if (result_ && (failed_by_time))                                                                          \
            sfp_clock_advance_to(until_);                                                                              \
        result_;                                                                                                       \
    })

/*
 * Who posts semaphores: helper threads do so for what comes from outside, for which the engine looks at the kernel. As long as
 * only actors have been seen to, it need not. (Condition variables serve both in one process, in launchers' libraries.)
 */
static struct {
    bool actors, helpers;
} posters;

static void note_poster(void)
{
    bool *seen = sfp_is_actor() ? &posters.actors : &posters.helpers;

    if (sfp_proc.arena && !__atomic_load_n(seen, __ATOMIC_RELAXED))
        __atomic_store_n(seen, true, __ATOMIC_RELAXED);
}

static bool helpers_post(void)
{
    return !sfp_thread_all_act() &&
           (!__atomic_load_n(&posters.actors, __ATOMIC_RELAXED) || __atomic_load_n(&posters.helpers, __ATOMIC_RELAXED));
}

/*
 * Mutexes that other processes share too are not for that, nor are their condition variables. False: wait in the kernel.
 */
static bool await_cond(pthread_cond_t *cond, pthread_mutex_t *mutex, int *err)
{
    enum sfp_awaited how = SFP_NOT_CALLED;
    uint32_t cancels = sfp_await_cancels();
    bool helpers = !sfp_thread_all_act();

    if (sfp_lock_is_shared(mutex) || !sfp_has_siblings() || !sfp_await_begin(cond))
        return false;
    *err = pthread_mutex_unlock(mutex);
    while (!*err && how != SFP_CALLED && how != SFP_ALONE && cancels == sfp_await_cancels())
        how = sfp_await(helpers);
    sfp_await_end(false);
    if (*err)
        return true;
    *err = pthread_mutex_lock(mutex);
    if (how != SFP_CALLED)
        pthread_testcancel(); /* or it has woken for nothing, as it must expect to */
    return true;
}

SFP_EXPORT int pthread_cond_wait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex)
{
    int err;

    if (await_cond(cond, mutex, &err))
        return err;
    sfp_await_call(mutex, false); /* it will be unlocked when this thread has left its turn */
    sfp_block_begin();
    err = REAL_COND(pthread_cond_wait)(cond, mutex);
    sfp_block_end();
    return err;
}

SFP_EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
    return sfp_await_call(cond, false) ? 0 : REAL_COND(pthread_cond_signal)(cond);
}

SFP_EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
    sfp_await_call(cond, true);
    return REAL_COND(pthread_cond_broadcast)(cond);
}

SFP_EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                      const struct timespec *restrict abs)
{
    if (!sfp_clock_is_virtual() || !valid(abs))
        return REAL_COND(pthread_cond_timedwait)(cond, mutex, abs);
    return TIMED_WAIT(guess_clock(abs), abs, result_ == ETIMEDOUT, false,
                      REAL_COND(pthread_cond_timedwait)(cond, mutex, &real_abs));
}

SFP_EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, clockid_t id,
                                      const struct timespec *restrict abs)
{
    uint64_t epoch;

    if (!sfp_clock_is_virtual() || !valid(abs) || !sfp_clock_epoch(id, &epoch))
        return SFP_REAL(pthread_cond_clockwait)(cond, mutex, id, abs);
    return TIMED_WAIT(id, abs, result_ == ETIMEDOUT, false,
                      SFP_REAL(pthread_cond_clockwait)(cond, mutex, id, &real_abs));
}

SFP_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict abs)
{
    if (!sfp_clock_is_virtual() || !valid(abs))
        return SFP_REAL(pthread_mutex_timedlock)(mutex, abs);
    return TIMED_WAIT(CLOCK_REALTIME, abs, result_ == ETIMEDOUT, true,
                      SFP_REAL(pthread_mutex_timedlock)(mutex, &real_abs));
}

/* ---- semaphores ------------------------------------------------------------------------------------------------ */

static bool shared_sems; /* there are some that other processes may post */

SFP_EXPORT int sem_init(sem_t *sem, int shared, unsigned value)
{
    if (shared)
        __atomic_store_n(&shared_sems, true, __ATOMIC_RELAXED);
    return SFP_REAL(sem_init)(sem, shared, value);
}

SFP_EXPORT sem_t *sem_open(const char *name, int flags, ...)
{
    va_list ap;
    mode_t mode;
    unsigned value;

    va_start(ap, flags);
    mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    value = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
    va_end(ap);
    __atomic_store_n(&shared_sems, true, __ATOMIC_RELAXED);
    return SFP_REAL(sem_open)(name, flags, mode, value);
}

/* 0, -1 with errno, or 1: wait in the kernel. */
static int await_sem(sem_t *sem)
{
    enum sfp_awaited how = SFP_NOT_CALLED;
    bool helpers = helpers_post();
    int st;

    if (__atomic_load_n(&shared_sems, __ATOMIC_RELAXED) || !sfp_has_siblings() || !sfp_await_begin(sem))
        return 1;
    sfp_await_lets_cancel();
    while ((st = sem_trywait(sem)) && how != SFP_ALONE && (how != SFP_INTERRUPTED || sfp_calls_go_on())) {
        how = sfp_await(helpers);
        sfp_await_lets_cancel();
    }
    sfp_await_end(false);
    if (st && how == SFP_INTERRUPTED)
        errno = EINTR;
    return st && how == SFP_ALONE ? 1 : st;
}

SFP_EXPORT int sem_wait(sem_t *sem)
{
    int st;

    if (sem_trywait(sem) == 0)
        return 0;
    st = await_sem(sem);
    if (st <= 0)
        return st;
    sfp_block_begin();
    st = SFP_REAL(sem_wait)(sem);
    sfp_block_end();
    return st;
}

SFP_EXPORT int sem_post(sem_t *sem)
{
    int st = SFP_REAL(sem_post)(sem);

    note_poster();
    sfp_await_call(sem, false);
    return st;
}

SFP_EXPORT int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict abs)
{
    if (!sfp_clock_is_virtual() || !valid(abs))
        return SFP_REAL(sem_timedwait)(sem, abs);
    return TIMED_WAIT(CLOCK_REALTIME, abs, errno == ETIMEDOUT, true, SFP_REAL(sem_timedwait)(sem, &real_abs));
}
