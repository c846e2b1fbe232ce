/* SPDX-License-Identifier: BSD-3-Clause */
/* Closes an order of the relay: the engine repeats the steps of each passed turn. */
#include "simfab/engine/clock/relay_close.h"

#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/relay.h"
#include "simfab/engine/clock/states.h"
#include "simfab/engine/clock/turn.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/proto.h"

/* Repeats the steps of sched_start and its callers for a passed turn. */
static void begin_turn(struct actor *a)
{
    bool looking = wakes_to_look(a->turn_reason);

    turn_leave(a);
    sched_runs(a, looking);
    a->run_calls = a->relay.calls;
    a->head_before = a->relay.head;
    a->proc->sim->relayed++;
}

/* Takes the turn back. Returns false if the actor has already begun. */
static bool take_back(struct actor *a)
{
    uint32_t turn = a->relay.turn;

    a->relay.turn = 0;
    return __atomic_compare_exchange_n(&actor_shared(a)->relay_turn, &turn, 0, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_RELAXED);
}

/*
 * An actor may not have noticed its turn yet: such an actor is still IDLE, and the turn is taken back. All earlier
 * actors in the order have stopped by an empty poll.
 */
void relay_close_now(struct host_time *h)
{
    struct relay *r = h->relay;
    uint32_t length = h->relay_length;
    struct actor *last = r->member[0];

    h->relay_length = 0;
    __atomic_exchange_n(&r->page->turn, 0, __ATOMIC_SEQ_CST);
    last->relay.turn = 0;
    for (uint32_t i = 1; i < length; i++) {
        if (take_back(r->member[i]))
            continue;
        sched_look_at(last);
        last = r->member[i];
        begin_turn(last);
    }
    sched_look_at(last);
}
