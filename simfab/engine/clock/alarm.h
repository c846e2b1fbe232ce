/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of programs (alarm, setitimer, timer_create, timerfd). A timer ends in virtual time: the engine sends a signal
 * or writes a count to a descriptor. Timers do not make time pass. While nothing else can happen, time passes at the
 * real rate for a waiting program. Time stops at the end of a timer until the program has noticed.
 */
#ifndef SIMFAB_ALARM_H
#define SIMFAB_ALARM_H

#include <stdint.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/clock/call.h"
#include "simfab/engine/clock/proc.h"

struct alarm;

int alarm_new_call(struct call *c);
int alarm_set_call(struct call *c);
int alarm_drop_call(struct call *c);

void alarms_proc_gone(struct proc *p);
void alarms_fini(struct sim *s);

/* Lets time pass by ps while nothing else moves time, but no further than the next end that a program must notice. */
void alarms_pass(struct sim *s, uint64_t ps);

/* No program has an end left to notice: time may move again. */
void alarms_noticed(struct sim *s);

#endif
