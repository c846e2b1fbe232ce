/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks and futexes. An actor that finds a lock taken tells the engine that it waits, and wakes the idle pollers of its
 * process, because one of them may hold it. One that waits on a futex of its own (the program calls the kernel
 * directly) tells the engine too.
 */
#include "simfab/preload/clock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>

static bool is_actor(void)
{
    return sfp_proc.arena && !sfp_proc.dead && sfp_is_actor();
}

/*
 * This thread waits for another, which may be an idle poller: that looks again. When it has not helped this thread is idle
 * too, and time moves on. nudged: another one that takes turns with this one does. False: there is no such thread.
 */
static bool let_others_run(bool nudged)
{
    bool enough = !sfp_wake_siblings(&nudged);
    struct sf_actor *a = enough || nudged ? sfp_enter_if_actor() : NULL;

    return a && sfp_wait(a, enough ? SF_ACTOR_IDLE : SF_ACTOR_READY, enough ? 0 : SFP_AFTER_OTHERS) >= 0;
}

SFP_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int err;

    if (!is_actor())
        return SFP_REAL(pthread_mutex_lock)(mutex);
    err = pthread_mutex_trylock(mutex);
    if (err != EBUSY)
        return err;
    sfp_waiter_begins();
    sfp_wake_siblings(NULL);
    sfp_block_begin();
    err = SFP_REAL(pthread_mutex_lock)(mutex);
    sfp_block_end();
    sfp_waiter_ends();
    return err;
}

SFP_EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    const struct timespec nap = {.tv_nsec = 20000}; /* the one who has the lock may want this processor */
    int err;

    if (!is_actor())
        return SFP_REAL(pthread_spin_lock)(lock);
    err = pthread_spin_trylock(lock);
    if (err != EBUSY)
        return err;
    sfp_waiter_begins();
    while ((err = pthread_spin_trylock(lock)) == EBUSY && let_others_run(sfp_in_turns()))
        ;
    if (err == EBUSY) {
        sfp_block_begin();
        while ((err = pthread_spin_trylock(lock)) == EBUSY) {
            sfp_wake_siblings(NULL); /* whoever has it may have begun to poll meanwhile */
            sfp_syscall(SYS_nanosleep, &nap, NULL);
        }
        sfp_block_end();
    }
    sfp_waiter_ends();
    return err;
}

SFP_EXPORT int sched_yield(void)
{
    if (is_actor() && let_others_run(false))
        return 0;
    return SFP_REAL(sched_yield)();
}

/* The kernel keeps the wait (another process may wake it); a time-out moves the clock by its length. */
static long futex_wait(long arg[6])
{
    const struct timespec *timeout = (const struct timespec *)arg[3];
    uint64_t from = sfp_clock_peek();
    long st;

    sfp_block_begin();
    st = sfp_syscall(SYS_futex, arg[0], arg[1], arg[2], arg[3]);
    sfp_block_end();
    if (st < 0 && errno == ETIMEDOUT && timeout)
        sfp_clock_advance_to(from +
                             ((uint64_t)timeout->tv_sec * SFP_NS_PER_S + (uint64_t)timeout->tv_nsec) * SFP_PS_PER_NS);
    return st;
}

SFP_EXPORT long syscall(long number, ...)
{
    long arg[6];
    va_list ap;

    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        arg[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_futex && (arg[1] & ~FUTEX_PRIVATE_FLAG) == FUTEX_WAIT && is_actor() && sfp_clock_is_virtual())
        return futex_wait(arg);
    return sfp_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
