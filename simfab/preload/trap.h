/* SPDX-License-Identifier: BSD-3-Clause */
/* Our signals. */
#ifndef SIMFAB_PRELOAD_TRAP_H
#define SIMFAB_PRELOAD_TRAP_H

#include <signal.h>
#include <stdbool.h>

/* The handler gets sig before any of the program's, from now on. False: it cannot be had. */
bool sfp_trap_take(int sig, void (*handler)(int, siginfo_t *, void *), int flags);
/* Called in that handler for faults of other origin. */
void sfp_trap_pass_on(int sig, siginfo_t *info, void *context);

/* Returns a set of signals to block, without the kept signals; in *copy if the set has any. */
const sigset_t *sfp_trap_unblocked(const sigset_t *set, sigset_t *copy);

#endif
