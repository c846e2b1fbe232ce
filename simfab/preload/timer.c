/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers in virtual time: alarm, setitimer, timer_create, timerfd. In an attached process the engine keeps the timers,
 * and ends them by the requested signal or by a count in a descriptor. The descriptor is an eventfd, which reads and
 * polls like a timerfd. Real timers: those of processes that are not attached, timers of processor time, and timers
 * that start a thread.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/call.h"
#include "simfab/preload/clock.h"
#include "simfab/preload/clock_base.h"
#include "simfab/preload/marks.h"
#include "simfab/preload/slots.h"

#define TIMERS_MAX        256u
#define CLOCK_SECONDS_MAX 10000000ull /* four months: an end never seen */

struct timer {
    uint32_t engine; /* the engine's number of the timer; 0: free */
    unsigned generation;
    int fd; /* the program's timerfd; else -1 */
    clockid_t clock;
};

static struct timer timers[TIMERS_MAX];
static struct timer itimer = {.fd = -1};
static bool any_fd; /* there has been a timerfd */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool attached(void)
{
    return sfp_clock_is_virtual() && sfp_proc.arena && !sfp_proc.dead;
}

static uint64_t ps_of(uint64_t s, uint64_t ns)
{
    return s > CLOCK_SECONDS_MAX ? CLOCK_SECONDS_MAX * SFP_NS_PER_S * SFP_PS_PER_NS
                                 : (s * SFP_NS_PER_S + ns) * SFP_PS_PER_NS;
}

static struct timespec timespec_of_ps(uint64_t ps)
{
    uint64_t ns = (ps + SFP_PS_PER_NS - 1) / SFP_PS_PER_NS;

    return (struct timespec){(time_t)(ns / SFP_NS_PER_S), (long)(ns % SFP_NS_PER_S)};
}

static int engine_new(struct timer *t, const struct sf_timer_new *how, int *fd)
{
    uint32_t id;
    int err = sfp_call(SF_OP_TIMER_NEW, how, sizeof *how, &id, sizeof id, NULL, fd);

    if (err)
        return err;
    t->engine = id;
    t->generation = sfp_generation;
    return 0;
}

/* Sets the timer, or only reads; *left_ps and *interval_ps get the former values. */
static int engine_set(const struct timer *t, bool only_look, uint64_t *left_ps, uint64_t *interval_ps)
{
    struct sf_timer_set set = {.timer = t->engine,
                               .only_look = only_look,
                               .from_ps = sfp_clock_peek(),
                               .left_ps = *left_ps,
                               .interval_ps = *interval_ps};
    int err = sfp_call(SF_OP_TIMER_SET, &set, sizeof set, &set, sizeof set, NULL, NULL);

    *left_ps = set.left_ps;
    *interval_ps = set.interval_ps;
    return err;
}

static int failed(int err)
{
    if (!err)
        return 0;
    errno = err;
    return -1;
}

/* ---- alarm, setitimer ------------------------------------------------------------------------------------------ */

static bool itimer_is_ours(void)
{
    return itimer.engine && itimer.generation == sfp_generation;
}

static int itimer_set(bool only_look, uint64_t *left_ps, uint64_t *interval_ps)
{
    const struct sf_timer_new how = {.kind = SF_TIMER_ALARM, .signo = SIGALRM};
    int err = 0;

    pthread_mutex_lock(&lock);
    if (!itimer_is_ours())
        err = engine_new(&itimer, &how, NULL);
    if (!err)
        err = engine_set(&itimer, only_look, left_ps, interval_ps);
    pthread_mutex_unlock(&lock);
    return err;
}

SFP_EXPORT unsigned int alarm(unsigned int seconds)
{
    uint64_t left = ps_of(seconds, 0), interval = 0;

    if (!attached() || itimer_set(false, &left, &interval))
        return SFP_REAL(alarm)(seconds);
    return left ? (unsigned)((left + ps_of(1, 0) / 2) / ps_of(1, 0) + (left < ps_of(1, 0) / 2)) : 0;
}

static bool valid_timeval(const struct timeval *tv)
{
    return tv->tv_sec >= 0 && tv->tv_usec >= 0 && tv->tv_usec < 1000000;
}

static struct timeval timeval_of(uint64_t ps)
{
    uint64_t us = (ps + 999999) / 1000000;

    return (struct timeval){(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
}

SFP_EXPORT int setitimer(__itimer_which_t which, const struct itimerval *restrict new, struct itimerval *restrict old)
{
    uint64_t left, interval;
    int err;

    if (which != ITIMER_REAL || !new || !attached())
        return SFP_REAL(setitimer)(which, new, old);
    if (!valid_timeval(&new->it_value) || !valid_timeval(&new->it_interval))
        return failed(EINVAL);
    left = ps_of((uint64_t) new->it_value.tv_sec, (uint64_t) new->it_value.tv_usec * 1000);
    interval = ps_of((uint64_t) new->it_interval.tv_sec, (uint64_t) new->it_interval.tv_usec * 1000);
    err = itimer_set(false, &left, &interval);
    if (!err && old)
        *old = (struct itimerval){.it_value = timeval_of(left), .it_interval = timeval_of(interval)};
    return failed(err);
}

SFP_EXPORT int getitimer(__itimer_which_t which, struct itimerval *old)
{
    uint64_t left = 0, interval = 0;
    int err;

    if (which != ITIMER_REAL || !attached() || !itimer_is_ours())
        return SFP_REAL(getitimer)(which, old);
    err = itimer_set(true, &left, &interval);
    if (!err)
        *old = (struct itimerval){.it_value = timeval_of(left), .it_interval = timeval_of(interval)};
    return failed(err);
}

/* ---- timer_create ---------------------------------------------------------------------------------------------- */

/*
 * The program's name for a simulated timer: the timer's address with a mark that the C library's names (small numbers,
 * or addresses in another form) lack.
 */
#define OURS ((uintptr_t)0x5346 << 48)

static struct timer *take_timer_slot(void)
{
    for (unsigned i = 0; i < TIMERS_MAX; i++)
        if (!timers[i].engine || timers[i].generation != sfp_generation) {
            timers[i] = (struct timer){.fd = -1};
            return &timers[i];
        }
    return NULL;
}

static struct timer *ours(timer_t id)
{
    uintptr_t i = (uintptr_t)id ^ OURS;

    return i < TIMERS_MAX && timers[i].engine && timers[i].fd < 0 && timers[i].generation == sfp_generation ? &timers[i]
                                                                                                            : NULL;
}

static bool plain(const struct sigevent *ev)
{
    return !ev || ev->sigev_notify == SIGEV_SIGNAL || ev->sigev_notify == SIGEV_NONE ||
           ev->sigev_notify == SIGEV_THREAD_ID;
}

static struct sf_timer_new how_of(const struct sigevent *ev)
{
    if (!ev)
        return (struct sf_timer_new){.kind = SF_TIMER_SIGNAL, .signo = SIGALRM};
    if (ev->sigev_notify == SIGEV_NONE)
        return (struct sf_timer_new){.kind = SF_TIMER_SILENT};
    return (struct sf_timer_new){.kind = SF_TIMER_SIGNAL,
                                 .signo = (uint32_t)ev->sigev_signo,
                                 .tid = ev->sigev_notify == SIGEV_THREAD_ID ? (uint32_t)ev->_sigev_un._tid : 0,
                                 .value = (uintptr_t)ev->sigev_value.sival_ptr};
}

SFP_EXPORT int timer_create(clockid_t clock, struct sigevent *restrict ev, timer_t *restrict id)
{
    struct sf_timer_new how;
    struct timer *t;
    uint64_t epoch;
    int err;

    if (!attached() || !plain(ev) || !sfp_clock_epoch(clock, &epoch))
        return SFP_REAL(timer_create)(clock, ev, id);
    how = how_of(ev);
    pthread_mutex_lock(&lock);
    t = take_timer_slot();
    err = t ? engine_new(t, &how, NULL) : EAGAIN;
    if (!err) {
        t->clock = clock;
        *id = (timer_t)(OURS ^ (uintptr_t)(t - timers));
    }
    pthread_mutex_unlock(&lock);
    return failed(err);
}

static bool valid_timer_value(const struct timespec *ts)
{
    return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < (long)SFP_NS_PER_S;
}

/* Time until the first end; a small value, not 0, for an end in the past. */
static uint64_t left_of(const struct timer *t, bool absolute, const struct timespec *ts)
{
    uint64_t at = ps_of((uint64_t)ts->tv_sec, (uint64_t)ts->tv_nsec), epoch = 0, now;

    if (!absolute || !at)
        return at;
    sfp_clock_epoch(t->clock, &epoch);
    if ((uint64_t)ts->tv_sec < epoch / SFP_NS_PER_S)
        return 1;
    at = ps_of((uint64_t)ts->tv_sec - epoch / SFP_NS_PER_S, (uint64_t)ts->tv_nsec);
    now = sfp_clock_peek();
    return at > now ? at - now : 1;
}

static int set(struct timer *t, bool absolute, const struct itimerspec *new, struct itimerspec *old)
{
    uint64_t left, interval;
    int err;

    if (!valid_timer_value(&new->it_value) || !valid_timer_value(&new->it_interval))
        return EINVAL;
    left = left_of(t, absolute, &new->it_value);
    interval = ps_of((uint64_t) new->it_interval.tv_sec, (uint64_t) new->it_interval.tv_nsec);
    err = engine_set(t, false, &left, &interval);
    if (!err && old)
        *old = (struct itimerspec){.it_value = timespec_of_ps(left), .it_interval = timespec_of_ps(interval)};
    return err;
}

static int get(const struct timer *t, struct itimerspec *now)
{
    uint64_t left = 0, interval = 0;
    int err = engine_set(t, true, &left, &interval);

    *now = (struct itimerspec){.it_value = timespec_of_ps(left), .it_interval = timespec_of_ps(interval)};
    return err;
}

SFP_EXPORT int timer_settime(timer_t id, int flags, const struct itimerspec *restrict new,
                             struct itimerspec *restrict old)
{
    struct timer *t = ours(id);

    return t ? failed(set(t, flags & TIMER_ABSTIME, new, old)) : SFP_REAL(timer_settime)(id, flags, new, old);
}

SFP_EXPORT int timer_gettime(timer_t id, struct itimerspec *now)
{
    const struct timer *t = ours(id);

    return t ? failed(get(t, now)) : SFP_REAL(timer_gettime)(id, now);
}

SFP_EXPORT int timer_getoverrun(timer_t id)
{
    return ours(id) ? 0 : SFP_REAL(timer_getoverrun)(id); /* time stops until a signal has been taken: none is lost */
}

static void drop_timer(struct timer *t)
{
    sfp_call(SF_OP_TIMER_DROP, &t->engine, sizeof t->engine, NULL, 0, NULL, NULL);
    t->engine = 0;
}

SFP_EXPORT int timer_delete(timer_t id)
{
    struct timer *t = ours(id);

    if (!t)
        return SFP_REAL(timer_delete)(id);
    pthread_mutex_lock(&lock);
    drop_timer(t);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* ---- timerfd --------------------------------------------------------------------------------------------------- */

static struct timer *of_fd(int fd)
{
    for (unsigned i = 0; fd >= 0 && i < TIMERS_MAX; i++)
        if (timers[i].engine && timers[i].fd == fd && timers[i].generation == sfp_generation)
            return &timers[i];
    return NULL;
}

/* A descriptor number reused by the kernel is no longer the timer's descriptor. */
static void forget_fd(int fd)
{
    struct timer *t = of_fd(fd);

    if (t)
        drop_timer(t);
}

SFP_EXPORT int timerfd_create(clockid_t clock, int flags)
{
    const struct sf_timer_new how = {.kind = SF_TIMER_FD};
    struct timer *t;
    uint64_t epoch;
    int fd = -1, err;

    if (!attached() || !sfp_is_actor() || !sfp_clock_epoch(clock, &epoch) || flags & ~(TFD_NONBLOCK | TFD_CLOEXEC)) {
        fd = SFP_REAL(timerfd_create)(clock, flags);
        if (fd >= 0 && attached() && sfp_is_actor())
            forget_fd(fd);
        return fd;
    }
    pthread_mutex_lock(&lock);
    t = take_timer_slot();
    err = t ? engine_new(t, &how, &fd) : ENFILE;
    if (!err) {
        forget_fd(fd);
        t->fd = fd;
        any_fd = true;
        t->clock = clock;
        sfp_mark_fd(fd, true);
        sfp_syscall(SYS_fcntl, fd, F_SETFL, flags & TFD_NONBLOCK ? O_RDWR | O_NONBLOCK : O_RDWR);
        sfp_syscall(SYS_fcntl, fd, F_SETFD, flags & TFD_CLOEXEC ? FD_CLOEXEC : 0);
    }
    pthread_mutex_unlock(&lock);
    return err ? failed(err) : fd;
}

/* The engine has the other end: it must go too, or the descriptor would live on in epoll sets. */
SFP_EXPORT int close(int fd)
{
    struct timer *t = any_fd && fd >= 0 ? of_fd(fd) : NULL;

    if (t) {
        pthread_mutex_lock(&lock);
        drop_timer(t);
        sfp_mark_fd(fd, false);
        pthread_mutex_unlock(&lock);
    }
    return SFP_REAL(close)(fd);
}

/* Setting a timer drops unread endings. */
static void forget_endings(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t count;

    if (sfp_sys_poll(&p, 1, 0) == 1)
        (void)!sfp_sys_read(fd, &count, sizeof count);
}

SFP_EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
    struct timer *t = of_fd(fd);
    struct itimerspec real;
    uint64_t left;

    if (t) {
        forget_endings(fd);
        return failed(set(t, flags & TFD_TIMER_ABSTIME, new, old));
    }
    if (!sfp_clock_is_virtual() || !(flags & TFD_TIMER_ABSTIME) || !valid_timer_value(&new->it_value) ||
        (!new->it_value.tv_sec && !new->it_value.tv_nsec))
        return SFP_REAL(timerfd_settime)(fd, flags, new, old);
    /* a real timer: the program's absolute time is virtual, the time left is not */
    left = left_of(&(struct timer){.clock = new->it_value.tv_sec > 1000000000 ? CLOCK_REALTIME : CLOCK_MONOTONIC}, true,
                   &new->it_value);
    real = *new;
    real.it_value = timespec_of_ps(left);
    return SFP_REAL(timerfd_settime)(fd, flags & ~TFD_TIMER_ABSTIME, &real, old);
}

SFP_EXPORT int timerfd_gettime(int fd, struct itimerspec *now)
{
    const struct timer *t = of_fd(fd);

    return t ? failed(get(t, now)) : SFP_REAL(timerfd_gettime)(fd, now);
}
