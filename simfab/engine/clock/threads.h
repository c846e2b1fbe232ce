/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's figures on actor threads, and conclusions from them (check.h). */
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
/* An excluded actor, or an actor whose memory was written, has called: updates the spinner state. */
void thread_called(struct actor *a);
void thread_was_busy(struct actor *a);
void thread_forget(struct actor *a);
/* Processor time of the thread, up to the kernel's last tick while running. 0: unknown. */
uint64_t thread_ran_ns(const struct actor *a);
struct thread_usage {
    uint64_t faults, kernel_ns; /* page faults; processor time in the kernel, to a hundredth of a second */
};

/* The letter of its state, as in proc(5); 'X' if the thread is gone. u may be NULL. */
char thread_state(struct actor *a, struct thread_usage *u);
/* Processor time since an arbitrary moment, which changes when the kernel's counter is opened. 0: unknown. */
uint64_t thread_cpu_ns(struct actor *a);
uint64_t thread_turns(const struct actor *a); /* how often the thread has got a processor */
/* A known spinner needs microseconds; for others, tens of milliseconds by the kernel's tick are fine enough. */
bool thread_is_known(const struct actor *a);
/* A live thread of the process other than `other_than`; 0: none. */
pid_t thread_living(pid_t pid, pid_t other_than);

#endif
