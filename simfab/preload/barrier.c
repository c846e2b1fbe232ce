/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Barriers of the threads of one process. The C library cannot tell whether a wait would block, so arrivals are counted
 * here. Barriers shared by processes stay the C library's. An actor that takes turns waits to be called by the last
 * arrival (await.c), other threads wait in the kernel. Where nothing is simulated, all barriers are the C library's.
 */
#include "simfab/preload/preload.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/await.h"
#include "simfab/preload/connect.h"
#include "simfab/preload/slots.h"

struct barrier {
    struct barrier *next;
    const pthread_barrier_t *id; /* NULL: destroyed, freed by the last thread inside */
    uint32_t count, here;
    uint32_t inside; /* threads in their wait, or leaving */
    uint32_t round;  /* the futex of waiters in the kernel */
    bool helpers;    /* a thread that is no actor has arrived */
};

static struct barrier *barriers;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock_barriers(void)
{
    sfp_lock_awake(&list_lock);
}

static void unlock_barriers(void)
{
    SFP_REAL(pthread_mutex_unlock)(&list_lock);
}

static void renew_barrier_lock(void)
{
    pthread_mutex_init(&list_lock, NULL);
}

static void watch_barrier_forks(void)
{
    pthread_atfork(lock_barriers, unlock_barriers, renew_barrier_lock);
}

/* With the list locked. */
static struct barrier *find_barrier(const pthread_barrier_t *id)
{
    struct barrier *b = barriers;

    while (b && b->id != id)
        b = b->next;
    return b;
}

static void drop_barrier(const pthread_barrier_t *id)
{
    struct barrier **at = &barriers, *b;

    while ((b = *at) && b->id != id)
        at = &b->next;
    if (!b)
        return;
    *at = b->next;
    b->id = NULL;
    if (!b->inside)
        free(b);
}

SFP_EXPORT int pthread_barrier_init(pthread_barrier_t *restrict barrier, const pthread_barrierattr_t *restrict attr,
                                    unsigned count)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int err = SFP_REAL(pthread_barrier_init)(barrier, attr, count), shared = PTHREAD_PROCESS_PRIVATE;
    struct barrier *b;

    if (err || sfp_starting || !sfp_enabled())
        return err;
    if (attr)
        pthread_barrierattr_getpshared(attr, &shared);
    b = shared == PTHREAD_PROCESS_PRIVATE ? calloc(1, sizeof *b) : NULL;
    pthread_once(&once, watch_barrier_forks);
    lock_barriers();
    drop_barrier(barrier); /* memory was reused without a pthread_barrier_destroy */
    if (b) {
        b->id = barrier;
        b->count = count;
        b->next = barriers;
        barriers = b;
    }
    unlock_barriers();
    return 0;
}

SFP_EXPORT int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
    if (barriers) {
        lock_barriers();
        drop_barrier(barrier);
        unlock_barriers();
    }
    return SFP_REAL(pthread_barrier_destroy)(barrier);
}

/* This thread has arrived, in round round. NULL: the C library's barrier. last: all threads have arrived. */
static struct barrier *enter_barrier(const pthread_barrier_t *id, uint32_t *round, bool *last)
{
    struct barrier *b;

    lock_barriers();
    b = find_barrier(id);
    if (b) {
        *round = b->round;
        *last = ++b->here == b->count;
        b->inside++;
        if (!sfp_is_actor())
            __atomic_store_n(&b->helpers, true, __ATOMIC_RELAXED);
        if (*last) {
            b->here = 0;
            __atomic_store_n(&b->round, b->round + 1, __ATOMIC_SEQ_CST);
        }
    }
    unlock_barriers();
    return b;
}

static void leave_barrier(struct barrier *b)
{
    bool unused;

    lock_barriers();
    unused = !--b->inside && !b->id;
    unlock_barriers();
    if (unused)
        free(b);
}

static bool goes_on(const struct barrier *b, uint32_t round)
{
    return __atomic_load_n(&b->round, __ATOMIC_SEQ_CST) == round;
}

/* Until the first round is over, the set of threads is unknown. */
static bool helpers_come(const struct barrier *b, uint32_t round)
{
    return !sfp_thread_all_act() && (!round || __atomic_load_n(&b->helpers, __ATOMIC_RELAXED));
}

static void wait_for_others(struct barrier *b, uint32_t round)
{
    bool helpers = helpers_come(b, round);

    if (sfp_has_siblings() && sfp_await_begin(b)) {
        while (goes_on(b, round) && sfp_await(helpers, 0) != SFP_ALONE)
            ;
        sfp_await_end(false);
    }
    if (!goes_on(b, round))
        return;
    sfp_block_begin();
    while (goes_on(b, round))
        sfp_syscall(SYS_futex, &b->round, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
    sfp_block_end();
}

static int kernel_barrier_wait(pthread_barrier_t *barrier)
{
    int st;

    sfp_block_begin();
    st = SFP_REAL(pthread_barrier_wait)(barrier);
    sfp_block_end();
    return st;
}

SFP_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    uint32_t round;
    bool last;
    struct barrier *b = __atomic_load_n(&barriers, __ATOMIC_RELAXED) ? enter_barrier(barrier, &round, &last) : NULL;

    sfp_guest_stays();
    if (!b)
        return kernel_barrier_wait(barrier);
    if (last) {
        sfp_await_call(b, true);
        sfp_syscall(SYS_futex, &b->round, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    } else {
        wait_for_others(b, round);
    }
    leave_barrier(b);
    return last ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
}
