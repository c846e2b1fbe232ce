/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Actors: the threads of this process that call verbs, each in a slot of the arena with its own clock. A thread takes a
 * slot at its first call and frees the slot at its end. Waits are reported to the engine here.
 */
#include "simfab/preload/actor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/callers.h"
#include "simfab/preload/clock_base.h"
#include "simfab/preload/cpu.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/relay.h"
#include "simfab/preload/slots.h"
#include "simfab/preload/upcalls.h"

#define SIBLING_WAKES 8u    /* of one idle actor, for the sake of others, until time has moved */
#define TURN_CALLS    2000u /* calls in one turn before waiting actors go first */

static pthread_key_t actor_key;

static __thread uint64_t cpu_ns; /* processor time of this thread already charged */
static __thread uint64_t
    shown_ps; /* the latest time that the program has seen; the engine may take back a look's cost */
static __thread unsigned blocked;    /* depth of sfp_block_begin */
static __thread uint64_t turn_calls; /* the count of calls when its turn began */

static uint64_t thread_cpu_ns(void)
{
    struct timespec ts;

    sfp_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static __thread bool in_doubt; /* whether this guest will be a helper */

static void end_doubt(void)
{
    if (in_doubt)
        sfp_callers_doubt(false);
    in_doubt = false;
}

void sfp_guest_waits(void)
{
    if (!sfp_self || !sfp_self->guest || in_doubt)
        return;
    in_doubt = true;
    sfp_callers_doubt(true);
}

/* It takes no part any more, as far as the engine is concerned. */
static void free_actor(struct sf_actor *a)
{
    sfp_clock_raise_mine(sfp_now(a)); /* for code that still runs in this thread */
    end_doubt();
    sfp_cpu_leave(a);
    sfp_self = NULL;
    __atomic_store_n(&a->state, SF_ACTOR_FREE, __ATOMIC_SEQ_CST);
    sfp_slot_free(a);
    sfp_ring();
}

/* The thread ends: calls the waiters while time still stands still for this thread. */
static void thread_ends(void *arg)
{
    sfp_up.thread_ends();
    if (sfp_self)
        free_actor(sfp_self);
}

static void make_key(void)
{
    pthread_key_create(&actor_key, thread_ends);
}

void sfp_actor_watch_end(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_key);
    pthread_setspecific(actor_key, &actor_key);
}

void sfp_actor_after_fork(void)
{
    if (sfp_self)
        sfp_clock_raise_local(sfp_now(sfp_self)); /* time goes on from the parent's */
    sfp_self = NULL;
    in_doubt = false;
    blocked = 0;
    sfp_slots_after_fork();
}

/*
 * A thread begins at a whole microsecond, and epochs are whole seconds (the engine's main.c): clocks of that resolution
 * then round the same times to the same digits whenever a program is run. (The engine does the same for coarser
 * clocks.)
 */
static uint64_t first_clock(void)
{
    uint64_t now = __atomic_load_n(&sfp_proc.arena->now_ps, __ATOMIC_ACQUIRE), local = sfp_clock_local();

    return ((now > local ? now : local) + 999999) / 1000000 * 1000000;
}

/*
 * Counts from the birth of the first guest on, even before the engine has met the guest: whether the creator's first
 * wait is for a sibling or in the kernel must not depend on thread speed.
 */
static bool has_had_guests(void)
{
    return !sfp_proc.welcome.cpu_factor_milli && __atomic_load_n(&sfp_proc.arena->births, __ATOMIC_ACQUIRE);
}

bool sfp_in_turns(void)
{
    return sfp_proc.arena && (__atomic_load_n(&sfp_proc.arena->in_turns, __ATOMIC_ACQUIRE) || has_had_guests());
}

bool sfp_has_siblings(void)
{
    return sfp_in_turns() && (sfp_actor_slots() > 1 || has_had_guests());
}

static struct sf_actor *new_actor(bool guest)
{
    struct sf_actor *a;
    int err;

    sfp_up.tsc_prepare(); /* before time waits for this thread */
    err = sfp_attach();
    if (err) {
        errno = err;
        return NULL;
    }
    a = sfp_slot_take();
    if (!a)
        return NULL;
    a->tid = (uint32_t)sfp_syscall(SYS_gettid);
    a->number = sfp_up.thread_number();
    a->guest = guest;
    a->nudged = 0;
    a->wake_ps = 0;
    a->clock_ps = first_clock();
    cpu_ns = thread_cpu_ns();
    sfp_self = a;
    sfp_actor_watch_end();
    sfp_up.thread_acts(true);
    if (!sfp_proc.welcome.cpu_factor_milli) {
        sfp_wait(a, SF_ACTOR_READY, 0); /* begins in its turn */
    } else {
        __atomic_store_n(&a->state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
        sfp_ring();
    }
    if (!guest)
        sfp_up.tsc_trap();
    return a;
}

void sfp_guest_begins(void)
{
    if (!new_actor(true))
        sfp_up.thread_acts(false);
}

/*
 * The guest has never called verbs, and waits for something outside this process, or was left out: the guest becomes a
 * helper.
 */
static void retire(struct sf_actor *a)
{
    sfp_up.thread_acts(false);
    free_actor(a);
}

static void promote(struct sf_actor *a)
{
    a->guest = 0;
    end_doubt();
    sfp_up.tsc_trap();
}

/* The count of events is read before the time, so counted events are not later than this time. */
static struct sf_actor *catch_up_actor(struct sf_actor *a)
{
    uint64_t events = __atomic_load_n(&sfp_proc.arena->events, __ATOMIC_ACQUIRE);
    uint64_t now = __atomic_load_n(&sfp_proc.arena->now_ps, __ATOMIC_ACQUIRE), clock = sfp_now(a);

    __atomic_store_n(&a->seen_events, events, __ATOMIC_RELAXED);
    if (sfp_proc.welcome.cpu_factor_milli) {
        uint64_t used = thread_cpu_ns();

        clock += (used - cpu_ns) * sfp_proc.welcome.cpu_factor_milli; /* ns * 1/1000 = ps * 1 */
        cpu_ns = used;
    }
    __atomic_store_n(&a->clock_ps, clock > now ? clock : now, __ATOMIC_RELAXED);
    return a;
}

static struct sf_actor *enter_call(struct sf_actor *a)
{
    __atomic_store_n(&a->calls, a->calls + 1, __ATOMIC_RELEASE);
    return catch_up_actor(a);
}

/*
 * The host has gone on without a thread that slept or spun without notice. Or the thread calls again and again without
 * waiting, perhaps for an action of another actor of the host.
 */
static bool turn_is_over(const struct sf_actor *a)
{
    bool long_one = a->calls - turn_calls > TURN_CALLS && sfp_actor_slots() > 1;

    return __builtin_expect(__atomic_load_n(&a->left_out, __ATOMIC_RELAXED) || long_one, 0);
}

static struct sf_actor *enter_in_turn(struct sf_actor *a)
{
    enter_call(a);
    if (turn_is_over(a) && !blocked && sfp_in_turns() && !sfp_proc.dead)
        sfp_wait(a, SF_ACTOR_READY, SFP_AFTER_OTHERS);
    return a;
}

struct sf_actor *sfp_enter(void)
{
    struct sf_actor *a = sfp_self ? sfp_self : new_actor(false);

    if (a && sfp_proc.dead) {
        errno = EIO;
        return NULL;
    }
    if (a && a->guest)
        promote(a);
    return a ? enter_in_turn(a) : NULL;
}

/* The guest computes for actors, and continues as a helper. */
void sfp_guest_computes(void)
{
    if (!sfp_self || !sfp_self->guest || blocked)
        return;
    sfp_callers_mix();
    retire(sfp_self);
}

struct sf_actor *sfp_enter_if_actor(void)
{
    if (sfp_self && sfp_self->guest && __atomic_load_n(&sfp_self->left_out, __ATOMIC_RELAXED))
        sfp_guest_computes();
    return sfp_self ? enter_in_turn(sfp_self) : NULL;
}

void sfp_guest_stays(void)
{
    if (sfp_self && sfp_self->guest)
        promote(sfp_self);
}

void sfp_guest_leaves(void)
{
    if (sfp_self && sfp_self->guest && !blocked)
        retire(sfp_self);
}

/*
 * Threads of a process compare readings (one thread stores a time, another compares a moment later): a reading is never
 * before another thread's reading. The reader's own clock stays unchanged.
 */
uint64_t sfp_show(struct sf_actor *a, uint64_t cost_ps)
{
    static uint64_t latest_ps;
    uint64_t was = __atomic_load_n(&latest_ps, __ATOMIC_RELAXED);

    __atomic_store_n(&a->readings, a->readings + 1, __ATOMIC_RELAXED);
    sfp_spend(a, cost_ps);
    shown_ps = sfp_now(a);
    while (was < shown_ps &&
           !__atomic_compare_exchange_n(&latest_ps, &was, shown_ps, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    return was < shown_ps ? shown_ps : was;
}

/* A signal was handled: the program continues at the engine's time, to see the effects of its handler. */
static bool back_by_itself(struct sf_actor *a, uint32_t was)
{
    if (!__atomic_compare_exchange_n(&a->state, &was, SF_ACTOR_RUNNING, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return false;
    a->wake_reason = SFP_WAKE_SIGNAL;
    sfp_relay_forget(a);
    sfp_ring();
    enter_call(a);
    return true;
}

static void leave_call(struct sf_actor *a, enum sf_actor_state state, uint64_t wake_ps)
{
    __atomic_store_n(&a->wake_ps, wake_ps, __ATOMIC_RELAXED);
    __atomic_store_n(&a->stops, a->stops + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&a->state, (uint32_t)state, __ATOMIC_SEQ_CST);
    if (!sfp_relay_pass(a, state))
        sfp_ring();
}

int sfp_wait(struct sf_actor *a, enum sf_actor_state state, uint64_t wake_ps)
{
    const struct timespec patience = {.tv_nsec = 200000000};
    bool interrupted = false;
    uint32_t now;

    leave_call(a, state, wake_ps);
    for (;;) {
        now = __atomic_load_n(&a->state, __ATOMIC_ACQUIRE);
        if (now == SF_ACTOR_RUNNING)
            sfp_relay_begun(a);
        if (now == SF_ACTOR_RUNNING || sfp_relay_begin(a))
            break;
        if (!sfp_actor_sleep(a, now, &patience))
            continue;
        if (errno == ETIMEDOUT && !sfp_alive()) {
            __atomic_store_n(&a->state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
            sfp_cpu_leave(a);
            return -1;
        }
        if (errno == EINTR && state == SF_ACTOR_LOCK) { /* continues in its turn */
            interrupted = true;
            __atomic_store_n(&a->nudged, 1, __ATOMIC_RELEASE);
            sfp_ring();
        } else if (errno == EINTR && state != SF_ACTOR_DRAIN && state != SF_ACTOR_READY &&
                   back_by_itself(a, (uint32_t)state)) {
            break;
        }
    }
    turn_calls = a->calls;
    if (sfp_now(a) < shown_ps)
        __atomic_store_n(&a->clock_ps, shown_ps, __ATOMIC_RELAXED);
    if (sfp_proc.welcome.cpu_factor_milli)
        cpu_ns = thread_cpu_ns(); /* going to sleep and waking is not the program's work */
    return interrupted ? SFP_WAKE_SIGNAL : (int)a->wake_reason;
}

/*
 * The thread is about to wait for another, possibly for an idle poller of this process, which would have returned at
 * once on real hardware: idle actors look again. The number of times is limited: threads that poll and wait in turn
 * would otherwise keep each other from being idle at the same time, which is required for time to move.
 */
bool sfp_wake_siblings(uint32_t tid, bool *nudged)
{
    static struct {
        uint64_t at_ps;
        uint32_t times;
    } woken[SF_ACTORS_MAX];
    uint64_t now = __atomic_load_n(&sfp_proc.arena->now_ps, __ATOMIC_ACQUIRE);
    bool any = false, all = true, turns = sfp_in_turns();

    for (uint32_t i = 0; i < sfp_actor_slots(); i++) {
        struct sf_actor *a = &sfp_proc.arena->actor[i];
        uint32_t was = SF_ACTOR_IDLE;

        if (__atomic_load_n(&a->state, __ATOMIC_RELAXED) != SF_ACTOR_IDLE || (tid && a->tid != tid))
            continue;
        if (__atomic_exchange_n(&woken[i].at_ps, now, __ATOMIC_RELAXED) != now)
            __atomic_store_n(&woken[i].times, 0, __ATOMIC_RELAXED);
        if (__atomic_fetch_add(&woken[i].times, 1, __ATOMIC_RELAXED) >= SIBLING_WAKES) {
            all = false;
            continue;
        }
        if (turns) {
            __atomic_store_n(&a->nudged, 1, __ATOMIC_RELEASE);
            any = true;
        } else if (__atomic_compare_exchange_n(&a->state, &was, SF_ACTOR_RUNNING, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_RELAXED)) {
            sfp_actor_call(a);
            any = true;
        }
    }
    if (any)
        sfp_ring();
    if (nudged)
        *nudged |= any && turns;
    return all;
}

void sfp_block_begin(void)
{
    sfp_block_begin_until(0);
}

bool sfp_wait_goes_on(uint64_t until_ps)
{
    return __atomic_load_n(&sfp_proc.arena->now_ps, __ATOMIC_ACQUIRE) < until_ps && sfp_alive();
}

void sfp_block_begin_until(uint64_t until_ps)
{
    struct sf_actor *a = sfp_self;

    if (!a || blocked++)
        return;
    catch_up_actor(a); /* not counted as a call: whether it must wait may be a matter of luck */
    leave_call(a, SF_ACTOR_BLOCKED, until_ps);
}

void sfp_block_end(void)
{
    struct sf_actor *a = sfp_self;
    int e = errno;

    if (!a || --blocked)
        return;
    if (sfp_in_turns() && !sfp_proc.dead) {
        sfp_wait(a, SF_ACTOR_READY, 0);
    } else {
        __atomic_store_n(&a->state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
        sfp_ring();
    }
    catch_up_actor(a);
    errno = e;
}

struct sf_actor *sfp_actor_awaiting(void)
{
    bool waits = sfp_self && !blocked && sfp_proc.arena && !sfp_proc.dead && !sfp_proc.welcome.cpu_factor_milli;

    return waits ? catch_up_actor(sfp_self) : NULL;
}

void sfp_actor_lends_cpu(void)
{
    if (sfp_self)
        sfp_cpu_lend(sfp_self);
}

/* A look at memory that led to a copy led to something. */
void sfp_actor_copied(size_t n)
{
    struct sf_actor *a = sfp_self;

    if (!a || blocked || !sfp_proc.welcome.copy_ps_per_kib || sfp_proc.dead)
        return;
    sfp_spend(a, n * sfp_proc.welcome.copy_ps_per_kib / 1024);
    __atomic_store_n(&a->calls, a->calls + SF_LOOK_CALLS + 1, __ATOMIC_RELEASE);
}

/* While an actor runs the engine need not know. */
void sfp_actor_tell(void)
{
    if (!sfp_self || blocked || __atomic_load_n(&sfp_self->left_out, __ATOMIC_RELAXED))
        sfp_ring();
}

bool sfp_block_begin_on(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    int e = errno, flags;

    if (!sfp_self || blocked)
        return false;
    flags = (int)sfp_syscall(SYS_fcntl, fd, F_GETFL);
    if (flags < 0 || flags & O_NONBLOCK || sfp_sys_poll(&p, 1, 0) != 0) {
        errno = e;
        return false;
    }
    errno = e;
    sfp_guest_leaves();
    sfp_block_begin();
    return true;
}
