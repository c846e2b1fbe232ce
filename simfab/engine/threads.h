/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the kernel says about the threads that are actors. An actor that is RUNNING but sleeps in the kernel without
 * having said so, or burns processor time without calling, must not stop the world: it is excluded until it calls.
 */
#ifndef SIMFAB_THREADS_H
#define SIMFAB_THREADS_H

#include "simfab/engine/proc.h"

/* How long the engine waits for running actors before it asks the kernel about them: first, and then again. */
#define THREAD_FIRST_US 150
#define THREAD_AGAIN_US 1000

uint64_t real_ns(void);
/* Exclude the running actors that will not call soon. */
void threads_check(struct sim *s);
void thread_forget(struct actor *a);

#endif
