/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaches processes, with an arena, and frees all their objects when they go. */
#include "simfab/engine/client/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simfab/engine/base/event.h"
#include "simfab/engine/base/sim.h"
#include "simfab/engine/base/util.h"
#include "simfab/engine/client/destroy.h"
#include "simfab/engine/clock/alarm.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/clock/states.h"
#include "simfab/engine/clock/threads.h"
#include "simfab/engine/clock/tsc.h"
#include "simfab/engine/fabric/fabric.h"
#include "simfab/engine/hca/object.h"
#include "simfab/proto.h"

static int make_arena(struct proc *p)
{
    p->memfd = memfd_create("simfab-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (p->memfd < 0)
        return errno;
    /* sealed: the process cannot shrink the memory under the engine */
    if (ftruncate(p->memfd, ARENA_BYTES) || fcntl(p->memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return errno;
    p->arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, p->memfd, 0);
    if (p->arena == MAP_FAILED) {
        p->arena = NULL;
        return errno;
    }
    p->arena->magic = SF_MAGIC;
    p->arena->version = SF_VERSION;
    p->arena->now_ps = sim_now(p->sim);
    p->arena->port_events = p->sim->port_events;
    p->arena->engine_asleep = 1; /* the engine always wants the doorbell: it waits in epoll whenever actors run */
    p->ring_offset = p->arena->cmd_offset = (uint32_t)((sizeof *p->arena + 63) & ~63ull);
    p->arena->cmd_bytes = CMD_BYTES;
    arena_init(p);
    return 0;
}

/*
 * Simultaneous events of processes happen in the order of this list, which must not depend on the order of attachment.
 * Only processes of a host without a rank from a launcher are in the order of attachment.
 */
static bool attaches_before(const struct proc *a, const struct proc *b)
{
    if (a->host != b->host)
        return a->host->index < b->host->index;
    return a->rank < b->rank;
}

static void number_places(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_procs; i++)
        s->procs[i]->place = i + 1;
    evq_stand(&s->q, s->num_procs);
}

static void enlist(struct sim *s, struct proc *p)
{
    uint32_t i;

    if (s->num_procs == s->procs_cap) {
        s->procs_cap = s->procs_cap ? 2 * s->procs_cap : 16;
        s->procs = xrealloc(s->procs, s->procs_cap * sizeof *s->procs);
    }
    for (i = s->num_procs++; i > 0 && attaches_before(p, s->procs[i - 1]); i--)
        s->procs[i] = s->procs[i - 1];
    s->procs[i] = p;
    number_places(s);
    if (p->id >= s->by_id_cap) {
        s->by_id_cap = 2 * p->id + 64;
        s->proc_by_id = xrealloc(s->proc_by_id, s->by_id_cap * sizeof *s->proc_by_id);
    }
    s->proc_by_id[p->id] = p;
}

struct proc *proc_new(struct sim *s, struct host *host, pid_t pid, int sock, uint32_t rank)
{
    struct proc *p = xcalloc(1, sizeof *p);
    int err;

    sched_proc_new(s);
    p->sim = s;
    p->host = host;
    p->pid = p->mem_tid = pid;
    p->rank = rank;
    p->sock = sock;
    p->memfd = -1;
    p->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    err = p->bell < 0 ? errno : make_arena(p);
    if (err) {
        p->sock = -1;
        proc_free(p);
        errno = err;
        return NULL;
    }
    p->id = ++s->next_proc_id;
    enlist(s, p);
    sched_proc_added(p);
    return p;
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

void proc_free(struct proc *p)
{
    struct sim *s = p->sim;

    if (p->arena)
        tsc_note(p);
    alarms_proc_gone(p);
    objects_destroy_all(p);
    for (uint32_t i = 0; i < s->num_procs; i++)
        if (s->procs[i] == p) {
            memmove(s->procs + i, s->procs + i + 1, (s->num_procs - i - 1) * sizeof *s->procs);
            s->num_procs--;
            s->proc_by_id[p->id] = NULL;
            number_places(s);
            break;
        }
    for (uint32_t i = 0; i < p->actors_used; i++)
        thread_forget(&p->actors[i]);
    if (p->arena) {
        __atomic_store_n(&p->arena->engine_dead, 1, __ATOMIC_RELEASE);
        munmap(p->arena, ARENA_BYTES);
    }
    if (p->memfd >= 0)
        close(p->memfd);
    if (p->bell >= 0)
        close(p->bell);
    if (p->sock >= 0)
        close(p->sock);
    free(p->holes);
    free(p->objects);
    sched_proc_free(p);
}
