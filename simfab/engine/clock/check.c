/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Running actors are looked at: which of them will not call soon? An actor that is RUNNING but sleeps in the kernel
 * without having said so, or burns processor time without calling, must not stop the world: it is excluded until it
 * calls.
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

#define DISK_NS  100000000ull /* a wait for a disk or a page is not left alone before */
#define FIRST_US 150          /* before the kernel is asked about running actors; */
/*
 * The same, while they are held: later than the kernel's next tick as a rule, so that no timer need be set for that,
 * which takes as long as a hand-over on virtual machines.
 */
#define TOGETHER_US 5000
#define AGAIN_US    1000  /* and then again; */
#define ASLEEP_US   20    /* where one was found asleep */
#define TURN_CALLS  2000u /* so many calls in one turn, and others come first if there are any */
/* as SPIN_CPU_NS (threads.c), where most of it went into system calls: who makes long ones is at work */
#define KERNEL_CPU_NS 500000000ull
#define KNOWN_FIRST   20 /* for spinners that are known */
#define KNOWN_AGAIN   40

/*
 * It sleeps, but perhaps for our answer to what it has just asked. The second time, when everything has been answered
 * and it has not run in between, it is for something else.
 */
static bool sleeps_still(struct actor *a)
{
    uint64_t turns = thread_turns(a);
    bool still = a->asleep && turns == a->asleep_turns;

    a->asleep = !still;
    a->asleep_turns = turns;
    return still;
}

/* Has it used so much processor time, without a call or new memory, that it must be waiting for memory to change? */
static bool seems_to_spin(struct actor *a, const struct thread_usage *u)
{
    uint64_t cpu = thread_cpu_ns(a), used;

    if (!a->cpu_since_ns || a->faults != u->faults) { /* who gets at new memory is at work */
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
        return; /* it has just told why not: the doorbell rings */
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

/*
 * One that calls again and again without waiting, perhaps for what another one of its host would do if it had its turn.
 */
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
