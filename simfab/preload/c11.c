/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * <threads.h>: the C library's own versions bypass the interposed functions, so they are rebuilt here on these
 * functions. The types are those of POSIX threads under other names.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t) && sizeof(cnd_t) == sizeof(pthread_cond_t) &&
                   sizeof(thrd_t) == sizeof(pthread_t),
               "the C library's types are each other's");

struct start {
    thrd_start_t run;
    void *arg;
};

static int in_c11(int err)
{
    switch (err) {
    case 0:
        return thrd_success;
    case EBUSY:
        return thrd_busy;
    case ETIMEDOUT:
        return thrd_timedout;
    case ENOMEM:
        return thrd_nomem;
    default:
        return thrd_error;
    }
}

static pthread_mutex_t *mutex_of(mtx_t *m)
{
    return (pthread_mutex_t *)m;
}

static pthread_cond_t *cond_of(cnd_t *c)
{
    return (pthread_cond_t *)c;
}

static void *run_c11_start(void *arg)
{
    struct start s = *(struct start *)arg;

    free(arg);
    return (void *)(intptr_t)s.run(s.arg);
}

SFP_EXPORT int thrd_create(thrd_t *thread, thrd_start_t run, void *arg)
{
    struct start *s = malloc(sizeof *s);
    int err;

    if (!s)
        return thrd_nomem;
    *s = (struct start){.run = run, .arg = arg};
    err = pthread_create(thread, NULL, run_c11_start, s);
    if (err)
        free(s);
    return err == EAGAIN ? thrd_error : in_c11(err);
}

SFP_EXPORT int thrd_join(thrd_t thread, int *result)
{
    void *value;
    int err = pthread_join(thread, &value);

    if (!err && result)
        *result = (int)(intptr_t)value;
    return in_c11(err);
}

SFP_EXPORT int thrd_sleep(const struct timespec *duration, struct timespec *left)
{
    int err = clock_nanosleep(CLOCK_REALTIME, 0, duration, left);

    return err == EINTR ? -1 : err ? -2 : 0;
}

SFP_EXPORT void thrd_yield(void)
{
    sched_yield();
}

SFP_EXPORT int mtx_lock(mtx_t *m)
{
    return in_c11(pthread_mutex_lock(mutex_of(m)));
}

SFP_EXPORT int mtx_timedlock(mtx_t *restrict m, const struct timespec *restrict abs)
{
    return in_c11(pthread_mutex_timedlock(mutex_of(m), abs));
}

SFP_EXPORT int mtx_unlock(mtx_t *m)
{
    return in_c11(pthread_mutex_unlock(mutex_of(m)));
}

SFP_EXPORT int cnd_wait(cnd_t *c, mtx_t *m)
{
    return in_c11(pthread_cond_wait(cond_of(c), mutex_of(m)));
}

SFP_EXPORT int cnd_timedwait(cnd_t *restrict c, mtx_t *restrict m, const struct timespec *restrict abs)
{
    return in_c11(pthread_cond_timedwait(cond_of(c), mutex_of(m), abs));
}

SFP_EXPORT int cnd_signal(cnd_t *c)
{
    return in_c11(pthread_cond_signal(cond_of(c)));
}

SFP_EXPORT int cnd_broadcast(cnd_t *c)
{
    return in_c11(pthread_cond_broadcast(cond_of(c)));
}

/* The program may read TIME_UTC and wait until so much later. */
SFP_EXPORT int timespec_get(struct timespec *ts, int base)
{
    return base == TIME_UTC && !clock_gettime(CLOCK_REALTIME, ts) ? base : 0;
}
