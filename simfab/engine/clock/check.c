/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds running actors that will not call soon. An actor that is RUNNING but sleeps in the kernel without notice, or
 * burns processor time without calling, must not stop time: such an actor is excluded until its next call.
 */
#include "simfab/engine/clock/check.h"

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/states.h"
#include "simfab/engine/clock/stuck.h"
#include "simfab/engine/clock/threads.h"
#include "simfab/proto.h"

/*
 * A wait for a disk or a page is not left alone before. Such waits end by themselves; on a busy machine the holder of a
 * lock, or the kernel's thread for the disk, may wait long for a processor.
 */
#define DISK_NS  10000000000ull
#define FIRST_US 150 /* before the kernel is asked about running actors; */
/*
 * first check while actors are held on the engine's processor. The time is beyond the kernel's next tick, so usually no
 * timer is set; setting a timer takes as long as a hand-over on virtual machines.
 */
#define TOGETHER_US 5000
#define AGAIN_US    1000  /* and then again; */
#define ASLEEP_US   20    /* after an actor was found asleep */
#define TURN_CALLS  2000u /* calls in one turn before waiting actors go first */
/* like SPIN_CPU_NS (threads.c), for threads with most time in system calls: long system calls are work */
#define KERNEL_CPU_NS 500000000ull
#define KNOWN_FIRST   20 /* for known spinners */
#define KNOWN_AGAIN   40

/*
 * Asleep a second time without a run in between, with all questions answered: the sleep has another reason than an
 * answer of the engine.
 */
static bool sleeps_still(struct actor *a)
{
    uint64_t turns = thread_turns(a);
    bool still = a->asleep && turns == a->asleep_turns;

    a->asleep = !still;
    a->asleep_turns = turns;
    return still;
}

/*
 * True if the actor has used so much processor time, without a call or new memory, that memory must be what the actor
 * waits for.
 */
static bool seems_to_spin(struct actor *a, const struct thread_usage *u)
{
    uint64_t cpu = thread_cpu_ns(a), used;

    if (!a->cpu_since_ns || a->faults != u->faults) { /* touching new memory is work */
        a->cpu_since_ns = cpu;
        a->kernel_since_ns = u->kernel_ns;
    }
    a->faults = u->faults;
    used = cpu - a->cpu_since_ns;
    if (!cpu || used < a->spin_ns)
        return false;
    return thread_is_known(a) || used >= KERNEL_CPU_NS || u->kernel_ns - a->kernel_since_ns < used / 2;
}

static void check_running(struct actor *a, uint64_t now)
{
    const struct sf_actor *shared = &a->proc->arena->actor[a->index];
    uint64_t calls = __atomic_load_n(&shared->calls, __ATOMIC_RELAXED);
    struct thread_usage usage = {0};
    char state = thread_state(a, &usage);

    if (calls != a->calls_checked)
        a->asleep = false;
    if (__atomic_load_n(&shared->state, __ATOMIC_ACQUIRE) != SF_ACTOR_RUNNING)
        return; /* the actor has just reported its state: the doorbell rings */
    if (calls != a->calls_checked || !a->waited_since_ns) {
        a->calls_checked = calls;
        a->waited_since_ns = now;
        a->cpu_since_ns = 0;
    }
    if (state == 'D' && now - a->waited_since_ns < DISK_NS)
        return;
    if (state != 'R') {
        if (!sleeps_still(a))
            return;
        a->spins = false;
    } else {
        a->asleep = false;
        if (!seems_to_spin(a, &usage))
            return;
        a->spins = true;
        a->proc->spinners++;
        a->proc->sim->spinners++;
    }
    a->excluded = true;
    a->calls = calls;
    __atomic_store_n(&a->proc->arena->actor[a->index].left_out, 1, __ATOMIC_RELEASE);
    actor_stops(a);
    sched_scan(a->proc); /* it may have unlocked something, and waits for another thread to take notice */
}

int64_t threads_patience_us(struct sim *s, bool again)
{
    for (uint32_t i = 0; s->known_spinners && i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            const struct actor *a = &s->procs[i]->actors[n];

            if (a->seen == SF_ACTOR_RUNNING && !a->excluded && thread_is_known(a))
                return again ? KNOWN_AGAIN : KNOWN_FIRST;
        }
    if (s->asleep)
        return ASLEEP_US;
    return again ? AGAIN_US : s->together ? TOGETHER_US : FIRST_US;
}

/* Ends a turn of many calls without a wait: the actor may be polling for an action of another actor of the host. */
static void end_long_turn(const struct actor *a)
{
    struct sf_actor *shared = &a->proc->arena->actor[a->index];

    if (actor_host(a)->in_turns && (actor_host(a)->waiting || a->proc->sim->sched->unsettled) &&
        __atomic_load_n(&shared->calls, __ATOMIC_RELAXED) - a->run_calls > TURN_CALLS)
        __atomic_store_n(&shared->left_out, 1, __ATOMIC_RELEASE);
}

void threads_check(struct sim *s)
{
    uint64_t now = real_ns();

    s->asleep = false;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->seen == SF_ACTOR_RUNNING && !a->excluded) {
                check_running(a, now);
                end_long_turn(a);
            }
            s->asleep |= a->asleep && a->seen == SF_ACTOR_RUNNING && !a->excluded;
        }
    if (s->running)
        stuck_look(s, now);
}
