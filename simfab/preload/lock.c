/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks. An actor that finds a lock taken wakes the idle pollers of its process, because an idle poller may hold the
 * lock. Where actors take turns, the actor waits to be called by the unlocking thread (await.c). If the holder is no
 * actor, the actor reports a wait in the kernel to the engine.
 */
#include "simfab/preload/lock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/await.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/slots.h"
#include "simfab/preload/until.h"

static bool is_actor(void)
{
    return sfp_proc.arena && !sfp_proc.dead && sfp_is_actor();
}

/*
 * This thread waits for another thread, perhaps for an idle poller: the pollers look again. After vain attempts this
 * thread is idle too, and time moves on. nudged: another thread that takes turns with this thread looks. False: there
 * is no such thread.
 */
static bool let_others_run(void)
{
    bool nudged = false, enough = !sfp_wake_siblings(0, &nudged);
    struct sf_actor *a = enough || nudged ? sfp_enter_if_actor() : NULL;

    return a && sfp_wait(a, enough ? SF_ACTOR_IDLE : SF_ACTOR_READY, enough ? 0 : SFP_AFTER_OTHERS) >= 0;
}

/* ---- mutexes --------------------------------------------------------------------------------------------------- */

static uint32_t owner_of(const pthread_mutex_t *mutex)
{
    return (uint32_t)__atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
}

bool sfp_lock_is_shared(const pthread_mutex_t *mutex)
{
    enum { SHARED_BIT = 128 }; /* in the kind of the C library's mutex; another process would not call us */

    return __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED) & SHARED_BIT;
}

/* True if another actor holds the mutex. */
static bool is_in_turns(const pthread_mutex_t *mutex, uint32_t my_tid)
{
    uint32_t owner = owner_of(mutex);

    return owner != my_tid && sfp_actor_by_tid(owner);
}

/*
 * The mutex is taken, or another thread comes first. Waits until until_ps, 0 without limit. EBUSY: not a wait for an
 * actor.
 */
static int await_mutex(pthread_mutex_t *mutex, bool others_first, uint64_t until_ps)
{
    struct sf_actor *a = sfp_actor_awaiting();
    uint32_t tid = a ? a->tid : 0;
    enum sfp_awaited how = SFP_NOT_CALLED;
    int err = EBUSY;

    if (!a || !sfp_has_siblings() || sfp_lock_is_shared(mutex) || !sfp_await_begin(mutex))
        return others_first ? pthread_mutex_trylock(mutex) : EBUSY;
    while (others_first ||
           ((err = pthread_mutex_trylock(mutex)) == EBUSY && is_in_turns(mutex, tid) && how != SFP_LATE)) {
        others_first = false;
        if (owner_of(mutex))
            sfp_wake_siblings(owner_of(mutex), NULL);
        how = sfp_await(false, until_ps);
        if (how == SFP_ALONE)
            break;
    }
    sfp_await_end(false);
    return err == EBUSY && how == SFP_LATE ? ETIMEDOUT : err;
}

/* The part of locking before a wait in the kernel; EBUSY: wait in the kernel. */
static int mutex_lock_as_actor(pthread_mutex_t *mutex, uint64_t until_ps)
{
    bool others_first = sfp_await_is_due(mutex) && !owner_of(mutex);
    int err = EBUSY;

    if (!others_first)
        err = pthread_mutex_trylock(mutex);
    if (err == EBUSY)
        err = await_mutex(mutex, others_first, until_ps);
    if (err == EBUSY)
        sfp_wake_siblings(0, NULL);
    return err;
}

SFP_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    bool counts;
    int err;

    if (!is_actor())
        return SFP_REAL(pthread_mutex_lock)(mutex);
    sfp_await_ask();
    if (!sfp_await_is_due(mutex) && (err = pthread_mutex_trylock(mutex)) != EBUSY)
        return err;
    counts = sfp_waiter_begins();
    err = mutex_lock_as_actor(mutex, 0);
    if (err == EBUSY) {
        sfp_block_begin();
        err = SFP_REAL(pthread_mutex_lock)(mutex);
        sfp_block_end();
    }
    sfp_waiter_ends(counts);
    return err;
}

SFP_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t id,
                                       const struct timespec *restrict abs)
{
    struct sfp_until u;
    bool counts;
    int err = EBUSY;

    if (!sfp_until_at(id, abs, &u))
        return SFP_REAL(pthread_mutex_clocklock)(mutex, id, abs);
    counts = sfp_waiter_begins();
    if (is_actor())
        err = mutex_lock_as_actor(mutex, u.ps);
    if (err == EBUSY)
        err = SFP_TIMED_WAIT(&u, result_ == ETIMEDOUT, true, SFP_REAL(pthread_mutex_clocklock)(mutex, id, &real_abs));
    sfp_waiter_ends(counts);
    return err;
}

SFP_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict abs)
{
    return pthread_mutex_clocklock(mutex, CLOCK_REALTIME, abs);
}

SFP_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int err = SFP_REAL(pthread_mutex_unlock)(mutex);

    sfp_await_call(mutex, false);
    return err;
}

/* ---- spin locks ------------------------------------------------------------------------------------------------ */

/* The holder is unknown. EBUSY: the holder may be no actor. */
static int await_spin(pthread_spinlock_t *lock, bool others_first)
{
    int err = EBUSY;

    if (!sfp_has_siblings() || !sfp_await_begin((const void *)lock))
        return err;
    while (others_first || (err = pthread_spin_trylock(lock)) == EBUSY) {
        others_first = false;
        sfp_wake_siblings(0, NULL);
        if (sfp_await(false, 0) == SFP_ALONE)
            break;
    }
    sfp_await_end(false);
    return err;
}

SFP_EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    const struct timespec nap = {.tv_nsec = 20000}; /* the holder may need this processor */
    bool others_first, counts;
    int err = EBUSY;

    if (!is_actor())
        return SFP_REAL(pthread_spin_lock)(lock);
    sfp_await_ask();
    others_first = sfp_await_is_due((const void *)lock);
    if (!others_first)
        err = pthread_spin_trylock(lock);
    if (err != EBUSY)
        return err;
    counts = sfp_waiter_begins();
    err = await_spin(lock, others_first);
    while (err == EBUSY && (err = pthread_spin_trylock(lock)) == EBUSY && let_others_run())
        ;
    if (err == EBUSY) {
        sfp_block_begin();
        while ((err = pthread_spin_trylock(lock)) == EBUSY) {
            sfp_wake_siblings(0, NULL); /* the holder may have begun to poll meanwhile */
            sfp_syscall(SYS_nanosleep, &nap, NULL);
        }
        sfp_block_end();
    }
    sfp_waiter_ends(counts);
    return err;
}

SFP_EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    int err = SFP_REAL(pthread_spin_unlock)(lock);

    sfp_await_call((const void *)lock, false);
    return err;
}

/* ---- the processor ----------------------------------------------------------------- */

SFP_EXPORT int sched_yield(void)
{
    if (is_actor() && let_others_run())
        return 0;
    return SFP_REAL(sched_yield)();
}
