/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says about the threads that are actors, and what that has told about an actor so far (check.h). */
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
void thread_forget(struct actor *a);
/* Processor time that the thread has had, to the kernel's last tick if it has one now. 0: unknown. */
uint64_t thread_ran_ns(const struct actor *a);
struct thread_usage {
    uint64_t faults, kernel_ns; /* page faults; processor time in the kernel, to a hundredth of a second */
};

/* The letter of its state, as in proc(5); 'X' if the thread is gone. u may be NULL. */
char thread_state(struct actor *a, struct thread_usage *u);
/* Processor time since some moment, which is another one once the kernel's counter is there. 0: unknown. */
uint64_t thread_cpu_ns(struct actor *a);
uint64_t thread_turns(const struct actor *a); /* how often the thread has got a processor */
/* As a spinner: microseconds count. Of others tens of milliseconds do, for which the kernel's tick is fine enough. */
bool thread_is_known(const struct actor *a);
/* One of the process's threads that has not ended, another than one that is about to; 0 if there is none. */
pid_t thread_living(pid_t pid, pid_t other_than);

#endif
