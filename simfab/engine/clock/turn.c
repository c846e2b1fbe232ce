/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns. Accesses of actors to shared memory are not simulated, so their order must not depend on the machine: the
 * actors of a host run one after the other. An actor woken while another runs waits for its turn, and time waits, too.
 * The earliest clock comes first, then the lowest rank. An actor in a system call keeps its turn until all is quiet and
 * its wait there is certain. If computing takes virtual time, nothing repeats anyway, and actors run together.
 */
#include "simfab/engine/clock/turn.h"

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/fabric/model.h"

static bool runs_before(const struct actor *a, const struct actor *b)
{
    if (a->keeps_turn != b->keeps_turn)
        return a->keeps_turn;
    if (a->turn_clock_ps != b->turn_clock_ps)
        return a->turn_clock_ps < b->turn_clock_ps;
    if (a->proc->rank != b->proc->rank)
        return a->proc->rank < b->proc->rank;
    if (a->proc != b->proc)
        return a->proc->id < b->proc->id;
    if (actor_shared(a)->number != actor_shared(b)->number)
        return actor_shared(a)->number < actor_shared(b)->number; /* processes choose slots in any order */
    return actor_shared(a)->tid < actor_shared(b)->tid;
}

static void insert(struct host_time *h, struct actor *a)
{
    struct actor **at = &h->waiting;

    while (*at && runs_before(*at, a))
        at = &(*at)->next_waiting;
    a->next_waiting = *at;
    *at = a;
}

static void unlink_waiting(struct host_time *h, struct actor *a)
{
    struct actor **at = &h->waiting;

    while (*at != a)
        at = &(*at)->next_waiting;
    *at = a->next_waiting;
}

static void decide(struct actor *a)
{
    actor_host(a)->undecided -= a->undecided;
    a->undecided = false;
}

void turn_pause(struct actor *a)
{
    decide(a);
    a->paused = a->undecided = true;
    actor_host(a)->undecided++;
}

void turn_end_pause(struct actor *a)
{
    decide(a);
    a->paused = a->keeps_turn = false;
}

/* A reason to look gives way to a better one. */
void turn_wait(struct actor *a, enum wake_reason reason, uint64_t clock_ps)
{
    struct host_time *h = actor_host(a);

    decide(a);
    if (a->waits) {
        unlink_waiting(h, a);
        clock_ps = max_u64(clock_ps, a->turn_clock_ps);
        if (wakes_to_look(reason))
            reason = a->turn_reason;
    } else {
        h->sim->running++;
        h->sim->sched->waiting++;
    }
    a->waits = true;
    a->turn_reason = reason;
    a->turn_clock_ps = clock_ps;
    insert(h, a);
}

void turn_leave(struct actor *a)
{
    struct host_time *h = actor_host(a);

    if (!a->waits)
        return;
    unlink_waiting(h, a);
    a->waits = false;
    h->sim->running--;
    h->sim->sched->waiting--;
}

/* A single actor on a host needs no turns. */
void turns_update(struct host_time *h)
{
    struct sim *s = h->sim;
    bool in_turns = !s->model->cpu_factor_milli && (h->procs > 1 || h->actors > 1);

    s->sched->turn_hosts += in_turns - h->in_turns;
    h->in_turns = in_turns;
    for (uint32_t i = 0; i < s->num_procs; i++)
        if (s->procs[i]->host == h->host)
            __atomic_store_n(&s->procs[i]->arena->in_turns, in_turns, __ATOMIC_RELEASE);
}
