/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by clock.c (reads clocks), sleep.c (waits for a time) and block.c (waits for other events). */
#ifndef SIMFAB_PRELOAD_CLOCK_H
#define SIMFAB_PRELOAD_CLOCK_H

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "simfab/preload/preload.h"

/* ---- clock_base.c */

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

/* ---- clock.c */

/* Another process is about to learn something through this descriptor. */
void sfp_clock_settle(int fd);
/* This thread's time in ps, without the cost of a reading. */
uint64_t sfp_clock_peek(void);
/* A sleep or a time-out of this thread ended at ps: its clock is not earlier than that. */
void sfp_clock_advance_to(uint64_t ps);

/* tsc.c: chooses how to catch readings of the time stamp counter; takes milliseconds if code must be patched. */
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

/* trap.c: handler gets sig before any of the program's, from now on. False: it cannot be had. */
bool sfp_trap_take(int sig, void (*handler)(int, siginfo_t *, void *), int flags);
/* Called in that handler for faults of other origin. */
void sfp_trap_pass_on(int sig, siginfo_t *info, void *context);

/* Returns a set of signals to block, without the kept signals; in *copy if the set has any. */
const sigset_t *sfp_trap_unblocked(const sigset_t *set, sigset_t *copy);

/*
 * futex.c: if the program has OpenMP's runtime, its futexes are seen in this thread from now on; look whether it has.
 */
void sfp_futex_trap(void);
void sfp_futex_look(void);

#define SFP_PS_PER_NS 1000ull
#define SFP_PS_PER_MS 1000000000ull
#define SFP_NS_PER_S  1000000000ull

#endif
