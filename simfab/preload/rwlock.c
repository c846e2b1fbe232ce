/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Read-write locks. An actor that takes turns and finds the lock taken waits to be called by the unlocking thread
 * (await.c). One waiter is called at a time, and a reader that gets the lock calls the next waiter. A writer queues
 * behind called waiters; a reader does not, because the reader may already have the lock.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/await.h"
#include "simfab/preload/slots.h"
#include "simfab/preload/until.h"

enum how { READ, WRITE };

/*
 * Constructors of some libraries (libnl) take locks. In a program built without the address sanitizer, they may run
 * before the sanitizer's runtime has mapped the memory that this code reads.
 */
#ifdef __SANITIZE_ADDRESS__
void __asan_init(void);
#else
static void __asan_init(void)
{
}
#endif

static int try_lock(pthread_rwlock_t *lock, enum how how)
{
    return how == READ ? pthread_rwlock_tryrdlock(lock) : pthread_rwlock_trywrlock(lock);
}

static bool is_shared(const pthread_rwlock_t *lock)
{
    return lock->__data.__shared;
}

/* True if a thread that is no actor may hold the lock. The lock does not know its readers. */
static bool helpers_may_hold(const pthread_rwlock_t *lock)
{
    uint32_t writer = (uint32_t)__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED);

    return !sfp_thread_all_act() && !(writer && sfp_actor_by_tid(writer));
}

/* True if the C library names this thread as the writer. */
static bool is_mine(const pthread_rwlock_t *lock, const struct sf_actor *a)
{
    return (uint32_t)__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED) == a->tid;
}

/* Until until_ps, 0 for ever. EBUSY: the wait is not one for an actor. */
static int await_lock(pthread_rwlock_t *lock, enum how how, bool others_first, uint64_t until_ps)
{
    const struct sf_actor *a = sfp_actor_awaiting();
    enum sfp_awaited awaited = SFP_NOT_CALLED;
    int err = EBUSY;

    if (!a || !sfp_has_siblings() || is_shared(lock) || is_mine(lock, a) || !sfp_await_begin(lock))
        return EBUSY;
    while (others_first || ((err = try_lock(lock, how)) == EBUSY && awaited != SFP_LATE)) {
        others_first = false;
        sfp_wake_siblings(0, NULL);
        awaited = sfp_await(helpers_may_hold(lock), until_ps);
        if (awaited == SFP_ALONE)
            break;
    }
    sfp_await_end(!err && how == READ);
    return err == EBUSY && awaited == SFP_LATE ? ETIMEDOUT : err;
}

/* The part of locking before a wait in the kernel; EBUSY: wait in the kernel. */
static int rwlock_lock_as_actor(pthread_rwlock_t *lock, enum how how, uint64_t until_ps)
{
    bool others_first, counts;
    int err = EBUSY;

    __asan_init();
    if (!sfp_proc.arena || sfp_proc.dead || !sfp_is_actor())
        return EBUSY;
    sfp_await_ask();
    others_first = how == WRITE && sfp_await_is_due(lock);
    if (!others_first)
        err = try_lock(lock, how);
    if (err != EBUSY)
        return err;
    counts = sfp_waiter_begins();
    err = await_lock(lock, how, others_first, until_ps);
    sfp_waiter_ends(counts);
    return err;
}

SFP_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    int err = rwlock_lock_as_actor(lock, READ, 0);

    if (err != EBUSY)
        return err;
    sfp_block_begin();
    err = SFP_REAL(pthread_rwlock_rdlock)(lock);
    sfp_block_end();
    return err;
}

SFP_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    int err = rwlock_lock_as_actor(lock, WRITE, 0);

    if (err != EBUSY)
        return err;
    sfp_block_begin();
    err = SFP_REAL(pthread_rwlock_wrlock)(lock);
    sfp_block_end();
    return err;
}

SFP_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict lock, clockid_t id,
                                          const struct timespec *restrict abs)
{
    struct sfp_until u;
    int err;

    if (!sfp_until_at(id, abs, &u))
        return SFP_REAL(pthread_rwlock_clockrdlock)(lock, id, abs);
    err = rwlock_lock_as_actor(lock, READ, u.ps);
    if (err != EBUSY)
        return err;
    return SFP_TIMED_WAIT(&u, result_ == ETIMEDOUT, true, SFP_REAL(pthread_rwlock_clockrdlock)(lock, id, &real_abs));
}

SFP_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict lock, clockid_t id,
                                          const struct timespec *restrict abs)
{
    struct sfp_until u;
    int err;

    if (!sfp_until_at(id, abs, &u))
        return SFP_REAL(pthread_rwlock_clockwrlock)(lock, id, abs);
    err = rwlock_lock_as_actor(lock, WRITE, u.ps);
    if (err != EBUSY)
        return err;
    return SFP_TIMED_WAIT(&u, result_ == ETIMEDOUT, true, SFP_REAL(pthread_rwlock_clockwrlock)(lock, id, &real_abs));
}

SFP_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict abs)
{
    return pthread_rwlock_clockrdlock(lock, CLOCK_REALTIME, abs);
}

SFP_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict abs)
{
    return pthread_rwlock_clockwrlock(lock, CLOCK_REALTIME, abs);
}

SFP_EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    int err = SFP_REAL(pthread_rwlock_unlock)(lock);

    sfp_await_call(lock, false);
    return err;
}
