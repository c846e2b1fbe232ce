/* SPDX-License-Identifier: BSD-3-Clause */
/* The time stamp counter. */
#ifndef SIMFAB_PRELOAD_TSC_H
#define SIMFAB_PRELOAD_TSC_H

#include <stdbool.h>

/* Chooses how to catch readings of the time stamp counter; takes milliseconds if code must be patched. */
void sfp_tsc_prepare(void);
/*
 * Of an actor: reading the counter faults in this thread from now on, and gives virtual time. The engine is told how.
 */
void sfp_tsc_trap(void);
/* A thread has this from its creator. */
bool sfp_tsc_is_trapped(void);
void sfp_tsc_inherit(bool creators);
/* Around an exec: make the counter readable, and whether it was not; and back again. */
bool sfp_tsc_release(void);
void sfp_tsc_restore(bool released);

#endif
