/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers of the management plane, in real time; one timerfd serves all. */
#ifndef SIMFAB_TIMER_H
#define SIMFAB_TIMER_H

#include <stdint.h>

struct mad;

struct timer {
    struct timer *prev, *next; /* in the order of deadlines; NULL, NULL: not set */
    uint64_t deadline_ns;
    void (*fire)(struct timer *t);
    struct mad *mad;
};

void timer_set(struct mad *m, struct timer *t, uint64_t delay_ms);
void timer_cancel(struct timer *t);
void timers_run(struct mad *m); /* the timerfd is readable */
uint64_t timer_now_ns(void);    /* the clock of the timers */

#endif
