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
#include "simfab/engine/clock/proc.h"
#include "simfab/proto.h"

#define SPIN_CPU_NS 50000000ull /* processor time without a call before an actor is taken for a spinner */
/*
 * The same for a known spinner. On virtual machines a switch to the thread, an interrupt or a page may take tens of
 * microseconds, which are none of the thread's work: a spinner left out before it has looked at its memory is late.
 */
#define KNOWN_NS 150000ull

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

/* The letter of the state in an open stat file; 'X' if the thread is gone. u may be NULL. */
static char state_in(int fd, struct thread_usage *u)
{
    char buf[256], *paren, state = 0;
    ssize_t n = fd >= 0 ? pread(fd, buf, sizeof buf - 1, 0) : -1;
    unsigned long minor = 0, major = 0, kernel = 0;

    if (n <= 0)
        return 'X';
    buf[n] = 0;
    paren = strrchr(buf, ')'); /* skips the name, which may contain anything */
    if (paren)
        sscanf(paren + 1, " %c %*d %*d %*d %*d %*d %*u %lu %*u %lu %*u %*u %lu", &state, &minor, &major, &kernel);
    if (u)
        *u = (struct thread_usage){minor + major, kernel * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK))};
    return state ? state : 'X';
}

char thread_state(struct actor *a, struct thread_usage *u)
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

/* A known spinner needs microseconds; for others, tens of milliseconds by the kernel's tick are fine enough. */
bool thread_is_known(const struct actor *a)
{
    return a->spin_ns < SPIN_CPU_NS;
}

/*
 * Opens an exact counter of the thread's processor time, where the kernel allows performance events. The counter makes
 * each switch to the thread and back a microsecond longer.
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

/* Counts from an arbitrary moment, which changes when the counter is opened. 0: unknown. */
uint64_t thread_cpu_ns(struct actor *a)
{
    uint64_t ns = 0;

    if (a->cpu_fd == -1 && thread_is_known(a)) {
        open_counter(a);
        a->cpu_since_ns = 0;
    }
    if (a->cpu_fd >= 0)
        return read(a->cpu_fd, &ns, sizeof ns) == sizeof ns ? ns + 1 : 0;
    return thread_ran_ns(a);
}

/* How often the thread has got a processor. */
uint64_t thread_turns(const struct actor *a)
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

/* The thread spun until data landed: next time it is a known spinner. */
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

/* The thread was at work, not spinning. */
void thread_was_busy(struct actor *a)
{
    a->spin_ns = min_u64(a->spin_ns * 16, SPIN_CPU_NS);
}
