/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls from files of this library to files above them. upcalls.c fills the table in. */
#ifndef SIMFAB_PRELOAD_UPCALLS_H
#define SIMFAB_PRELOAD_UPCALLS_H

#include <stdbool.h>
#include <stdint.h>

struct sfp_upcalls {
    /* attach.c, in a process that has attached: around a fork */
    void (*before_fork)(void);
    void (*after_fork_parent)(void);
    void (*after_fork_child)(void);
    /* actor.c: this thread */
    uint32_t (*thread_number)(void);
    void (*thread_acts)(bool acts); /* is an actor from now on, or no longer is one */
    void (*thread_ends)(void);
    void (*tsc_prepare)(void); /* is about to attach, or to become an actor */
    void (*tsc_trap)(void);    /* calls verbs */
};

extern const struct sfp_upcalls sfp_up;

#endif
