/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting in the kernel until a time. Times computed by programs are virtual, while the kernel wants real times, so a
 * wait is converted by its remaining time.
 */
#ifndef SIMFAB_PRELOAD_UNTIL_H
#define SIMFAB_PRELOAD_UNTIL_H

#include <time.h>
#include <stdint.h>
#include <stdbool.h>

#include "simfab/preload/actor.h"
#include "simfab/preload/clock.h"
#include "simfab/preload/slots.h"

struct sfp_until {
    uint64_t ps; /* in virtual time, never 0 */
    clockid_t id;
    struct timespec real; /* as far away, by the kernel's clock of that id */
};

/* ABS of clock ID as such; false if the clock stays real, or the time is none: it is the C library's then. */
bool sfp_until_at(clockid_t id, const struct timespec *abs, struct sfp_until *u);
/* A few milliseconds from now on that clock; in a thread that is no actor, the end itself. */
struct timespec sfp_until_soon(const struct sfp_until *u);

/*
 * Around a real call that waits until U: EXPR uses `real_abs` and gives an error number or -1 with errno. An actor
 * waits for a few milliseconds at once until its time has come. AGAIN: the wait may be repeated. The waiter of a
 * condition variable would miss signals in between, and returns with a spurious wake-up instead, as POSIX allows.
 */
#define SFP_TIMED_WAIT(u, failed_by_time, again, expr)                                                                 \
    ({                                                                                                                 \
        const struct sfp_until *until_ = (u);                                                                          \
        struct timespec real_abs;                                                                                      \
        int result_;                                                                                                   \
        bool goes_on_ = false;                                                                                         \
        sfp_block_begin_until(until_->ps);                                                                             \
        do {                                                                                                           \
            real_abs = sfp_until_soon(until_);                                                                         \
            result_ = (expr);                                                                                          \
        } while (result_ && (failed_by_time) && (goes_on_ = sfp_is_actor() && sfp_wait_goes_on(until_->ps)) &&         \
                 (again));                                                                                             \
        sfp_block_end();                                                                                               \
        if (result_ && (failed_by_time) && goes_on_)                                                                   \
            result_ = 0;                                                                                               \
        else if (result_ && (failed_by_time))                                                                          \
            sfp_clock_advance_to(until_->ps);                                                                          \
        result_;                                                                                                       \
    })

#endif
