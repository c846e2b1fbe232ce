/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processor shared by the engine and its actors. Actors hand over to the engine and back, and little goes on at the
 * same time, so a processor for each gains nothing: a thread woken on an idle processor starts tens of microseconds
 * later, while a hand-over on one processor takes two. Programs do not see the binding (preload/cpu.c). No virtual time
 * depends on it.
 */
#ifndef SIMFAB_ENGINE_CPU_H
#define SIMFAB_ENGINE_CPU_H

#include <stdbool.h>
#include <stdint.h>

struct cpu;
struct proc;
struct sim;

struct cpu *cpu_new(void);
void cpu_free(struct cpu *c);

/* The engine has waited for `running` actors. in_time: an actor rang before the engine's patience ended. */
void cpu_waited(struct cpu *c, struct sim *s, uint32_t running, bool in_time);

/* The process is about to be detached: its threads may run where they could before. */
void cpu_let_go(struct proc *p);

#endif
