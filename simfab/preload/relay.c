/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The place of an actor's sleep while waiting for the engine, and the relay (struct sf_relay, proto.h): an actor that
 * goes IDLE passes its turn on to the next actor of its host, of another process, without waking the engine. Only the
 * first actor of a process has a seat there, and only while it is the only actor.
 */
#include "simfab/preload/relay.h"

#include <limits.h>
#include <linux/futex.h>
#include <time.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/slots.h"

#define PLACE(turn) ((turn)&255u)

static __thread uint32_t held; /* the turn of this thread; 0: the engine must hear of the thread's stop */

static bool has_seat(const struct sf_actor *a)
{
    return sfp_proc.relay && a == sfp_proc.arena->actor;
}

static void call_seat(uint32_t seat)
{
    uint32_t *word = &sfp_proc.relay->call[seat];

    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    sfp_syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void sfp_actor_call(struct sf_actor *a)
{
    if (has_seat(a))
        call_seat(sfp_proc.welcome.seat);
    else
        sfp_syscall(SYS_futex, &a->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* A call since the last look counts like a call now. */
long sfp_actor_sleep(struct sf_actor *a, uint32_t state, const struct timespec *patience)
{
    uint32_t *word = &a->state;

    if (has_seat(a)) {
        word = &sfp_proc.relay->call[sfp_proc.welcome.seat];
        if (__atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST))
            return 0;
        state = 0;
    }
    return sfp_syscall(SYS_futex, word, FUTEX_WAIT, state, patience, NULL, 0);
}

bool sfp_relay_begin(struct sf_actor *a)
{
    uint32_t turn;

    if (!has_seat(a))
        return false;
    turn = __atomic_load_n(&a->relay_turn, __ATOMIC_ACQUIRE);
    if (!PLACE(turn) || __atomic_load_n(&sfp_proc.relay->turn, __ATOMIC_SEQ_CST) != turn ||
        !__atomic_compare_exchange_n(&a->relay_turn, &turn, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return false;
    held = turn;
    __atomic_store_n(&a->clock_ps, a->relay_clock_ps, __ATOMIC_RELAXED);
    a->wake_reason = a->relay_reason;
    if (a->wake_reason != SFP_WAKE_LOOK && a->wake_reason != SFP_WAKE_WORLD)
        __atomic_store_n(&a->seen_events, __atomic_load_n(&sfp_proc.arena->events, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED);
    __atomic_store_n(&a->state, SF_ACTOR_RUNNING, __ATOMIC_SEQ_CST);
    return true;
}

void sfp_relay_begun(struct sf_actor *a)
{
    if (has_seat(a))
        held = __atomic_exchange_n(&a->relay_turn, 0, __ATOMIC_SEQ_CST);
}

void sfp_relay_forget(struct sf_actor *a)
{
    sfp_relay_begun(a);
    held = 0;
}

bool sfp_relay_pass(const struct sf_actor *a, enum sf_actor_state state)
{
    uint32_t turn = held, seat;

    held = 0;
    if (!turn || state != SF_ACTOR_IDLE || !has_seat(a) || sfp_actor_slots() > 1 || PLACE(turn) + 1 >= SF_RELAY_MOST)
        return false;
    seat = sfp_proc.relay->seat[PLACE(turn) + 1];
    if (!seat ||
        !__atomic_compare_exchange_n(&sfp_proc.relay->turn, &turn, turn + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        return false;
    call_seat(seat);
    return true;
}
