/* SPDX-License-Identifier: BSD-3-Clause */
/* The arena of a process, and its table of objects. */
#include "simfab/engine/hca/object.h"

#include <stdlib.h>
#include <string.h>

#include "simfab/engine/base/util.h"
#include "simfab/engine/clock/proc.h"
#include "simfab/engine/hca/hca.h"

static uint32_t align_arena(uint64_t bytes)
{
    return (uint32_t)((bytes + 63) & ~63ull);
}

/* ---- the arena's room ------------------------------------------------------------------------------------------ */

void arena_init(struct proc *p)
{
    p->holes_cap = 16;
    p->holes = xcalloc(p->holes_cap, sizeof *p->holes);
    p->holes[0].offset = p->ring_offset + CMD_BYTES;
    p->holes[0].bytes = ARENA_BYTES - p->holes[0].offset;
    p->num_holes = 1;
}

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
