/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers in a list, in the order of their deadlines. */
#include "simfab/engine/mgmt/timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/mgmt/agents.h"

uint64_t timer_now_ns(void)
{
    return real_ns();
}

static void arm_timer(struct mad *m)
{
    uint64_t at = m->timers.next == &m->timers ? 0 : m->timers.next->deadline_ns;
    struct itimerspec when = {.it_value = {.tv_sec = (time_t)(at / 1000000000u), .tv_nsec = (long)(at % 1000000000u)}};

    m->armed_ns = at;
    timerfd_settime(m->timerfd, TFD_TIMER_ABSTIME, &when, NULL);
}

void timer_cancel(struct timer *t)
{
    if (!t->next)
        return;
    t->prev->next = t->next;
    t->next->prev = t->prev;
    t->prev = t->next = NULL;
}

void timer_set(struct mad *m, struct timer *t, uint64_t delay_ms)
{
    struct timer *after;

    timer_cancel(t);
    t->mad = m;
    t->deadline_ns = timer_now_ns() + delay_ms * 1000000u;
    /* most deadlines are later than all before */
    for (after = m->timers.prev; after != &m->timers && after->deadline_ns > t->deadline_ns; after = after->prev)
        ;
    t->prev = after;
    t->next = after->next;
    after->next->prev = t;
    after->next = t;
    /* most timers are cancelled long before their time: an expiry that is too soon costs less than arming for each */
    if (!m->armed_ns || t->deadline_ns < m->armed_ns)
        arm_timer(m);
}

void timers_run(struct mad *m)
{
    uint64_t count, now = timer_now_ns();

    (void)!read(m->timerfd, &count, sizeof count);
    while (m->timers.next != &m->timers && m->timers.next->deadline_ns <= now) {
        struct timer *t = m->timers.next;

        timer_cancel(t);
        t->fire(t);
    }
    arm_timer(m);
}
