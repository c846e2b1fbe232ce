/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine holds actors on its own processor while the actors hand over to the engine and back
 * (simfab/engine/clock/cpu.h). A program must not notice when asking for or setting an affinity, or passing an affinity
 * on to threads and children: before each such call, the thread gets its former affinity back. The slot says whether
 * the engine has moved the thread, or is about to.
 */
#include "simfab/preload/cpu.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#include "simfab/preload/attach.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/slots.h"

#define MOVING_LOOKS 100000 /* looks for the engine, which needs microseconds, to move a thread */

static bool is_held(struct sf_actor *a)
{
    uint32_t held = SF_CPU_FREE;

    for (int i = 0; i < MOVING_LOOKS && (held = __atomic_load_n(&a->held, __ATOMIC_ACQUIRE)) == SF_CPU_MOVING; i++)
        SFP_REAL(sched_yield)();
    return held == SF_CPU_HELD;
}

static void restore_affinity(const struct sf_actor *a, uint32_t tid)
{
    cpu_set_t may;
    int e = errno;

    CPU_ZERO(&may);
    memcpy(&may, a->cpus, sizeof a->cpus);
    sfp_syscall(SYS_sched_setaffinity, tid, sizeof may, &may);
    errno = e;
}

/*
 * The mark stays: the child of a vfork, which shares the mark, passes here before its exec. So the engine may restore
 * the affinity a second time, and does not hold the thread again before the engine changes its processor.
 */
void sfp_cpu_lend(const struct sf_actor *a)
{
    if (is_held((struct sf_actor *)a))
        restore_affinity(a, 0);
}

/* From now on the engine has nothing to restore: the thread's affinity is about to change. */
void sfp_cpu_leave(struct sf_actor *a)
{
    uint32_t was = SF_CPU_HELD;

    if (is_held(a) &&
        __atomic_compare_exchange_n(&a->held, &was, SF_CPU_FREE, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        restore_affinity(a, a->tid);
}

static void leave_all(void)
{
    if (!sfp_proc.arena)
        return;
    for (uint32_t i = 0; i < sfp_actor_slots(); i++)
        sfp_cpu_leave(&sfp_proc.arena->actor[i]);
}

SFP_EXPORT int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    leave_all();
    return SFP_REAL(sched_getaffinity)(pid, size, set);
}

SFP_EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    leave_all();
    return SFP_REAL(sched_setaffinity)(pid, size, set);
}

SFP_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *set)
{
    leave_all();
    return SFP_REAL(pthread_getaffinity_np)(thread, size, set);
}

SFP_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set)
{
    leave_all();
    return SFP_REAL(pthread_setaffinity_np)(thread, size, set);
}

void sfp_cpu_asked(long number)
{
    if (number == SYS_sched_getaffinity || number == SYS_sched_setaffinity)
        leave_all();
}
