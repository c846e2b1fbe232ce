/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time, as seen by a program. An actor reads its own clock, which the engine moves. So does every other thread
 * of a simulated host: its clock begins at the engine's time or its creator's, is never behind the engine's, and moves
 * with every reading and with the length of every sleep. No thread's clock depends on the actions of another thread:
 * helper threads live in real time, and their readings must not show in the figures. SIMFAB_CLOCK=real leaves a process
 * all its real clocks.
 *
 * A reading costs time according to the model, so a thread that waits by the clock gets there.
 */
#include "simfab/preload/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/clock_base.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/slots.h"

#define PS_PER_NS  1000u
#define NS_PER_S   1000000000ull
#define SETTLE_MAX 32  /* wakings before an actor goes on though the engine's time is behind its clock */
#define ROW_MIN    256 /* readings without another call before an actor waits for the engine */

/*
 * UCX reads the time stamp counter inline unless its library's variable of this name says no. Symbols of a preloaded
 * library come first, so UCX uses gettimeofday.
 */
extern int ucs_arch_x86_enable_rdtsc;
SFP_EXPORT int ucs_arch_x86_enable_rdtsc = 0;

/* The clock of this thread, if it is no actor. */
static uint64_t catch_up_clock(void)
{
    sfp_clock_raise_mine(sfp_clock_local());
    if (sfp_proc.arena)
        sfp_clock_raise_mine(__atomic_load_n(&sfp_proc.arena->now_ps, __ATOMIC_ACQUIRE));
    return sfp_clock_mine();
}

/* The time of this thread without the cost of a reading. */
uint64_t sfp_clock_peek(void)
{
    struct sf_actor *a = sfp_enter_if_actor();

    return a ? sfp_now(a) : catch_up_clock();
}

void sfp_clock_advance_to(uint64_t ps)
{
    struct sf_actor *a = sfp_enter_if_actor();

    if (!a)
        sfp_clock_raise_mine(ps);
    else if (sfp_now(a) < ps)
        sfp_spend(a, ps - sfp_now(a));
}

/*
 * An actor that only reads the clock waits for a time, or for a change in memory meanwhile. Its clock must not run far
 * ahead of its surroundings: the actor lets the engine catch up each time the number of readings has grown by a
 * sixteenth.
 */
static void let_engine_catch_up(struct sf_actor *a)
{
    static __thread uint64_t last_call;
    static __thread uint32_t row, pause_at = ROW_MIN;

    row = a->calls == last_call + 1 ? row + 1 : 0;
    last_call = a->calls;
    if (!row)
        pause_at = ROW_MIN;
    if (row < pause_at || sfp_proc.dead)
        return;
    pause_at = row + (row / 16 > ROW_MIN / 4 ? row / 16 : ROW_MIN / 4);
    sfp_wait(a, SF_ACTOR_SLEEP, sfp_now(a));
}

/*
 * Data through a socket takes no virtual time, but must not arrive before its time either: the reader continues at the
 * engine's time or its own, and the writer may be ahead of both. So the writer first lets the engine catch up. The
 * writer waits as a poller does: other threads may wake the writer, which may hold a lock they want, and the wait is
 * limited.
 */
void sfp_clock_settle(int fd)
{
    struct sf_actor *a;
    struct stat st;
    int e = errno;

    if (!sfp_is_actor() || sfp_syscall(SYS_fstat, fd, &st) || !S_ISSOCK(st.st_mode)) {
        errno = e;
        return;
    }
    a = sfp_enter_if_actor();
    for (int i = 0; i < SETTLE_MAX && !sfp_proc.dead; i++)
        if (__atomic_load_n(&sfp_proc.arena->now_ps, __ATOMIC_ACQUIRE) >= sfp_now(a) ||
            __atomic_load_n(&a->state, __ATOMIC_RELAXED) != SF_ACTOR_RUNNING || /* a signal's handler, in a wait */
            sfp_wait(a, SF_ACTOR_IDLE, sfp_now(a)) < 0)
            break;
    errno = e;
}

static uint64_t read_clock(void)
{
    struct sf_actor *a = sfp_enter_if_actor();
    uint64_t ps;

    if (a) {
        let_engine_catch_up(a);
        return sfp_show(a, sfp_clock_read_ps());
    }
    ps = catch_up_clock() + sfp_clock_read_ps();
    sfp_clock_raise_mine(ps);
    return ps;
}

SFP_EXPORT int clock_gettime(clockid_t id, struct timespec *ts)
{
    uint64_t epoch, ns;

    if (!sfp_clock_is_virtual() || !sfp_clock_epoch(id, &epoch))
        return SFP_REAL(clock_gettime)(id, ts);
    ns = epoch + read_clock() / PS_PER_NS;
    ts->tv_sec = (time_t)(ns / NS_PER_S);
    ts->tv_nsec = (long)(ns % NS_PER_S);
    return 0;
}

SFP_EXPORT int gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec ts;

    if (!sfp_clock_is_virtual())
        return SFP_REAL(gettimeofday)(tv, tz);
    if (tz)
        memset(tz, 0, sizeof(struct timezone));
    clock_gettime(CLOCK_REALTIME, &ts);
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

SFP_EXPORT time_t time(time_t *t)
{
    struct timespec ts;

    if (!sfp_clock_is_virtual())
        return SFP_REAL(time)(t);
    clock_gettime(CLOCK_REALTIME, &ts);
    if (t)
        *t = ts.tv_sec;
    return ts.tv_sec;
}

/* The processor times are real, the elapsed ticks virtual. */
SFP_EXPORT clock_t times(struct tms *buf)
{
    clock_t real = SFP_REAL(times)(buf);
    struct timespec ts;

    if (!sfp_clock_is_virtual())
        return real;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (clock_t)(ts.tv_sec * sysconf(_SC_CLK_TCK) + ts.tv_nsec / (1000000000 / sysconf(_SC_CLK_TCK)));
}
