/* SPDX-License-Identifier: BSD-3-Clause */
/* Names the threads that stop time, with their activity from /proc and their last calls from their slots. */
#include "simfab/engine/clock/stuck.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/proto.h"

#define SAMPLE_NS                                                                                                      \
    1000000000ull /* real time between two looks at the threads; before the first most runs have ended                 \
                   */

static void read_word(pid_t pid, const char *file, char *buf, size_t cap)
{
    char path[64];
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, buf, cap - 1);
        close(fd);
    }
    buf[n > 0 ? n : 0] = 0;
    buf[strcspn(buf, "\n")] = 0;
}

/* Reads a thread's run time and its waits for a processor. Nothing if the kernel does not count them. */
static void read_times(pid_t pid, uint32_t tid, uint64_t *ran_ns, uint64_t *queued_ns)
{
    char file[64], text[128];

    snprintf(file, sizeof file, "task/%u/schedstat", tid);
    read_word(pid, file, text, sizeof text);
    if (sscanf(text, "%" SCNu64 " %" SCNu64, ran_ns, queued_ns) != 2)
        *ran_ns = *queued_ns = 0;
}

/* The letter of its state, as in proc(5); 0: it has ended. */
static char sample_thread(const struct actor *a, uint64_t now_ns, struct stuck_sample *now)
{
    const struct sf_actor *shared = &a->proc->arena->actor[a->index];
    uint64_t engine_ran, engine_queued;
    char file[64], stat[512];
    const char *paren;

    snprintf(file, sizeof file, "task/%u/stat", shared->tid);
    read_word(a->proc->pid, file, stat, sizeof stat);
    paren = strrchr(stat, ')'); /* skips the name, which may contain anything */
    *now = (struct stuck_sample){
        .at_ns = now_ns, .run = a->run, .calls = __atomic_load_n(&shared->calls, __ATOMIC_RELAXED)};
    read_times(a->proc->pid, shared->tid, &now->ran_ns, &now->queued_ns);
    read_times(getpid(), (uint32_t)getpid(), &engine_ran, &engine_queued);
    now->queued_ns += engine_queued;
    return paren && paren[1] == ' ' ? paren[2] : 0;
}

/* Describes why the actor is not idle. */
static const char *doing(char state, bool calls)
{
    if (!state)
        return "which has ended without a word";
    if (state == 'D')
        return "which waits for a disk or a page";
    if (calls)
        return "which calls verbs again and again without ever waiting for a completion";
    return "which computes without a call";
}

static void name(const struct actor *a, char state, bool calls)
{
    char program[64];

    read_word(a->proc->pid, "comm", program, sizeof program);
    engine_notice("virtual time has stood still for %" PRIu64 " s of the run of %s (pid %d, thread %u) on host %s, %s. "
                  "It goes on when that thread polls in vain, sleeps or ends, or is stopped by SIGSTOP",
                  a->stuck.own_ns / 1000000000, program[0] ? program : "a program", (int)a->proc->pid,
                  a->proc->arena->actor[a->index].tid, a->proc->host->name, doing(state, calls));
}

void stuck_moved(struct sim *s)
{
    s->stuck_since_ns = s->stuck_looked_ns = 0;
    s->rests++;
}

void stuck_look(struct sim *s, uint64_t now_ns)
{
    if (!s->stuck_since_ns)
        s->stuck_since_ns = s->stuck_looked_ns = now_ns;
    if (now_ns - s->stuck_looked_ns < SAMPLE_NS)
        return;
    s->stuck_looked_ns = now_ns;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];
            struct stuck_sample now;
            bool calls;
            char state;

            if (a->seen != SF_ACTOR_RUNNING || a->excluded)
                continue;
            state = sample_thread(a, now_ns, &now);
            if (stuck_add(&a->stuck, s->stuck_since_ns, &now, &calls))
                name(a, state, calls);
        }
}
