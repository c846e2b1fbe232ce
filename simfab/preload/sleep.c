/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeping, and waiting until a time, in virtual time. An actor that sleeps hands its wake-up time to the engine and is
 * woken when virtual time gets there; another thread really sleeps, and its process's clock moves on by the length.
 */
#include "simfab/preload/preload.h"

#include <errno.h>
#include <time.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/attach.h"
#include "simfab/preload/clock.h"
#include "simfab/preload/clock_base.h"
#include "simfab/preload/slots.h"
#include "simfab/preload/until.h"

static uint64_t ns_of(const struct timespec *ts)
{
    return (uint64_t)ts->tv_sec * SFP_NS_PER_S + (uint64_t)ts->tv_nsec;
}

static struct timespec timespec_of_ns(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / SFP_NS_PER_S), .tv_nsec = (long)(ns % SFP_NS_PER_S)};
}

static bool valid_duration(const struct timespec *ts)
{
    return ts->tv_sec >= 0 && ts->tv_nsec >= 0 && ts->tv_nsec < (long)SFP_NS_PER_S;
}

/* Sleep of ns from now; 0, or EINTR with the rest in *left (real sleeps only). */
static int sleep_ns(uint64_t ns, struct timespec *left)
{
    struct sf_actor *a = (sfp_guest_leaves(), sfp_enter_if_actor());
    uint64_t until = sfp_clock_peek() + ns * SFP_PS_PER_NS;
    struct timespec ts = timespec_of_ns(ns);
    int err;

    if (a && !sfp_proc.dead) {
        int reason = sfp_wait(a, SF_ACTOR_SLEEP, until);

        if (reason == SFP_WAKE_SIGNAL && sfp_now(a) < until) {
            if (left)
                *left = timespec_of_ns((until - sfp_now(a)) / SFP_PS_PER_NS);
            return EINTR;
        }
        if (reason >= 0) {
            sfp_clock_advance_to(until);
            return 0;
        }
    }
    err = (int)sfp_syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, &ts) ? errno : 0;
    if (err == EINTR) {
        uint64_t rest = ns_of(&ts) * SFP_PS_PER_NS;

        sfp_clock_advance_to(until > rest ? until - rest : 0);
        if (left)
            *left = ts;
    } else {
        sfp_clock_advance_to(until);
    }
    return err;
}

SFP_EXPORT int clock_nanosleep(clockid_t id, int flags, const struct timespec *req, struct timespec *rem)
{
    uint64_t epoch, at, now;

    if (!sfp_clock_is_virtual() || !sfp_clock_epoch(id, &epoch)) {
        int err;

        sfp_guest_leaves();
        sfp_block_begin();
        err = SFP_REAL(clock_nanosleep)(id, flags, req, rem);
        sfp_block_end();
        return err;
    }
    if (!valid_duration(req))
        return EINVAL;
    if (!(flags & TIMER_ABSTIME))
        return sleep_ns(ns_of(req), rem);
    at = ns_of(req);
    now = epoch + sfp_clock_peek() / SFP_PS_PER_NS;
    return at > now ? sleep_ns(at - now, NULL) : 0;
}

SFP_EXPORT int nanosleep(const struct timespec *req, struct timespec *rem)
{
    int err = clock_nanosleep(CLOCK_REALTIME, 0, req, rem);

    if (!err)
        return 0;
    errno = err;
    return -1;
}

SFP_EXPORT int usleep(useconds_t us)
{
    struct timespec ts = timespec_of_ns((uint64_t)us * 1000);

    return nanosleep(&ts, NULL);
}

SFP_EXPORT unsigned int sleep(unsigned int seconds)
{
    struct timespec ts = {.tv_sec = seconds}, left = {0};

    return nanosleep(&ts, &left) ? (unsigned)left.tv_sec + (left.tv_nsec >= 500000000) : 0;
}

/* ---- waiting until an absolute time ---------------------------------------------------------------------------- */

bool sfp_until_at(clockid_t id, const struct timespec *abs, struct sfp_until *u)
{
    struct timespec real;
    uint64_t epoch, now, at;

    if (!sfp_clock_is_virtual() || !valid_duration(abs) || !sfp_clock_epoch(id, &epoch))
        return false;
    at = ns_of(abs);
    now = epoch + sfp_clock_peek() / SFP_PS_PER_NS;
    sfp_syscall(SYS_clock_gettime, id, &real);
    u->id = id;
    u->ps = at > epoch ? (at - epoch) * SFP_PS_PER_NS : 1;
    u->real = timespec_of_ns(ns_of(&real) + (at > now ? at - now : 0));
    return true;
}

struct timespec sfp_until_soon(const struct sfp_until *u)
{
    struct timespec now;

    if (!sfp_is_actor() || sfp_proc.dead)
        return u->real;
    sfp_syscall(SYS_clock_gettime, u->id, &now);
    return timespec_of_ns(ns_of(&now) + SFP_SLICE_MS_MAX * 1000000ull);
}
