/* SPDX-License-Identifier: BSD-3-Clause */
/* The upcalls of this library. */
#include "simfab/preload/upcalls.h"

#include "simfab/preload/actor.h"
#include "simfab/preload/call.h"
#include "simfab/preload/callers.h"
#include "simfab/preload/preload.h"
#include "simfab/preload/thread.h"
#include "simfab/preload/tsc.h"

static void before_fork(void)
{
    sfp_actor_lends_cpu();
    sfp_calls_hold();
}

static void after_fork_child(void)
{
    sfp_calls_renew();
    sfp_actor_after_fork();
    sfp_callers_after_fork();
    sfp_thread_after_fork();
}

const struct sfp_upcalls sfp_up = {
    .before_fork = before_fork,
    .after_fork_parent = sfp_calls_release,
    .after_fork_child = after_fork_child,
    .thread_number = sfp_thread_number,
    .thread_acts = sfp_thread_acts,
    .thread_ends = sfp_thread_ends,
    .tsc_prepare = sfp_tsc_prepare,
    .tsc_trap = sfp_tsc_trap,
};
