/* SPDX-License-Identifier: BSD-3-Clause */
/* An attached process: its arena, its table of objects, and taking all of it down when it goes. */
#include "simfab/engine/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "simfab/engine/alarm.h"
#include "simfab/engine/threads.h"
#include "simfab/engine/tsc.h"
#include "simfab/engine/util.h"

static uint32_t align_arena(uint64_t bytes)
{
    return (uint32_t)((bytes + 63) & ~63ull);
}

static int make_arena(struct proc *p)
{
    p->memfd = memfd_create("simfab-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (p->memfd < 0)
        return errno;
    /* sealed, so that the process cannot take away pages that the engine is about to touch */
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
    p->ring_offset = p->arena->cmd_offset = align_arena(sizeof *p->arena);
    p->arena->cmd_bytes = CMD_BYTES;
    p->holes_cap = 16;
    p->holes = xcalloc(p->holes_cap, sizeof *p->holes);
    p->holes[0].offset = p->ring_offset + CMD_BYTES;
    p->holes[0].bytes = ARENA_BYTES - p->holes[0].offset;
    p->num_holes = 1;
    return 0;
}

/*
 * What happens at the same virtual time happens in the order of this list, so that it must not depend on who attached
 * first: processes of a host that no launcher numbers are the only ones for which it does.
 */
static bool goes_before(const struct proc *a, const struct proc *b)
{
    if (a->host != b->host)
        return a->host->index < b->host->index;
    return a->rank < b->rank;
}

static void enlist(struct sim *s, struct proc *p)
{
    uint32_t i;

    if (s->num_procs == s->procs_cap) {
        s->procs_cap = s->procs_cap ? 2 * s->procs_cap : 16;
        s->procs = xrealloc(s->procs, s->procs_cap * sizeof *s->procs);
    }
    for (i = s->num_procs++; i > 0 && goes_before(p, s->procs[i - 1]); i--)
        s->procs[i] = s->procs[i - 1];
    s->procs[i] = p;
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

/* ---- the arena's room ------------------------------------------------------------------------------------------ */

uint32_t arena_alloc(struct proc *p, uint32_t bytes)
{
    bytes = align_arena(bytes);
    for (uint32_t i = 0; i < p->num_holes; i++) {
        struct extent *h = &p->holes[i];
        uint32_t offset = h->offset;

        if (h->bytes < bytes)
            continue;
        h->offset += bytes;
        h->bytes -= bytes;
        memset((uint8_t *)p->arena + offset, 0, bytes);
        return offset;
    }
    return 0;
}

void arena_free(struct proc *p, uint32_t offset, uint32_t bytes)
{
    uint32_t i = 0;

    bytes = align_arena(bytes);
    while (i < p->num_holes && p->holes[i].offset < offset)
        i++;
    if (i > 0 && p->holes[i - 1].offset + p->holes[i - 1].bytes == offset) {
        p->holes[--i].bytes += bytes;
    } else {
        if (p->num_holes == p->holes_cap) {
            p->holes_cap *= 2;
            p->holes = xrealloc(p->holes, p->holes_cap * sizeof *p->holes);
        }
        memmove(p->holes + i + 1, p->holes + i, (p->num_holes - i) * sizeof *p->holes);
        p->holes[i] = (struct extent){offset, bytes};
        p->num_holes++;
    }
    if (i + 1 < p->num_holes && p->holes[i].offset + p->holes[i].bytes == p->holes[i + 1].offset) {
        p->holes[i].bytes += p->holes[i + 1].bytes;
        p->num_holes--;
        memmove(p->holes + i + 1, p->holes + i + 2, (p->num_holes - i - 1) * sizeof *p->holes);
    }
}

/* ---- objects --------------------------------------------------------------------------------------------------- */

uint32_t object_add(struct proc *p, struct ctx *ctx, enum object_kind kind, struct object *o)
{
    uint32_t i = p->free_hint;

    while (i < p->num_objects && p->objects[i])
        i++;
    if (i == p->num_objects) {
        p->num_objects = i ? 2 * i : 64;
        p->objects = xrealloc(p->objects, p->num_objects * sizeof *p->objects);
        memset(p->objects + i, 0, (p->num_objects - i) * sizeof *p->objects);
    }
    p->objects[i] = o;
    p->free_hint = i + 1;
    o->kind = kind;
    o->handle = i + 1;
    o->proc = p;
    o->ctx = ctx;
    if (ctx) {
        ctx->obj.uses++;
        ctx->hca->objects[kind]++;
    }
    return o->handle;
}

void object_remove(struct object *o)
{
    struct proc *p = o->proc;

    p->objects[o->handle - 1] = NULL;
    if (o->handle - 1 < p->free_hint)
        p->free_hint = o->handle - 1;
    if (o->ctx) {
        o->ctx->obj.uses--;
        o->ctx->hca->objects[o->kind]--;
    }
}

void *object_find(const struct proc *p, uint32_t handle, enum object_kind kind)
{
    struct object *o = handle && handle <= p->num_objects ? p->objects[handle - 1] : NULL;

    return o && o->kind == kind ? o : NULL;
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

static void destroy_kind(struct proc *p, enum object_kind kind, const struct ctx *ctx)
{
    for (uint32_t i = 0; i < p->num_objects; i++)
        if (p->objects[i] && p->objects[i]->kind == kind && (!ctx || p->objects[i]->ctx == ctx))
            object_destroy(p->objects[i]);
}

void objects_destroy(struct proc *p, const struct ctx *ctx)
{
    static const enum object_kind order[] = {OBJ_QP, OBJ_AH, OBJ_MW, OBJ_SRQ, OBJ_CQ, OBJ_CHANNEL, OBJ_MR, OBJ_PD};

    for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
        destroy_kind(p, order[i], ctx);
}

void proc_free(struct proc *p)
{
    struct sim *s = p->sim;

    if (p->arena)
        tsc_note(p);
    alarms_proc_gone(p);
    objects_destroy(p, NULL);
    destroy_kind(p, OBJ_CTX, NULL);
    for (uint32_t i = 0; i < s->num_procs; i++)
        if (s->procs[i] == p) {
            memmove(s->procs + i, s->procs + i + 1, (s->num_procs - i - 1) * sizeof *s->procs);
            s->num_procs--;
            s->proc_by_id[p->id] = NULL;
            break;
        }
    for (uint32_t i = 0; i < SF_ACTORS_MAX; i++)
        if (p->actors[i].proc)
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
