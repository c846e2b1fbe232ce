/* SPDX-License-Identifier: BSD-3-Clause */
/* Naming those for whom time stands still: what /proc says about them, and what they have done for us meanwhile. */
#include "simfab/engine/stuck.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "simfab/engine/util.h"

#define STUCK_NS  30000000000ull   /* real time after which the first word is said */
#define RARELY_NS 1800000000000ull /* and at most so long until the next */

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

/* What keeps the actor from being idle. */
static const char *doing(const struct actor *a, uint64_t calls)
{
    char file[32], stat[512];
    const char *state;

    snprintf(file, sizeof file, "task/%u/stat", a->proc->arena->actor[a->index].tid);
    read_word(a->proc->pid, file, stat, sizeof stat);
    state = strrchr(stat, ')');
    if (!state)
        return "which has ended without a word";
    if (state[2] == 'D')
        return "which waits for a disk or a page";
    if (calls != a->stuck_calls)
        return "which calls verbs again and again without ever waiting for a completion";
    return "which computes without a call, or gets no processor";
}

static void name(struct actor *a, uint64_t seconds)
{
    uint64_t calls = __atomic_load_n(&a->proc->arena->actor[a->index].calls, __ATOMIC_RELAXED);
    char program[64];

    read_word(a->proc->pid, "comm", program, sizeof program);
    engine_notice("virtual time has stood still for %llu s: it waits for %s (pid %d, thread %u) on host %s, %s. It "
                  "goes on when that thread polls in vain, sleeps or ends, or is stopped by SIGSTOP",
                  (unsigned long long)seconds, program[0] ? program : "a program", (int)a->proc->pid,
                  a->proc->arena->actor[a->index].tid, a->proc->host->name, doing(a, calls));
    a->stuck_calls = calls;
}

void stuck_moved(struct sim *s)
{
    s->stuck_since_ns = s->stuck_told_ns = 0;
    s->rests++;
}

void stuck_look(struct sim *s, uint64_t now_ns)
{
    if (!s->stuck_since_ns)
        s->stuck_since_ns = now_ns;
    if (now_ns - s->stuck_since_ns < STUCK_NS)
        return;
    if (s->stuck_told_ns && now_ns - s->stuck_told_ns < min_u64(s->stuck_told_ns - s->stuck_since_ns, RARELY_NS))
        return;
    s->stuck_told_ns = now_ns;
    for (uint32_t i = 0; i < s->num_procs; i++)
        for (uint32_t n = 0; n < s->procs[i]->actors_used; n++) {
            struct actor *a = &s->procs[i]->actors[n];

            if (a->seen == SF_ACTOR_RUNNING && !a->excluded)
                name(a, (now_ns - s->stuck_since_ns) / 1000000000);
        }
}
