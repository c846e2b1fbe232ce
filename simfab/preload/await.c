/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for another thread of this process without a system call, which the engine would have to see through. The
 * thread takes a seat with the address of the awaited object, and goes LOCK. The thread that unlocks, posts, signals or
 * ends calls the waiter. Waiters for the same object are called in the order of arrival. All functions may be used in
 * signal handlers, as sem_post may: there is no lock. Seats go with the actors' slots.
 */
#include "simfab/preload/await.h"

#include <pthread.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/slots.h"

#define ASK_MAX 1000u

static struct seat {
    const void *what; /* NULL: a free seat */
    uint64_t order;   /* order of arrival */
    uint32_t called;
} seats[SF_ACTORS_MAX];

static uint32_t seats_taken;
static uint32_t cancels; /* threads cancelled so far */
static uint64_t last_order;
static __thread struct seat *mine;

static struct seat *seat_of(const struct sf_actor *a)
{
    return &seats[a - sfp_proc.arena->actor];
}

bool sfp_await_begin(const void *what)
{
    struct sf_actor *a = mine ? NULL : sfp_actor_awaiting();

    if (!a)
        return false;
    mine = seat_of(a);
    __atomic_store_n(&a->nudged, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&a->nudge_ps, 0, __ATOMIC_RELAXED);
    mine->order = __atomic_add_fetch(&last_order, 1, __ATOMIC_RELAXED);
    mine->called = 0;
    __atomic_fetch_add(&seats_taken, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&mine->what, what, __ATOMIC_SEQ_CST); /* then the caller looks whether the wait is over already */
    return true;
}

static bool late(const struct sf_actor *a, uint64_t until_ps)
{
    return until_ps && sfp_now(a) >= until_ps;
}

/* Where it is late already the others have their turns all the same: whoever asks again and again waits for them. */
enum sfp_awaited sfp_await(bool helpers, uint64_t until_ps)
{
    struct sf_actor *a = mine ? sfp_actor_awaiting() : NULL;
    int reason = -1;

    if (a) {
        __atomic_store_n(&a->helpers, helpers, __ATOMIC_RELAXED);
        reason =
            late(a, until_ps) ? sfp_wait(a, SF_ACTOR_READY, SFP_AFTER_OTHERS) : sfp_wait(a, SF_ACTOR_LOCK, until_ps);
    }
    if (reason < 0)
        return SFP_ALONE;
    if (__atomic_exchange_n(&mine->called, 0, __ATOMIC_SEQ_CST))
        return SFP_CALLED;
    if (reason == SFP_WAKE_SIGNAL)
        return SFP_INTERRUPTED;
    return late(a, until_ps) ? SFP_LATE : SFP_NOT_CALLED;
}

/* The wait is over at once, but actors that come first have their turns, and the engine counts such rounds. */
static void go_round(struct sf_actor *a)
{
    __atomic_store_n(&a->helpers, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&a->nudge_ps, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&a->nudged, 1, __ATOMIC_RELEASE);
    sfp_wait(a, SF_ACTOR_LOCK, 0);
}

/*
 * Counts from the last call or wait. The clock stays unchanged: the number of locks taken before may be luck, and a
 * clock raised after every so many locks would be, too.
 */
void sfp_await_ask(void)
{
    static __thread struct {
        uint64_t calls;
        uint32_t stops, asked;
    } since;
    struct sf_actor *a = sfp_self;

    if (!a)
        return;
    if (since.calls != a->calls || since.stops != a->stops) {
        since.calls = a->calls;
        since.stops = a->stops;
        since.asked = 0;
    }
    if (++since.asked < ASK_MAX)
        return;
    since.asked = 0;
    if (!mine && sfp_in_turns() && sfp_actor_awaiting())
        go_round(a);
}

void sfp_await_end(bool pass_on)
{
    const void *what;
    bool called;

    if (!mine)
        return;
    what = mine->what;
    __atomic_store_n(&mine->what, NULL, __ATOMIC_SEQ_CST);
    called = __atomic_exchange_n(&mine->called, 0, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&seats_taken, 1, __ATOMIC_RELAXED);
    mine = NULL;
    if (called || pass_on)
        sfp_await_call(what, false);
}

static struct seat *next_to_call(const void *what)
{
    struct seat *next = NULL;

    for (uint32_t i = 0; i < sfp_actor_slots(); i++) {
        struct seat *s = &seats[i];

        if (__atomic_load_n(&s->what, __ATOMIC_ACQUIRE) == what && !__atomic_load_n(&s->called, __ATOMIC_RELAXED) &&
            (!next || s->order < next->order))
            next = s;
    }
    return next;
}

/* False: it is not there any more, or waits for something else by now. */
static bool call(struct seat *s, const void *what)
{
    struct sf_actor *a = &sfp_proc.arena->actor[s - seats];
    uint64_t now = sfp_actor_time();
    uint32_t was = 0;

    if (!__atomic_compare_exchange_n(&s->called, &was, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return false;
    if (__atomic_load_n(&a->nudge_ps, __ATOMIC_RELAXED) < now)
        __atomic_store_n(&a->nudge_ps, now, __ATOMIC_RELAXED);
    __atomic_store_n(&a->nudged, 1, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&s->what, __ATOMIC_SEQ_CST) == what;
}

bool sfp_await_call(const void *what, bool all)
{
    struct seat *s;
    bool any = false;

    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* a thread that takes a seat after this check sees the caller's action */
    if (!__atomic_load_n(&seats_taken, __ATOMIC_RELAXED) || !sfp_proc.arena)
        return false;
    while ((s = next_to_call(what))) {
        any = true;
        if (call(s, what) && !all)
            break;
    }
    if (any)
        sfp_actor_tell();
    return any;
}

bool sfp_await_is_due(const void *what)
{
    if (!__atomic_load_n(&seats_taken, __ATOMIC_RELAXED))
        return false;
    for (uint32_t i = 0; i < sfp_actor_slots(); i++)
        if (__atomic_load_n(&seats[i].what, __ATOMIC_ACQUIRE) == what &&
            __atomic_load_n(&seats[i].called, __ATOMIC_RELAXED))
            return true;
    return false;
}

/* ---- cancellation ---------------------------------------------------------------------------------------------- */

uint32_t sfp_await_cancels(void)
{
    return __atomic_load_n(&cancels, __ATOMIC_ACQUIRE);
}

void sfp_await_lets_cancel(void)
{
    const void *what = mine ? mine->what : NULL;

    if (!what || !__atomic_load_n(&cancels, __ATOMIC_ACQUIRE))
        return;
    sfp_await_end(false);
    pthread_testcancel();
    sfp_await_begin(what);
}

/* The thread may wait in a cancellable call, and must check for cancellation. All waiters check. */
SFP_EXPORT int pthread_cancel(pthread_t thread)
{
    int err;

    __atomic_fetch_add(&cancels, 1, __ATOMIC_SEQ_CST);
    err = SFP_REAL(pthread_cancel)(thread);
    for (uint32_t i = 0; sfp_proc.arena && __atomic_load_n(&seats_taken, __ATOMIC_RELAXED) && i < sfp_actor_slots();
         i++)
        if (__atomic_load_n(&seats[i].what, __ATOMIC_ACQUIRE))
            __atomic_store_n(&sfp_proc.arena->actor[i].nudged, 1, __ATOMIC_SEQ_CST);
    if (sfp_proc.arena)
        sfp_actor_tell();
    return err;
}

void sfp_await_after_fork(void)
{
    for (uint32_t i = 0; i < SF_ACTORS_MAX; i++)
        seats[i] = (struct seat){0};
    seats_taken = 0;
    mine = NULL;
}
