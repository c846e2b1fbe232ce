/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides whether time is virtual; the zero of virtual time, and the clocks of threads that are no actors. */
#include "simfab/preload/clock_base.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "simfab/preload/connect.h"
#include "simfab/preload/preload.h"

static pthread_once_t mode_once = PTHREAD_ONCE_INIT;
static bool virtual_time, mode_known;
static uint64_t epoch_ns, mono_epoch_ns, read_ps;
static uint64_t local_ps; /* where clocks of threads begin: the process's first look at the engine, or its parent */
static __thread uint64_t mine_ps; /* of a thread that is no actor (yet, or any more) */

static void choose_mode(void)
{
    const char *clock = getenv("SIMFAB_CLOCK");
    struct sf_welcome w;
    int fd;

    if (clock && !strcmp(clock, "real"))
        return;
    fd = sfp_connect(SF_CONN_QUERY, 0, &w, NULL);
    if (fd < 0)
        return; /* no engine, no virtual time */
    sfp_sys_close(fd);
    epoch_ns = w.epoch_ns;
    mono_epoch_ns = w.mono_epoch_ns;
    read_ps = w.clock_read_ps ? w.clock_read_ps : 1;
    sfp_clock_raise_local(w.now_ps);
    virtual_time = true;
}

bool sfp_clock_is_virtual(void)
{
    int e = errno;

    if (sfp_starting || !sfp_enabled())
        return false;
    if (__atomic_load_n(&mode_known, __ATOMIC_ACQUIRE))
        return virtual_time;
    sfp_starting = true;
    pthread_once(&mode_once, choose_mode);
    sfp_starting = false;
    __atomic_store_n(&mode_known, true, __ATOMIC_RELEASE);
    errno = e;
    return virtual_time;
}

uint64_t sfp_clock_local(void)
{
    uint64_t ps = __atomic_load_n(&local_ps, __ATOMIC_RELAXED);

    return ps > mine_ps ? ps : mine_ps;
}

void sfp_clock_raise_local(uint64_t ps)
{
    uint64_t was = __atomic_load_n(&local_ps, __ATOMIC_RELAXED);

    while (was < ps && !__atomic_compare_exchange_n(&local_ps, &was, ps, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

void sfp_clock_raise_mine(uint64_t ps)
{
    if (mine_ps < ps)
        mine_ps = ps;
}

bool sfp_clock_epoch(clockid_t id, uint64_t *epoch)
{
    switch (id) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        *epoch = epoch_ns;
        return true;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
        *epoch = mono_epoch_ns;
        return true;
    default:
        return false; /* processor time is real */
    }
}

uint64_t sfp_clock_mine(void)
{
    return mine_ps;
}

uint64_t sfp_clock_read_ps(void)
{
    return read_ps;
}
