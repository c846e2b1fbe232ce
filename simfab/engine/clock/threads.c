/* SPDX-License-Identifier: BSD-3-Clause */
/* /proc/PID/task/TID: sleeping, running, and for how long. */
#include "simfab/engine/clock/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/internal.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/sched.h"
#include "simfab/engine/clock/stuck.h"
#include "simfab/proto.h"

#define DISK_NS  100000000ull /* a wait for a disk or a page is not left alone before */
#define FIRST_US 150          /* before the kernel is asked about running actors; */
/*
 * The same, while they are held: later than the kernel's next tick as a rule, so that no timer need be set for that,
 * which takes as long as a hand-over on virtual machines.
 */
#define TOGETHER_US 5000
#define AGAIN_US    1000        /* and then again; */
#define ASLEEP_US   20          /* where one was found asleep */
#define TURN_CALLS  2000u       /* so many calls in one turn, and others come first if there are any */
#define SPIN_CPU_NS 50000000ull /* processor time without a call after which an actor is taken for a spinner; */
/* the same, where most of it went into system calls: who makes long ones is at work */
#define KERNEL_CPU_NS 500000000ull
#define KNOWN_NS      50000ull /* one that has proved to be one before: for it all is quicker */
#define KNOWN_FIRST   20
#define KNOWN_AGAIN   40

void thread_forget(struct actor *a)
{
    if (a->stat_fd >= 0)
        close(a->stat_fd);
    if (a->cpu_fd >= 0)
        close(a->cpu_fd);
    a->stat_fd = a->cpu_fd = -1;
    a->stat_tid = 0;
}

void thread_init(struct actor *a)
{
    a->stat_fd = a->cpu_fd = -1;
    a->spin_ns = SPIN_CPU_NS;
}

struct usage {
    uint64_t faults, kernel_ns; /* page faults; processor time in the kernel, to a hundredth of a second */
};

/* The letter of the state in an open stat file; 'X' if the thread is gone. u may be NULL. */
static char state_in(int fd, struct usage *u)
{
    char buf[256], *paren, state = 0;
    ssize_t n = fd >= 0 ? pread(fd, buf, sizeof buf - 1, 0) : -1;
    unsigned long minor = 0, major = 0, kernel = 0;

    if (n <= 0)
        return 'X';
    buf[n] = 0;
    paren = strrchr(buf, ')'); /* the name before it may contain anything */
    if (paren)
        sscanf(paren + 1, " %c %*d %*d %*d %*d %*d %*u %lu %*u %lu %*u %*u %lu", &state, &minor, &major, &kernel);
    if (u)
        *u = (struct usage){minor + major, kernel * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK))};
    return state ? state : 'X';
}

static char thread_state(struct actor *a, struct usage *u)
{
    uint32_t tid = a->proc->arena->actor[a->index].tid;
    char path[64];

    if (tid != a->stat_tid)
        thread_forget(a);
    if (a->stat_fd < 0) {
        snprintf(path, sizeof path, "/proc/%d/task/%u/stat", (int)a->proc->pid, tid);
        a->stat_fd = open(path, O_RDONLY | O_CLOEXEC);
        a->stat_tid = tid;
    }
    return state_in(a->stat_fd, u);
}

pid_t thread_living(pid_t pid, pid_t other_than)
{
    char path[64];
    pid_t living = 0;
    struct dirent *e;
    DIR *d;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    d = opendir(path);
    while (d && !living && (e = readdir(d))) {
        char state;
        int fd;

        if (e->d_name[0] == '.' || strtol(e->d_name, NULL, 10) == other_than)
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/stat", (int)pid, e->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        state = state_in(fd, NULL);
        if (fd >= 0)
            close(fd);
        if (state != 'Z' && state != 'X')
            living = (pid_t)strtol(e->d_name, NULL, 10);
    }
    if (d)
        closedir(d);
    return living;
}

/* As a spinner: microseconds count. Of others tens of milliseconds do, for which the kernel's tick is fine enough. */
static bool is_known(const struct actor *a)
{
    return a->spin_ns < SPIN_CPU_NS;
}

/*
 * The counter of a thread's processor time that is right at any moment, where the kernel lets us have it. It makes each
 * switch to the thread and back a microsecond longer.
 */
static void open_counter(struct actor *a)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_TASK_CLOCK,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    pid_t tid = (pid_t)a->proc->arena->actor[a->index].tid;

    a->cpu_fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (a->cpu_fd < 0)
        a->cpu_fd = -2;
}

uint64_t thread_ran_ns(const struct actor *a)
{
    char path[64], buf[128];
    uint64_t ns = 0;
    ssize_t n;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/task/%u/schedstat", (int)a->proc->pid, a->proc->arena->actor[a->index].tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, buf, sizeof buf - 1);
    close(fd);
    if (n > 0) {
        buf[n] = 0;
        ns = strtoull(buf, NULL, 10);
    }
    return ns;
}

/* Since some moment, which is another one once the counter is there. 0: unknown. */
static uint64_t thread_cpu_ns(struct actor *a)
{
    uint64_t ns = 0;

    if (a->cpu_fd == -1 && is_known(a)) {
        open_counter(a);
        a->cpu_since_ns = 0;
    }
    if (a->cpu_fd >= 0)
        return read(a->cpu_fd, &ns, sizeof ns) == sizeof ns ? ns + 1 : 0;
    return thread_ran_ns(a);
}

/* How often the thread has got a processor. */
static uint64_t thread_turns(const struct actor *a)
{
    char path[64], buf[128];
    unsigned long long ran = 0, waited = 0, turns = 0;
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/task/%u/schedstat", (int)a->proc->pid, a->stat_tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, buf, sizeof buf - 1);
        close(fd);
    }
    if (n <= 0)
        return 0;
    buf[n] = 0;
    return sscanf(buf, "%llu %llu %llu", &ran, &waited, &turns) == 3 ? turns : 0;
}

/*
 * It sleeps, but perhaps for our answer to what it has just asked. The second time, when everything has been answered
 * and it has not run in between, it is for something else.
 */
static bool sleeps_still(struct actor *a)
{
    uint64_t turns = thread_turns(a);
    bool still = a->asleep && turns == a->asleep_turns;

    a->asleep = !still;
    a->asleep_turns = turns;
    return still;
}

/* Has it used so much processor time, without a call or new memory, that it must be waiting for memory to change? */
static bool seems_to_spin(struct actor *a, const struct usage *u)
{
    uint64_t cpu = thread_cpu_ns(a), used;

    if (!a->cpu_since_ns || a->faults != u->faults) { /* who gets at new memory is at work */
        a->cpu_since_ns = cpu;
        a->kernel_since_ns = u->kernel_ns;
    }
    a->faults = u->faults;
    used = cpu - a->cpu_since_ns;
    if (!cpu || used < a->spin_ns)
        return false;
    return is_known(a) || used >= KERNEL_CPU_NS || u->kernel_ns - a->kernel_since_ns < used / 2;
}

static void check(struct actor *a, uint64_t now)
{
    const struct sf_actor *shared = &a->proc->arena->actor[a->index];
    uint64_t calls = __atomic_load_n(&shared->calls, __ATOMIC_RELAXED);
    struct usage usage = {0};
    char state = thread_state(a, &usage);

    if (calls != a->calls_checked)
        a->asleep = false;
    if (__atomic_load_n(&shared->state, __ATOMIC_ACQUIRE) != SF_ACTOR_RUNNING)
        return; /* it has just told why not: the doorbell rings */
    if (calls != a->calls_checked || !a->waited_since_ns) {
        a->calls_checked = calls;
        a->waited_since_ns = now;
        a->cpu_since_ns = 0;
    }
    if (state == 'D' && now - a->waited_since_ns < DISK_NS)
        return;
    if (state != 'R') {
        if (!sleeps_still(a))
            return;
        a->spins = false;
    } else {
        a->asleep = false;
        if (!seems_to_spin(a, &usage))
            return;
        a->spins = true;
        a->proc->spinners++;
        a->proc->sim->spinners++;
    }
    a->excluded = true;
    a->calls = calls;
    __atomic_store_n(&a->proc->arena->actor[a->index].left_out, 1, __ATOMIC_RELEASE);
    actor_stops(a);
    sched_scan(a->proc); /* it may have unlocked something, and waits for another thread to take notice */
}

void thread_include(struct actor *a)
{
    if (a->excluded && a->spins) {
        a->proc->spinners--;
        a->proc->sim->spinners--;
    }
    if (a->excluded)
        __atomic_store_n(&a->proc->arena->actor[a->index].left_out, 0, __ATOMIC_RELAXED);
    a->excluded = false;
}

/* It spun as long as nothing landed, and no longer: next time we need not wait that long to know. */
void thread_called(struct actor *a)
{
    if (a->landed && !a->excluded) {
        a->spin_ns = KNOWN_NS;
        a->proc->sim->known_spinners = true;
    } else if (a->excluded && a->spins) {
        thread_was_busy(a);
    }
    a->landed = false;
}

/* It did not spin, it was at work. */
void thread_was_busy(struct actor *a)
{
    a->spin_ns = min_u64(a->spin_ns * 16, SPIN_CPU_NS);
}

int64_t threads_patience_us(struct sim *s, bool again)
{
    for (uint32_t i = 0; s->known_spinners && i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            const struct actor *a = &s->procs[i]->actors[n];

            if (a->seen == SF_ACTOR_RUNNING && !a->excluded && is_known(a))
                return again ? KNOWN_AGAIN : KNOWN_FIRST;
        }
    if (s->asleep)
        return ASLEEP_US;
    return again ? AGAIN_US : s->together ? TOGETHER_US : FIRST_US;
}

/*
 * One that calls again and again without waiting, perhaps for what another one of its host would do if it had its turn.
 */
static void end_long_turn(const struct actor *a)
{
    struct sf_actor *shared = &a->proc->arena->actor[a->index];

    if (actor_host(a)->in_turns && (actor_host(a)->waiting || a->proc->sim->sched->unsettled) &&
        __atomic_load_n(&shared->calls, __ATOMIC_RELAXED) - a->run_calls > TURN_CALLS)
        __atomic_store_n(&shared->left_out, 1, __ATOMIC_RELEASE);
}

void threads_check(struct sim *s)
{
    uint64_t now = real_ns();

    s->asleep = false;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->seen == SF_ACTOR_RUNNING && !a->excluded) {
                check(a, now);
                end_long_turn(a);
            }
            s->asleep |= a->asleep && a->seen == SF_ACTOR_RUNNING && !a->excluded;
        }
    if (s->running)
        stuck_look(s, now);
}
