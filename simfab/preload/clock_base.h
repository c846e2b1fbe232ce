/* SPDX-License-Identifier: BSD-3-Clause */
/* What time is virtual. */
#ifndef SIMFAB_PRELOAD_CLOCK_BASE_H
#define SIMFAB_PRELOAD_CLOCK_BASE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

bool sfp_clock_is_virtual(void);
/* Nanoseconds of the given clock at virtual time 0; false for clocks that stay real. */
bool sfp_clock_epoch(clockid_t id, uint64_t *epoch);
uint64_t sfp_clock_read_ps(void); /* the cost of a reading */
/*
 * The clock of this thread while not an actor, and its start as an actor. Threads that are no actors begin at the
 * process's clock. The second function raises the process's clock, the third only this thread's, to the value of the
 * fourth.
 */
uint64_t sfp_clock_local(void);
void sfp_clock_raise_local(uint64_t ps);
void sfp_clock_raise_mine(uint64_t ps);
uint64_t sfp_clock_mine(void);

#endif
