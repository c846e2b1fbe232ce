/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * New threads. A thread begins at its creator's time, not at that of whoever else has read a clock meanwhile; and the
 * engine is told of it, so that time waits until the thread has either come to simfab or gone to sleep.
 */
#include "simfab/preload/clock.h"

#include <pthread.h>
#include <stdlib.h>

struct start {
    void *(*run)(void *);
    void *arg;
    uint64_t clock_ps;
};

static void *begin(void *arg)
{
    struct start s = *(struct start *)arg;

    free(arg);
    sfp_clock_advance_to(s.clock_ps);
    return s.run(s.arg);
}

SFP_EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attr, void *(*run)(void *),
                              void *restrict arg)
{
    struct start *s;
    int err;

    if (!sfp_proc.arena || sfp_proc.dead || !sfp_is_actor() || !sfp_clock_is_virtual() || !(s = malloc(sizeof *s)))
        return SFP_REAL(pthread_create)(thread, attr, run, arg);
    *s = (struct start){run, arg, sfp_clock_peek()};
    __atomic_add_fetch(&sfp_proc.arena->births, 1, __ATOMIC_RELEASE);
    err = SFP_REAL(pthread_create)(thread, attr, begin, s);
    if (err)
        free(s);
    return err;
}
