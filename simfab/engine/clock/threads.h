/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says about the threads that are actors. An actor that is RUNNING but sleeps in the kernel without
 * having said so, or burns processor time without calling, must not stop the world: it is excluded until it calls.
 */
#ifndef SIMFAB_THREADS_H
#define SIMFAB_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/proc.h"

void thread_init(struct actor *a);
/* Nothing is held against the actor any more. */
void thread_include(struct actor *a);
/* An actor that was left out, or that something landed for, has called: what does that say about it? */
void thread_called(struct actor *a);
void thread_was_busy(struct actor *a);
/* How long to wait for running actors before asking the kernel about them, for the first time or again. */
int64_t threads_patience_us(struct sim *s, bool again);
/* Exclude the running actors that will not call soon. */
void threads_check(struct sim *s);
void thread_forget(struct actor *a);
/* Processor time that the thread has had, to the kernel's last tick if it has one now. 0: unknown. */
uint64_t thread_ran_ns(const struct actor *a);
/* One of the process's threads that has not ended, another than one that is about to; 0 if there is none. */
pid_t thread_living(pid_t pid, pid_t other_than);

#endif
