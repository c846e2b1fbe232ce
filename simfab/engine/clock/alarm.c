/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers of programs. Their memory is kept for others of their kind: events in the queue may still point to it. */
#include "simfab/engine/clock/alarm.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/call.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/wake.h"
#include "simfab/proto.h"

#define ALARMS_MAX      4096u /* of a process */
#define INTERVAL_MIN_PS 1000000ull

struct alarm {
    struct proc *proc;
    struct alarm *next; /* of the process, or free */
    struct evtimer end;
    uint32_t id;
    struct sf_timer_new how;
    uint64_t interval_ps;
    int fd; /* SF_TIMER_FD: a count of endings; else -1 */
};

/* ---- ending ---------------------------------------------------------------------------------------------------- */

/* True if the thread handles the signal and does not block it. */
static bool handles(pid_t pid, uint32_t tid, uint32_t signo)
{
    unsigned long long caught = 0, blocked = 0;
    char path[64], line[256];
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/task/%u/status", (int)pid, tid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        sscanf(line, "SigCgt: %llx", &caught);
        sscanf(line, "SigBlk: %llx", &blocked);
    }
    if (f)
        fclose(f);
    return (caught & ~blocked) >> (signo - 1) & 1;
}

/* Without a named thread, the first thread gets the signal if the thread handles it. */
static void send_signal(const struct alarm *a)
{
    uint32_t tid = a->how.tid ? a->how.tid : (uint32_t)a->proc->pid;
    bool handled = handles(a->proc->pid, tid, a->how.signo);
    siginfo_t info;

    memset(&info, 0, sizeof info);
    info.si_signo = (int)a->how.signo;
    info.si_code = SI_TIMER;
    info.si_value.sival_ptr = (void *)(uintptr_t)a->how.value;
    if (a->how.kind == SF_TIMER_ALARM)
        kill(a->proc->pid, (int)a->how.signo);
    else if (a->how.tid)
        syscall(SYS_rt_tgsigqueueinfo, a->proc->pid, a->how.tid, a->how.signo, &info);
    else
        syscall(SYS_rt_sigqueueinfo, a->proc->pid, a->how.signo, &info);
    if (handled)
        sched_signalled(a->proc, tid);
}

static void disarm(struct alarm *a)
{
    if (!evtimer_is_set(&a->end))
        return;
    evtimer_stop(&a->end);
    a->proc->sim->background--;
    a->proc->sim->alarms_set--;
}

static void arm_alarm(struct alarm *a, uint64_t t)
{
    struct sim *s = a->proc->sim;

    if (!evtimer_is_set(&a->end)) {
        s->background++;
        s->alarms_set++;
    }
    evtimer_set(&s->q, &a->end, t);
}

/* Stops time until the program has noticed the end of the timer. */
static void ended(void *obj, uint64_t arg)
{
    struct alarm *a = obj;
    struct proc *p = a->proc;
    struct sim *s = p->sim;
    const uint64_t one = 1;

    s->background--;
    s->alarms_set--;
    if (a->interval_ps)
        arm_alarm(a, sim_now(s) + a->interval_ps);
    sched_publish_time(s);
    p->signalled = s->signalled = true;
    if (a->fd >= 0) {
        (void)!write(a->fd, &one, sizeof one);
        sched_event(p);
    } else if (a->how.kind != SF_TIMER_SILENT) {
        send_signal(a);
    }
}

void alarms_noticed(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        s->procs[i]->signalled = false;
    s->signalled = false;
}

void alarms_pass(struct sim *s, uint64_t ps)
{
    uint64_t until = sim_now(s) + ps, t;

    while (!s->signalled && !s->running && evq_next(&s->q, &t) && t <= until)
        evq_run_one(&s->q);
    if (!s->signalled && !s->running)
        evq_skip_to(&s->q, until);
}

/* ---- requests of programs ---------------------------------------------------------------------------------------- */

static struct alarm **find_alarm(struct proc *p, uint32_t id)
{
    struct alarm **at = &p->alarms;

    while (*at && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static struct alarm *get_memory(struct sim *s)
{
    struct alarm *a = s->free_alarms;

    if (a) {
        s->free_alarms = a->next;
        return a;
    }
    a = xcalloc(1, sizeof *a);
    evtimer_init(&a->end, ended, a);
    a->end.quiet = true;
    return a;
}

int alarm_new_call(struct call *c)
{
    struct proc *p = c->p;
    struct sf_timer_new how;
    struct alarm *a;
    int fd = -1;

    memcpy(&how, c->body, sizeof how);
    if (how.kind > SF_TIMER_FD ||
        (how.kind != SF_TIMER_FD && how.kind != SF_TIMER_SILENT && (how.signo < 1 || how.signo > (uint32_t)SIGRTMAX)))
        return EINVAL;
    if (p->num_alarms >= ALARMS_MAX)
        return EAGAIN;
    if (how.kind == SF_TIMER_FD && (fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return errno;
    a = get_memory(p->sim);
    a->proc = p;
    a->id = ++p->last_alarm;
    a->how = how;
    a->interval_ps = 0;
    a->fd = fd < 0 ? -1 : dup(fd);
    a->next = p->alarms;
    p->alarms = a;
    p->num_alarms++;
    c->fd = fd; /* sent to the process; closed after sending */
    call_put32(c, a->id);
    return 0;
}

int alarm_set_call(struct call *c)
{
    struct proc *p = c->p;
    struct sf_timer_set set, was;
    struct alarm *a;
    uint64_t from;

    memcpy(&set, c->body, sizeof set);
    a = *find_alarm(p, set.timer);
    if (!a)
        return EINVAL;
    from = max_u64(proc_time(p->sim, set.from_ps), sim_now(p->sim));
    was = (struct sf_timer_set){.timer = a->id, .interval_ps = a->interval_ps};
    if (evtimer_is_set(&a->end))
        was.left_ps = a->end.deadline_ps > from ? a->end.deadline_ps - from : 1;
    if (!set.only_look) {
        disarm(a);
        a->interval_ps = set.left_ps ? min_u64(set.interval_ps, CLOCK_HORIZON_PS) : 0;
        if (a->interval_ps && a->interval_ps < INTERVAL_MIN_PS)
            a->interval_ps = INTERVAL_MIN_PS;
        if (set.left_ps)
            arm_alarm(a, from + min_u64(set.left_ps, CLOCK_HORIZON_PS));
    }
    call_put(c, &was, sizeof was);
    return 0;
}

static void drop_alarm(struct alarm **at)
{
    struct alarm *a = *at;
    struct sim *s = a->proc->sim;

    disarm(a);
    if (a->fd >= 0)
        close(a->fd);
    *at = a->next;
    a->proc->num_alarms--;
    a->next = s->free_alarms;
    s->free_alarms = a;
}

int alarm_drop_call(struct call *c)
{
    struct alarm **at = find_alarm(c->p, call_arg(c, 0));

    if (!*at)
        return EINVAL;
    drop_alarm(at);
    return 0;
}

void alarms_proc_gone(struct proc *p)
{
    while (p->alarms)
        drop_alarm(&p->alarms);
}

void alarms_fini(struct sim *s)
{
    struct alarm *a;

    while ((a = s->free_alarms)) {
        s->free_alarms = a->next;
        free(a);
    }
}
