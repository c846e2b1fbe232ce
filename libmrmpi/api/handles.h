/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles to objects and back (handle.c): part of api.h. */
#ifndef MRMPI_API_HANDLES_H
#define MRMPI_API_HANDLES_H

#include "libmrmpi/api/enter.h"

struct api_slot {
    void *object;          /* NULL: free */
    int handle;            /* valid, if not free */
    int next_handle;       /* of the next object: another generation, so that a freed handle is detected */
    struct api_slot *next; /* free list */
    uint32_t refs;         /* how often the handle was given out */
};
struct api_table {
    struct api_slot **chunks, *free;
    uint32_t used, cap; /* slot 0 is never used */
    uint32_t live;      /* objects in the table */
};
enum { API_CHUNK_BITS = 10, API_CHUNK = 1 << API_CHUNK_BITS };
extern MR_OWN struct api_table api_tables[ABI_KINDS];

static inline void *api_find(enum abi_kind kind, int handle)
{
    const struct api_table *t = &api_tables[kind];
    uint32_t i = abi_handle_index(handle);
    if (unlikely(i >= t->used))
        return NULL;
    struct api_slot *s = &t->chunks[i >> API_CHUNK_BITS][i & (API_CHUNK - 1)];
    return likely(s->handle == handle) ? s->object : NULL;
}

static inline int api_slot_fill(struct api_table *t, struct api_slot *s, void *object)
{
    s->object = object;
    s->refs = 1;
    t->live++;
    return s->handle = s->next_handle;
}
static inline int api_handle_again(enum abi_kind kind, void *object) /* there is a free slot */
{
    struct api_table *t = &api_tables[kind];
    struct api_slot *s = t->free;
    t->free = s->next;
    return api_slot_fill(t, s, object);
}
int api_handle_new(enum abi_kind kind, void *object); /* 0: no memory or too many */
bool api_handle_free(enum abi_kind kind, int handle); /* true: that was the last use, the slot is free */
void api_handles_finalize(void);                      /* except the handles of objects that outlive the library's end */

/*
 * Gives an object its handle; without memory (object NULL: no object could be made) the object is put and MR_ERR_NO_MEM
 * returned.
 */
enum mr_err api_new_comm(struct mr_comm *c, MPI_Comm *h);
enum mr_err api_new_win(struct mr_win *w, MPI_Win *h);
enum mr_err api_new_request(struct mr_request *r, MPI_Request *h);
enum mr_err api_new_group(struct mr_group *g, MPI_Group *h);
enum mr_err api_new_type(struct mr_type *t, MPI_Datatype *h);
enum mr_err api_new_op(struct mr_op *op, MPI_Op *h);
enum mr_err api_new_info(struct mr_info *i, MPI_Info *h);
enum mr_err api_new_errhandler(struct mr_errhandler *e, MPI_Errhandler *h);
/*
 * argument: its name in the function's prototype (or an expression, as "*comm"), for the message. All checks have a
 * form *_named, and a macro that uses its argument as the name.
 */
enum mr_err api_bad_handle(enum mr_err err, const char *argument, const char *what, int handle, int null);

#define api_comm(h, c)  api_comm_named(h, c, #h)
#define api_type(h, t)  api_type_named(h, t, #h)
#define api_op(h, o)    api_op_named(h, o, #h)
#define api_group(h, g) api_group_named(h, g, #h)
#define api_info(h, i)  api_info_named(h, i, #h)
#define api_file(h, f)  api_file_named(h, f, #h)
#define api_hints(h)    api_hints_named(h, #h)

/* NULL: there is none of this handle. */
static inline struct mr_comm *api_known_comm(MPI_Comm h)
{
    if (likely(h == MPI_COMM_WORLD))
        return mr_comm_world;
    return h == MPI_COMM_SELF ? mr_comm_self : api_find(ABI_COMM, abi_number(h));
}

static inline enum mr_err api_comm_named(MPI_Comm h, struct mr_comm **c, const char *name)
{
    if (likely(h == MPI_COMM_WORLD))
        *c = mr_comm_world;
    else if (!(*c = api_known_comm(h)))
        return api_sure(api_bad_handle(MR_ERR_COMM, name, "communicator", abi_number(h), abi_number(MPI_COMM_NULL)));
    return MR_SUCCESS;
}

static inline enum mr_err api_type_named(MPI_Datatype h, struct mr_type **t, const char *name)
{
    if (unlikely(!(*t = abi_basic(h))) && !(*t = api_find(ABI_TYPE, abi_number(h))))
        return api_sure(api_bad_handle(MR_ERR_TYPE, name, "datatype", abi_number(h), abi_number(MPI_DATATYPE_NULL)));
    return MR_SUCCESS;
}

static inline enum mr_err api_op_named(MPI_Op h, struct mr_op **op, const char *name)
{
    if (unlikely(!(*op = abi_builtin_op(h))) && !(*op = api_find(ABI_OP, abi_number(h))))
        return api_sure(api_bad_handle(MR_ERR_OP, name, "operation", abi_number(h), abi_number(MPI_OP_NULL)));
    return MR_SUCCESS;
}

static inline enum mr_err api_group_named(MPI_Group h, struct mr_group **g, const char *name)
{
    if (h == MPI_GROUP_EMPTY)
        *g = &mr_group_empty;
    else if (!(*g = api_find(ABI_GROUP, abi_number(h))))
        return api_sure(api_bad_handle(MR_ERR_GROUP, name, "group", abi_number(h), abi_number(MPI_GROUP_NULL)));
    return MR_SUCCESS;
}

struct mr_request *api_done_request(MPI_Request h); /* done.h; NULL: there is no such record, or no memory */
static inline struct mr_request *api_find_request(MPI_Request h)
{
    struct mr_request *r = api_find(ABI_REQUEST, abi_number(h));
    return likely(r != NULL) ? r : api_done_request(h);
}

static inline enum mr_err api_request(MPI_Request h, struct mr_request **r)
{
    if (unlikely(!(*r = api_find_request(h))))
        return api_sure(
            api_bad_handle(MR_ERR_REQUEST, "request", "request", abi_number(h), abi_number(MPI_REQUEST_NULL)));
    return MR_SUCCESS;
}

static inline enum mr_err api_win(MPI_Win h, struct mr_win **w)
{
    if (unlikely(!(*w = api_find(ABI_WIN, abi_number(h)))))
        return api_sure(api_bad_handle(MR_ERR_WIN, "win", "window", abi_number(h), abi_number(MPI_WIN_NULL)));
    return MR_SUCCESS;
}

static inline MPI_File api_file_handle(const struct mr_file *f)
{
    return abi_handle(MPI_File, f->handle);
}

static inline enum mr_err api_file_named(MPI_File h, struct mr_file **f, const char *name)
{
    *f = (uintptr_t)h > UINT32_MAX ? NULL : api_find(ABI_FILE, abi_number(h));
    if (unlikely(!*f))
        return api_sure(api_bad_handle(MR_ERR_FILE, name, "file", abi_number(h), abi_number(MPI_FILE_NULL)));
    return MR_SUCCESS;
}

struct mr_info *api_info_env(void); /* MPI_INFO_ENV; NULL: no memory */

static inline enum mr_err api_info_named(MPI_Info h, struct mr_info **i, const char *name)
{
    if (!(*i = h == MPI_INFO_ENV ? api_info_env() : api_find(ABI_INFO, abi_number(h))))
        return api_sure(api_bad_handle(MR_ERR_INFO, name, "info object", abi_number(h), abi_number(MPI_INFO_NULL)));
    return MR_SUCCESS;
}

/* Hints, none of which is known; the handle must be valid, or none. */
static inline enum mr_err api_hints_named(MPI_Info h, const char *name)
{
    struct mr_info *i;
    return h == MPI_INFO_NULL ? MR_SUCCESS : api_info_named(h, &i, name);
}

static inline enum mr_err api_session(MPI_Session h, struct mr_session **s)
{
    if (unlikely(!(*s = api_find(ABI_SESSION, abi_number(h)))))
        return api_sure(
            api_bad_handle(MR_ERR_SESSION, "session", "session", abi_number(h), abi_number(MPI_SESSION_NULL)));
    return MR_SUCCESS;
}

enum mr_err api_errhandler(MPI_Errhandler h, struct mr_errhandler **e);
/* An error handler allowed for objects of this kind. */
enum mr_err api_errhandler_for(MPI_Errhandler h, enum mr_errhandler_of of, struct mr_errhandler **e);
enum mr_err api_new_user_errhandler(enum mr_errhandler_of of, mr_user_fn function, MPI_Errhandler *errhandler);
void api_replace_errhandler(struct mr_errhandler **at, struct mr_errhandler *by);
struct mr_errhandler *api_file_null_handler(void);           /* of MPI_FILE_NULL */
enum mr_err api_set_hints(struct mr_comm *c, MPI_Info info); /* these and no others; MPI_INFO_NULL: none */

#endif
