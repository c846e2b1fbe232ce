/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Semaphores. An actor that takes turns waits to be called by the posting thread (await.c). Helper threads post for
 * events from outside, for which the engine asks the kernel; while only actors have posted a semaphore, the engine need
 * not.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <time.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/await.h"
#include "simfab/preload/callers.h"
#include "simfab/preload/slots.h"
#include "simfab/preload/until.h"
#include "simfab/preload/verbs_events.h"

static struct {
    bool actors, helpers;
} posters;

static void note_poster(const sem_t *sem)
{
    bool *seen = sfp_is_actor() ? &posters.actors : &posters.helpers;

    if (!sfp_proc.arena)
        return;
    if (!__atomic_load_n(seen, __ATOMIC_RELAXED))
        __atomic_store_n(seen, true, __ATOMIC_RELAXED);
    sfp_callers_note(sem);
}

/* For a semaphore without a post so far, the posters of the others decide. */
static bool helpers_post(const sem_t *sem)
{
    enum sfp_callers callers = sfp_callers_of(sem);

    if (sfp_thread_all_act())
        return false;
    if (callers != SFP_CALLERS_UNKNOWN)
        return callers == SFP_CALLERS_HELPERS;
    return !__atomic_load_n(&posters.actors, __ATOMIC_RELAXED) || __atomic_load_n(&posters.helpers, __ATOMIC_RELAXED);
}

static bool shared_sems; /* semaphores exist that other processes may post */

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

/* Until until_ps, 0 for ever. 0, -1 with errno, or 1: wait in the kernel. */
static int await_sem(sem_t *sem, uint64_t until_ps)
{
    enum sfp_awaited how = SFP_NOT_CALLED;
    bool helpers = helpers_post(sem);
    int st;

    if (__atomic_load_n(&shared_sems, __ATOMIC_RELAXED) || !sfp_has_siblings() || !sfp_await_begin(sem))
        return 1;
    sfp_await_lets_cancel();
    while ((st = sem_trywait(sem)) && how != SFP_ALONE && how != SFP_LATE &&
           (how != SFP_INTERRUPTED || sfp_calls_go_on())) {
        how = sfp_await(helpers, until_ps);
        sfp_await_lets_cancel();
    }
    sfp_await_end(false);
    if (st && how == SFP_ALONE)
        return 1;
    if (st)
        errno = how == SFP_LATE ? ETIMEDOUT : EINTR;
    return st;
}

SFP_EXPORT int sem_wait(sem_t *sem)
{
    int st;

    if (sem_trywait(sem) == 0)
        return 0;
    st = await_sem(sem, 0);
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

    note_poster(sem);
    sfp_await_call(sem, false);
    return st;
}

SFP_EXPORT int sem_clockwait(sem_t *restrict sem, clockid_t id, const struct timespec *restrict abs)
{
    struct sfp_until u;
    int st;

    if (!sfp_until_at(id, abs, &u))
        return SFP_REAL(sem_clockwait)(sem, id, abs);
    if (sem_trywait(sem) == 0)
        return 0;
    st = await_sem(sem, u.ps);
    if (st <= 0)
        return st;
    return SFP_TIMED_WAIT(&u, errno == ETIMEDOUT, true, SFP_REAL(sem_clockwait)(sem, id, &real_abs));
}

SFP_EXPORT int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict abs)
{
    return sem_clockwait(sem, CLOCK_REALTIME, abs);
}
