/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles made at run time: a table of slots per kind of object. Freed slots are used again with the next generation,
 * so a handle used after its object was freed is detected (until the generation wraps around).
 */
#include "libmrmpi/api/api.h"

#include <stdlib.h>
#include <string.h>

struct api_table api_tables[ABI_KINDS];

static struct api_slot *slot(struct api_table *t, uint32_t i)
{
    return &t->chunks[i >> API_CHUNK_BITS][i & (API_CHUNK - 1)];
}

static bool grow_handles(struct api_table *t)
{
    if (t->cap >= ABI_INDEX_MAX)
        return false;
    uint32_t n = t->cap >> API_CHUNK_BITS;
    struct api_slot **chunks = realloc(t->chunks, (n + 1) * sizeof(*chunks));
    if (!chunks)
        return false;
    t->chunks = chunks;
    if (!(chunks[n] = calloc(API_CHUNK, sizeof(struct api_slot))))
        return false;
    t->cap += API_CHUNK;
    if (t->used == 0)
        t->used = 1; /* slot 0 stays empty: no handle ends with 0 */
    return true;
}

/* A fresh slot; NULL: no memory, or too many. */
static struct api_slot *first_use(enum abi_kind kind)
{
    struct api_table *t = &api_tables[kind];
    if (t->used == t->cap && !grow_handles(t))
        return NULL;
    struct api_slot *s = slot(t, t->used);
    s->next_handle = abi_handle_first(kind, t->used++);
    return s;
}

int api_handle_new(enum abi_kind kind, void *object)
{
    struct api_table *t = &api_tables[kind];
    struct api_slot *s;
    if (t->free)
        return api_handle_again(kind, object);
    s = first_use(kind);
    return s ? api_slot_fill(t, s, object) : 0;
}

bool api_handle_free(enum abi_kind kind, int handle)
{
    struct api_table *t = &api_tables[kind];
    struct api_slot *s = slot(t, abi_handle_index(handle));
    if (--s->refs)
        return false;
    t->live--;
    s->object = NULL;
    s->handle = 0;
    s->next_handle = abi_handle_next(handle);
    s->next = t->free;
    t->free = s;
    return true;
}

void api_handles_finalize(void)
{
    for (int k = 0; k < ABI_KINDS; k++) {
        struct api_table *t = &api_tables[k];
        if (t->live && (k == ABI_INFO || k == ABI_ERRHANDLER))
            continue;
        for (uint32_t n = 0; n < t->cap >> API_CHUNK_BITS; n++)
            free(t->chunks[n]);
        free(t->chunks);
        *t = (struct api_table){0};
    }
}

enum mr_err api_bad_handle(enum mr_err err, const char *argument, const char *what, int handle, int null)
{
    argument += *argument == '*';
    if (handle == null)
        return mr_fail(err, "%s is the null handle of a %s", argument, what);
    return mr_fail(err, "%s 0x%08x is not a valid %s: never made, or freed already", argument, (unsigned)handle, what);
}

static enum mr_err no_handle(const char *what)
{
    return mr_fail(MR_ERR_NO_MEM, "no memory for a new %s, or more than %d of them", what, ABI_INDEX_MAX);
}

static bool builtin_handle(int handle)
{
    return handle && (unsigned)handle >> 30 != 3;
}

/* An object with a handle (a group or error handler requested twice) keeps the handle, with one more use. */
static int handle_for(enum abi_kind kind, int known, void *object)
{
    if (!known)
        return api_handle_new(kind, object);
    if (!builtin_handle(known))
        slot(&api_tables[kind], abi_handle_index(known))->refs++;
    return known;
}

#define NEW(name, kind, htype, null, what)                                                                             \
    static __attribute__((noinline)) enum mr_err name##_handle(struct mr_##name *object, htype *h)                     \
    {                                                                                                                  \
        const int n = object ? handle_for(kind, object->handle, object) : 0;                                           \
        if (n) {                                                                                                       \
            object->handle = n;                                                                                        \
            *h = abi_handle(htype, n);                                                                                 \
            return MR_SUCCESS;                                                                                         \
        }                                                                                                              \
        if (object)                                                                                                    \
            mr_##name##_put(object);                                                                                   \
        *h = null;                                                                                                     \
        return no_handle(what);                                                                                        \
    }                                                                                                                  \
    enum mr_err api_new_##name(struct mr_##name *object, htype *h)                                                     \
    {                                                                                                                  \
        if (unlikely(!object || object->handle || !api_tables[kind].free))                                             \
            return name##_handle(object, h);                                                                           \
        object->handle = api_handle_again(kind, object);                                                               \
        *h = abi_handle(htype, object->handle);                                                                        \
        return MR_SUCCESS;                                                                                             \
    }
NEW(type, ABI_TYPE, MPI_Datatype, MPI_DATATYPE_NULL, "datatype")
NEW(op, ABI_OP, MPI_Op, MPI_OP_NULL, "operation")
NEW(info, ABI_INFO, MPI_Info, MPI_INFO_NULL, "info object")
NEW(win, ABI_WIN, MPI_Win, MPI_WIN_NULL, "window")
NEW(comm, ABI_COMM, MPI_Comm, MPI_COMM_NULL, "communicator")
NEW(request, ABI_REQUEST, MPI_Request, MPI_REQUEST_NULL, "request")
NEW(group, ABI_GROUP, MPI_Group, MPI_GROUP_NULL, "group")
NEW(errhandler, ABI_ERRHANDLER, MPI_Errhandler, MPI_ERRHANDLER_NULL, "error handler")
