/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads of this process, from creation to end. A thread begins at its creator's time, independent of clock readings
 * of other threads. Its number orders threads that arrive at the same time. The waiter for its end is called at the
 * end. A thread created by an actor takes turns from the beginning.
 */
#include "simfab/preload/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/await.h"
#include "simfab/preload/clock.h"
#include "simfab/preload/clock_base.h"
#include "simfab/preload/connect.h"
#include "simfab/preload/futex.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/slots.h"
#include "simfab/preload/tsc.h"
#include "simfab/preload/until.h"

#define JOIN_LOOKS 1000 /* for a thread that has reported its end */

struct thread {
    struct thread *next;
    pthread_t id;
    void *(*run)(void *);
    void *arg;
    uint64_t clock_ps;
    uint32_t number;
    bool guest; /* an actor from the beginning */
    bool tsc;   /* its creator's time stamp counter is virtual, and so is its own */
    bool acts, ended;
};

/* Until they are joined, or their id is given to another. */
static struct thread *threads;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t num_created;

static __thread struct thread *me; /* NULL in the first thread */
static __thread bool acts;

static void lock_threads(void)
{
    sfp_lock_awake(&list_lock);
}

static void unlock_threads(void)
{
    SFP_REAL(pthread_mutex_unlock)(&list_lock);
}

static void renew_thread_lock(void)
{
    pthread_mutex_init(&list_lock, NULL);
    sfp_thread_after_fork();
}

static void watch_thread_forks(void)
{
    pthread_atfork(lock_threads, unlock_threads, renew_thread_lock);
}

void sfp_thread_after_fork(void)
{
    threads = me; /* the others are not there */
    if (me)
        me->next = NULL;
    acts = false;
    sfp_helpers_after_fork();
    num_created = 0;
    sfp_await_after_fork();
}

uint32_t sfp_thread_number(void)
{
    return me ? me->number : 0;
}

void sfp_thread_acts(bool yes)
{
    if (yes == acts)
        return;
    acts = yes;
    sfp_helpers_add(yes ? -1 : 1);
    if (!me)
        return;
    __atomic_store_n(&me->acts, yes, __ATOMIC_RELEASE);
    if (!yes)
        sfp_await_call(me, true); /* its end will not be announced in its turn */
}

void sfp_thread_ends(void)
{
    if (!me || me->ended)
        return;
    if (!acts)
        sfp_helpers_add(-1);
    __atomic_store_n(&me->ended, true, __ATOMIC_SEQ_CST);
    sfp_await_call(me, true);
}

static void *begin_thread(void *arg)
{
    lock_threads(); /* the creator has entered the thread */
    me = arg;
    unlock_threads();
    acts = me->acts;
    sfp_tsc_inherit(me->tsc);
    sfp_futex_trap();
    sfp_actor_watch_end();
    if (me->clock_ps)
        sfp_clock_advance_to(me->clock_ps);
    if (me->guest)
        sfp_guest_begins();
    return me->run(me->arg);
}

static struct thread **find_thread(pthread_t id)
{
    struct thread **at = &threads;

    while (*at && !pthread_equal((*at)->id, id))
        at = &(*at)->next;
    return at;
}

static void drop_thread(pthread_t id)
{
    struct thread **at = find_thread(id), *t = *at;

    if (t)
        *at = t->next;
    free(t);
}

static int create(struct thread *t, pthread_t *restrict thread, const pthread_attr_t *restrict attr)
{
    int err;

    lock_threads();
    t->number = ++num_created;
    sfp_helpers_add(!t->acts);
    err = SFP_REAL(pthread_create)(thread, attr, begin_thread, t);
    if (err) {
        sfp_helpers_add(-!t->acts);
        free(t);
    } else {
        drop_thread(*thread);
        t->id = *thread;
        t->next = threads;
        threads = t;
    }
    unlock_threads();
    return err;
}

SFP_EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr, void *(*run)(void *),
                              void *restrict arg)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct thread *t;

    if (sfp_starting || !sfp_enabled() || !(t = calloc(1, sizeof *t)))
        return SFP_REAL(pthread_create)(thread, attr, run, arg);
    pthread_once(&once, watch_thread_forks);
    sfp_futex_look();
    sfp_actor_lends_cpu();
    t->run = run;
    t->arg = arg;
    t->tsc = sfp_tsc_is_trapped();
    if (sfp_proc.arena && !sfp_proc.dead && sfp_is_actor() && sfp_clock_is_virtual()) {
        t->clock_ps = sfp_clock_peek();
        t->guest = t->acts = !sfp_proc.welcome.cpu_factor_milli && sfp_is_actor();
        __atomic_add_fetch(&sfp_proc.arena->births, 1, __ATOMIC_RELEASE);
    }
    return create(t, thread, attr);
}

/* ---- waiting for the end --------------------------------------------------------------------------------------- */

static struct thread *entry_of(pthread_t id)
{
    struct thread *t;

    lock_threads();
    t = *find_thread(id);
    unlock_threads();
    return t;
}

/* The thread has reported its end and will end soon. EBUSY: not yet. */
static int join_soon(pthread_t thread, void **result)
{
    int err = EBUSY;

    for (int i = 0; i < JOIN_LOOKS && (err = pthread_tryjoin_np(thread, result)) == EBUSY; i++)
        SFP_REAL(sched_yield)();
    return err;
}

/* EBUSY: it is to be waited for in the kernel. */
static int await_end(struct thread *t, pthread_t thread, void **result, uint64_t until_ps)
{
    enum sfp_awaited how = SFP_NOT_CALLED;

    if (!t || t == me || !sfp_await_begin(t))
        return EBUSY;
    sfp_await_lets_cancel();
    while (!__atomic_load_n(&t->ended, __ATOMIC_ACQUIRE) && __atomic_load_n(&t->acts, __ATOMIC_ACQUIRE) &&
           how != SFP_ALONE && how != SFP_LATE) {
        how = sfp_await(false, until_ps);
        sfp_await_lets_cancel();
    }
    sfp_await_end(false);
    if (__atomic_load_n(&t->ended, __ATOMIC_ACQUIRE))
        return join_soon(thread, result);
    return how == SFP_LATE ? ETIMEDOUT : EBUSY;
}

/* No further join will follow. */
static int joined(pthread_t thread, int err)
{
    if (!err) {
        lock_threads();
        drop_thread(thread);
        unlock_threads();
    }
    return err;
}

SFP_EXPORT int pthread_join(pthread_t thread, void **result)
{
    int err = await_end(entry_of(thread), thread, result, 0);

    if (err == EBUSY) {
        sfp_block_begin();
        err = SFP_REAL(pthread_join)(thread, result);
        sfp_block_end();
    }
    return joined(thread, err);
}

SFP_EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t id, const struct timespec *abs)
{
    struct sfp_until u;
    int err;

    if (!abs)
        return pthread_join(thread, result);
    if (!sfp_until_at(id, abs, &u))
        return joined(thread, SFP_REAL(pthread_clockjoin_np)(thread, result, id, abs));
    err = await_end(entry_of(thread), thread, result, u.ps);
    if (err == EBUSY)
        err = SFP_TIMED_WAIT(&u, result_ == ETIMEDOUT, true,
                             SFP_REAL(pthread_clockjoin_np)(thread, result, id, &real_abs));
    return joined(thread, err);
}

SFP_EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *abs)
{
    return pthread_clockjoin_np(thread, result, CLOCK_REALTIME, abs);
}
