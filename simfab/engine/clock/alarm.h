/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of programs (alarm, setitimer, timer_create, timerfd), which end in virtual time: by a signal that the engine
 * sends, or by a count in a descriptor. They do not make time pass (whoever waits for one in a quiet world sees it pass
 * as it does outside), but time stops where they end, until the program has taken notice.
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

/* Let time pass by so much, where nothing else moves it, or until somebody learns of something. */
void alarms_pass(struct sim *s, uint64_t ps);

/* Nobody takes notice any more of what has ended: time may go on. */
void alarms_noticed(struct sim *s);

#endif
