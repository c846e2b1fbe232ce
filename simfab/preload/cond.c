/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Condition variables. An actor that takes turns waits to be called by the signalling thread (await.c), other threads
 * wait in the kernel. The signalling thread does not know the kind of its waiters, and signals both.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/await.h"
#include "simfab/preload/callers.h"
#include "simfab/preload/lock.h"
#include "simfab/preload/until.h"

/* These exist in two versions; the linker's default for dlsym is the old one. */
#define REAL_COND(name)                                                                                                \
    ({                                                                                                                 \
        static __typeof__(&name) real_;                                                                                \
        if (!real_)                                                                                                    \
            real_ = (__typeof__(&name))sfp_real_version(#name, "GLIBC_2.3.2");                                         \
        real_;                                                                                                         \
    })

/*
 * Waits until until_ps, 0 without limit. Mutexes and condition variables shared with other processes are excluded.
 * Returns false for a wait in the kernel.
 */
static bool await_cond(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ps, int *err)
{
    enum sfp_awaited how = SFP_NOT_CALLED;
    uint32_t cancels = sfp_await_cancels();
    bool helpers = sfp_helpers_call(cond);

    if (sfp_lock_is_shared(mutex) || !sfp_has_siblings() || !sfp_await_begin(cond))
        return false;
    *err = pthread_mutex_unlock(mutex);
    while (!*err && (how == SFP_NOT_CALLED || how == SFP_INTERRUPTED) && cancels == sfp_await_cancels())
        how = sfp_await(helpers, until_ps);
    sfp_await_end(false);
    if (*err)
        return true;
    *err = pthread_mutex_lock(mutex);
    if (how != SFP_CALLED)
        pthread_testcancel(); /* or a spurious wake-up, allowed by POSIX */
    if (!*err && how == SFP_LATE)
        *err = ETIMEDOUT;
    return true;
}

SFP_EXPORT int pthread_cond_wait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex)
{
    int err;

    if (await_cond(cond, mutex, 0, &err))
        return err;
    sfp_await_call(mutex, false); /* it will be unlocked when this thread has left its turn */
    sfp_block_begin();
    err = REAL_COND(pthread_cond_wait)(cond, mutex);
    sfp_block_end();
    return err;
}

SFP_EXPORT int pthread_cond_init(pthread_cond_t *restrict cond, const pthread_condattr_t *restrict attr)
{
    sfp_callers_forget(cond); /* of an earlier object at the address */
    return REAL_COND(pthread_cond_init)(cond, attr);
}

SFP_EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
    sfp_callers_note(cond);
    return sfp_await_call(cond, false) ? 0 : REAL_COND(pthread_cond_signal)(cond);
}

SFP_EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
    sfp_callers_note(cond);
    sfp_await_call(cond, true);
    return REAL_COND(pthread_cond_broadcast)(cond);
}

/* A condition variable does not tell its clock, but no machine has been up for thirty years. */
static clockid_t guess_clock(const struct timespec *abs)
{
    return abs->tv_sec > 1000000000 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

SFP_EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                      const struct timespec *restrict abs)
{
    struct sfp_until u;
    int err;

    if (!sfp_until_at(guess_clock(abs), abs, &u))
        return REAL_COND(pthread_cond_timedwait)(cond, mutex, abs);
    if (await_cond(cond, mutex, u.ps, &err))
        return err;
    sfp_await_call(mutex, false);
    return SFP_TIMED_WAIT(&u, result_ == ETIMEDOUT, false, REAL_COND(pthread_cond_timedwait)(cond, mutex, &real_abs));
}

SFP_EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, clockid_t id,
                                      const struct timespec *restrict abs)
{
    struct sfp_until u;
    int err;

    if (!sfp_until_at(id, abs, &u))
        return SFP_REAL(pthread_cond_clockwait)(cond, mutex, id, abs);
    if (await_cond(cond, mutex, u.ps, &err))
        return err;
    sfp_await_call(mutex, false);
    return SFP_TIMED_WAIT(&u, result_ == ETIMEDOUT, false,
                          SFP_REAL(pthread_cond_clockwait)(cond, mutex, id, &real_abs));
}
