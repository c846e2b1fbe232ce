/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of a process: contexts of adapters, and objects made in them. An object belongs to its process (struct
 * object is the first member) and to the adapter of its context. Completion queues have their rings in the arena,
 * memory shared by the process and the engine.
 */
#ifndef SIMFAB_OBJECT_H
#define SIMFAB_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "simfab/engine/hca/event_pipe.h"

struct hca;
struct proc;

#define ARENA_BYTES (256u << 20) /* of address space: pages come at the first touch */
#define CMD_BYTES   (1u << 20)

enum object_kind { OBJ_CTX = 1, OBJ_PD, OBJ_MR, OBJ_CHANNEL, OBJ_CQ, OBJ_SRQ, OBJ_QP, OBJ_AH, OBJ_MW };
#define OBJECT_KINDS (OBJ_MW + 1)

struct object {
    enum object_kind kind;
    uint32_t handle;
    uint32_t uses; /* uses by other objects: cannot be destroyed before them */
    struct proc *proc;
    struct ctx *ctx;
};

struct ctx {
    struct object obj;
    struct hca *hca;
    struct event_pipe events;
    struct ctx *next; /* of the HCA */
    bool lost;        /* the HCA has been without power since it was opened: its queue pairs are gone */
};

struct pd {
    struct object obj;
};

/* The room of a process's arena: all behind its command ring. */
void arena_init(struct proc *p);
/* A piece of the arena with any content, at this offset; 0 when there is no room. */
uint32_t arena_alloc(struct proc *p, uint32_t bytes);
void arena_free(struct proc *p, uint32_t offset, uint32_t bytes);

uint32_t object_add(struct proc *p, struct ctx *ctx, enum object_kind kind, struct object *o);
void object_remove(struct object *o);
void *object_find(const struct proc *p, uint32_t handle, enum object_kind kind);

#endif
