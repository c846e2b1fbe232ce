/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every file of api/ is written with: defining an MPI function with its PMPI twin, the lock, handles to objects
 * and back, argument checks, and the way out through the error handler. The shape of a function:
 *
 *     MPI_FN(int, Thing, (MPI_Comm comm, int n))
 *     {
 *         struct mr_comm *c = NULL;
 *         API_ENTER();
 *         CHECK(api_comm(comm, &c));
 *         err = mr_thing(c, n);
 *         API_LEAVE(c);      // the label `out`, the unlock, and the error handler of c (the world's if NULL)
 *     }
 */
#ifndef MRMPI_API_H
#define MRMPI_API_H

#include "libmrmpi/api/abi_mpich.h"
#include "libmrmpi/base/base.h"
#include "libmrmpi/base/idioms.h"
#include "libmrmpi/base/lock.h"

#include <limits.h>

#define MPI_FN(type, name, args)                                                                                       \
    type MPI_##name args __attribute__((weak, alias("PMPI_" #name)));                                                  \
    type PMPI_##name args

#define MPIX_FN(type, name, args)                                                                                      \
    type MPIX_##name args __attribute__((weak, alias("PMPIX_" #name)));                                                \
    type PMPIX_##name args

/*
 * Functions with counts exist twice since MPI-4 (section 2.5.8): MPI_Name, and MPI_Name_c with wider ones. They live in
 * files of their own that are compiled twice, X.c as it is and X_large.c, which defines API_LARGE and includes it.
 * There api_count is what the standard calls int and MPI_Count, api_displ int and MPI_Aint. What has no counts does not
 * belong into such a file.
 */
#ifdef API_LARGE
typedef MPI_Count api_count;
typedef MPI_Aint api_displ;
#define API_COUNT_MAX                  ((uint64_t)INT64_MAX)
#define API_WIDE                       true /* for struct mr_vec */
#define MPI_COUNT_FN(type, name, args) MPI_FN(type, name##_c, args)
#define API_NAME(name)                 "MPI_" #name "_c"
#else
typedef int api_count;
typedef int api_displ;
#define API_COUNT_MAX                  ((uint64_t)INT_MAX)
#define API_WIDE                       false
#define MPI_COUNT_FN(type, name, args) MPI_FN(type, name, args)
#define API_NAME(name)                 "MPI_" #name
#endif

/* A count for the user; MPI_UNDEFINED if it does not fit. */
static inline api_count api_count_of(uint64_t n)
{
    return n > API_COUNT_MAX ? MPI_UNDEFINED : (api_count)n;
}

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- entering and leaving ---- */

/* In a callback of the user's (operation, attribute function) the lock is already held: MPI calls from there do not
 * take it. */
extern _Thread_local int api_in_callback;

static inline void api_lock(void)
{
    if (unlikely(mr_threaded) && !api_in_callback)
        mr_lock();
}

static inline void api_unlock(void)
{
    if (unlikely(mr_threaded) && !api_in_callback)
        mr_unlock();
}

/* The library runs, and only one thread calls it: nothing is to be done before a function's work, or after. */
extern bool api_plain __attribute__((visibility("hidden")));
_Noreturn void api_not_running(const char *function);
void api_enter(const char *function); /* where that is not so: takes the lock, or ends the program */
/* Unlocks, calls the error handler of c, returns what the MPI function returns. */
int api_fail(struct mr_comm *c, enum mr_err err, const char *function);
/* The same for an object with a handler of its own, which the handler is called with; `h` is kept meanwhile. */
int api_fail_with(struct mr_errhandler *h, const void *object, enum mr_err err, const char *function);

#define API_ENTER()                                                                                                    \
    enum mr_err err = MR_SUCCESS;                                                                                      \
    if (unlikely(!api_plain))                                                                                          \
    api_enter(__func__ + 1)

#define API_LEAVE(comm)                                                                                                \
    goto out;                                                                                                          \
    out:                                                                                                               \
    if (unlikely(err))                                                                                                 \
        return api_fail(comm, err, __func__ + 1);                                                                      \
    if (unlikely(!api_plain))                                                                                          \
        api_unlock();                                                                                                  \
    return MPI_SUCCESS

/*
 * A short function of a communicator (its parameter comm) that is called often. What is behind this macro is its work:
 * it returns an error. Locking is in a function of its own, so that where nothing is to be done before the work no
 * argument is kept for the time after.
 */
#define MPI_SHORT_FN(name, params, args)                                                                               \
    static inline __attribute__((always_inline)) enum mr_err name##_work params;                                       \
    static __attribute__((noinline)) int name##_guarded params                                                         \
    {                                                                                                                  \
        enum mr_err err;                                                                                               \
        api_enter(API_NAME(name));                                                                                     \
        err = name##_work args;                                                                                        \
        if (unlikely(err))                                                                                             \
            return api_fail(api_known_comm(comm), err, API_NAME(name));                                                \
        api_unlock();                                                                                                  \
        return MPI_SUCCESS;                                                                                            \
    }                                                                                                                  \
    MPI_COUNT_FN(int, name, params)                                                                                    \
    {                                                                                                                  \
        enum mr_err err;                                                                                               \
        if (unlikely(!api_plain))                                                                                      \
            return name##_guarded args;                                                                                \
        err = name##_work args;                                                                                        \
        return likely(!err) ? MPI_SUCCESS : api_fail(api_known_comm(comm), err, API_NAME(name));                       \
    }                                                                                                                  \
    static inline enum mr_err name##_work params

/*
 * Functions that are allowed at any time, before initialization and after finalization too, and in several threads then
 * (MPI-4.0 section 11.4.1): info objects, error handlers, classes and codes, sessions.
 */
bool api_enter_any(void); /* true: it was the lock for the time without the library's own */
int api_fail_any(bool any, enum mr_err err, const char *function);
void api_leave_any(bool any);

#define API_ENTER_ANY()                                                                                                \
    enum mr_err err = MR_SUCCESS;                                                                                      \
    bool any_ = api_enter_any()

#define API_LEAVE_ANY()                                                                                                \
    goto out;                                                                                                          \
    out:                                                                                                               \
    if (unlikely(err))                                                                                                 \
        return api_fail_any(any_, err, __func__ + 1);                                                                  \
    api_leave_any(any_);                                                                                               \
    return MPI_SUCCESS

#define CHECK(expr)                                                                                                    \
    do {                                                                                                               \
        err = (expr);                                                                                                  \
        if (unlikely(err))                                                                                             \
            goto out;                                                                                                  \
    } while (0)

/* What a check returns that has failed: an error. Where it is found nothing is kept for the time after. */
static inline enum mr_err api_sure(enum mr_err err)
{
    if (!err)
        __builtin_unreachable();
    return err;
}

/* ---- handles (handle.c) ---- */

struct api_slot {
    void *object;          /* NULL: free */
    int handle;            /* valid one, if not free */
    int next_handle;       /* of the next object: another generation, so that a freed handle is recognised */
    struct api_slot *next; /* free list */
    uint32_t refs;         /* how often the handle was given out */
};
struct api_table {
    struct api_slot **chunks, *free;
    uint32_t used, cap; /* slot 0 is never used */
    uint32_t live;      /* objects in it */
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
void api_handles_finalize(void);                      /* but those of objects that outlive the library's end */

/* Give an object its handle; without memory (object NULL: it could not be made) the object is put and MR_ERR_NO_MEM
 * returned. */
enum mr_err api_new_comm(struct mr_comm *c, MPI_Comm *h);
enum mr_err api_new_request(struct mr_request *r, MPI_Request *h);
enum mr_err api_new_group(struct mr_group *g, MPI_Group *h);
enum mr_err api_new_type(struct mr_type *t, MPI_Datatype *h);
enum mr_err api_new_op(struct mr_op *op, MPI_Op *h);
enum mr_err api_new_info(struct mr_info *i, MPI_Info *h);
enum mr_err api_new_errhandler(struct mr_errhandler *e, MPI_Errhandler *h);
/* argument: its name in the function's prototype (or an expression with it, as "*comm"), which the message tells. So in
 * all checks: each has a form *_named, and a macro that takes for the name what it is called with. */
enum mr_err api_bad_handle(enum mr_err err, const char *argument, const char *what, int handle, int null);

#define api_comm(h, c)  api_comm_named(h, c, #h)
#define api_type(h, t)  api_type_named(h, t, #h)
#define api_op(h, o)    api_op_named(h, o, #h)
#define api_group(h, g) api_group_named(h, g, #h)
#define api_info(h, i)  api_info_named(h, i, #h)
#define api_hints(h)    api_hints_named(h, #h)

/* NULL: there is none of this handle. */
static inline struct mr_comm *api_known_comm(MPI_Comm h)
{
    if (likely(h == MPI_COMM_WORLD))
        return mr_comm_world;
    return h == MPI_COMM_SELF ? mr_comm_self : api_find(ABI_COMM, h);
}

static inline enum mr_err api_comm_named(MPI_Comm h, struct mr_comm **c, const char *name)
{
    if (likely(h == MPI_COMM_WORLD))
        *c = mr_comm_world;
    else if (!(*c = api_known_comm(h)))
        return api_sure(api_bad_handle(MR_ERR_COMM, name, "communicator", h, MPI_COMM_NULL));
    return MR_SUCCESS;
}

static inline enum mr_err api_type_named(MPI_Datatype h, struct mr_type **t, const char *name)
{
    if (unlikely(!(*t = abi_basic(h))) && !(*t = api_find(ABI_TYPE, h)))
        return api_sure(api_bad_handle(MR_ERR_TYPE, name, "datatype", h, MPI_DATATYPE_NULL));
    return MR_SUCCESS;
}

static inline enum mr_err api_op_named(MPI_Op h, struct mr_op **op, const char *name)
{
    if (unlikely(!(*op = abi_builtin_op(h))) && !(*op = api_find(ABI_OP, h)))
        return api_sure(api_bad_handle(MR_ERR_OP, name, "operation", h, MPI_OP_NULL));
    return MR_SUCCESS;
}

static inline enum mr_err api_group_named(MPI_Group h, struct mr_group **g, const char *name)
{
    if (h == MPI_GROUP_EMPTY)
        *g = &mr_group_empty;
    else if (!(*g = api_find(ABI_GROUP, h)))
        return api_sure(api_bad_handle(MR_ERR_GROUP, name, "group", h, MPI_GROUP_NULL));
    return MR_SUCCESS;
}

static inline enum mr_err api_request(MPI_Request h, struct mr_request **r)
{
    if (unlikely(!(*r = api_find(ABI_REQUEST, h))))
        return api_sure(api_bad_handle(MR_ERR_REQUEST, "request", "request", h, MPI_REQUEST_NULL));
    return MR_SUCCESS;
}

struct mr_info *api_info_env(void); /* MPI_INFO_ENV; NULL: no memory */

static inline enum mr_err api_info_named(MPI_Info h, struct mr_info **i, const char *name)
{
    if (!(*i = h == MPI_INFO_ENV ? api_info_env() : api_find(ABI_INFO, h)))
        return api_sure(api_bad_handle(MR_ERR_INFO, name, "info object", h, MPI_INFO_NULL));
    return MR_SUCCESS;
}

/* Hints of which none is known; but the handle must be one, or none. */
static inline enum mr_err api_hints_named(MPI_Info h, const char *name)
{
    struct mr_info *i;
    return h == MPI_INFO_NULL ? MR_SUCCESS : api_info_named(h, &i, name);
}

enum mr_err api_errhandler(MPI_Errhandler h, struct mr_errhandler **e);
/* One that objects of this kind may have. */
enum mr_err api_errhandler_for(MPI_Errhandler h, enum mr_errhandler_of of, struct mr_errhandler **e);
enum mr_err api_new_user_errhandler(enum mr_errhandler_of of, mr_user_fn function, MPI_Errhandler *errhandler);
void api_replace_errhandler(struct mr_errhandler **at, struct mr_errhandler *by);
int api_call_errhandler(struct mr_errhandler *h, const void *object, int code, const char *function);
enum mr_err api_set_hints(struct mr_comm *c, MPI_Info info); /* these and no others; MPI_INFO_NULL: none */

/* ---- arguments ---- */

enum mr_err api_bad_count(long count, const char *name);
enum mr_err api_bad_type(const struct mr_type *t, const char *name);
enum mr_err api_bad_buffer(const void *buf, int64_t count, const char *name, const char *count_name);
enum mr_err api_bad_rank(const struct mr_comm *c, int rank, bool receive, const char *name);
enum mr_err api_bad_tag(int tag, const char *name);
enum mr_err api_null(const char *name);
int api_null_ever(const char *name, const char *function); /* what the function returns */
/* An operation, and whether it may be applied to t (op.c). */
enum mr_err api_op_on(MPI_Op op, struct mr_op **o, const struct mr_type *t);

enum mr_err api_intra(const struct mr_comm *c); /* an error if c is an intercommunicator */
enum mr_err api_inter(const struct mr_comm *c); /* an error if it is none */

#define api_buffer(buf, count, t) api_buffer_named(buf, count, t, #buf, #count, "datatype")
#define api_dest(c, rank, tag)    api_dest_named(c, rank, tag, #rank, #tag)
#define api_source(c, rank, tag)  api_source_named(c, rank, tag, #rank, #tag)

/* A null pointer, or MPI_IN_PLACE: (void *)-1. */
static inline bool api_no_address(const void *buf)
{
    return (uintptr_t)buf + 1 <= 1;
}

/* A buffer of count elements. A null pointer is fine for nothing, and for types that carry addresses. */
static inline enum mr_err api_buffer_named(const void *buf, int64_t count, const struct mr_type *t, const char *name,
                                           const char *count_name, const char *type_name)
{
    if (unlikely(count < 0) && mr_config.check_args)
        return api_sure(api_bad_count(count, count_name));
    if (unlikely(!t->committed) && mr_config.check_args)
        return api_sure(api_bad_type(t, type_name));
    if (unlikely(api_no_address(buf)) && count && (buf || (t->size && t->builtin)) && mr_config.check_args)
        return api_sure(api_bad_buffer(buf, count, name, count_name));
    return MR_SUCCESS;
}

/* All bytes from the first of the data to the last are data. */
static inline bool api_solid(const struct mr_type *t, size_t count)
{
    return t->contiguous || (count == 1 && t->size == (size_t)t->true_extent);
}

/*
 * Whether two buffers that have to be disjoint surely overlap: their data begins at the same byte, or neither has gaps
 * and one begins within the other. What lies in the gaps of the other's type is allowed.
 */
static inline bool api_overlap(const void *a, size_t acount, const struct mr_type *at, const void *b, size_t bcount,
                               const struct mr_type *bt)
{
    size_t abytes = acount * at->size, bbytes = bcount * bt->size;
    if (!abytes || !bbytes || !mr_config.check_args)
        return false;
    uintptr_t x = (uintptr_t)a + (uintptr_t)at->true_lb, y = (uintptr_t)b + (uintptr_t)bt->true_lb;
    if (x == y)
        return true;
    return (x < y ? y - x < abytes : x - y < bbytes) && api_solid(at, acount) && api_solid(bt, bcount);
}

static inline enum mr_err api_dest_named(const struct mr_comm *c, int rank, int tag, const char *name,
                                         const char *tag_name)
{
    if (unlikely((unsigned)rank >= (unsigned)c->num_peers) && rank != MPI_PROC_NULL && mr_config.check_args)
        return api_sure(api_bad_rank(c, rank, false, name));
    if (unlikely(tag < 0 || tag > MR_TAG_UB) && mr_config.check_args)
        return api_sure(api_bad_tag(tag, tag_name));
    return MR_SUCCESS;
}

static inline enum mr_err api_source_named(const struct mr_comm *c, int rank, int tag, const char *name,
                                           const char *tag_name)
{
    if (unlikely((unsigned)rank >= (unsigned)c->num_peers) && rank != MPI_PROC_NULL && rank != MPI_ANY_SOURCE &&
        mr_config.check_args)
        return api_sure(api_bad_rank(c, rank, true, name));
    if (unlikely((tag < 0 || tag > MR_TAG_UB) && tag != MPI_ANY_TAG) && mr_config.check_args)
        return api_sure(api_bad_tag(tag, tag_name));
    return MR_SUCCESS;
}

#define NOT_NULL(p)                                                                                                    \
    do {                                                                                                               \
        if (unlikely(!(p)))                                                                                            \
            CHECK(api_sure(api_null(#p)));                                                                             \
    } while (0)

/* The same in functions that are allowed at any time and need no lock. */
#define NOT_NULL_EVER(p)                                                                                               \
    do {                                                                                                               \
        if (unlikely(!(p)))                                                                                            \
            return api_null_ever(#p, __func__ + 1);                                                                    \
    } while (0)

/* ---- statuses ---- */

static inline void api_status(MPI_Status *st, const struct mr_status *s)
{
    if (st == MPI_STATUS_IGNORE)
        return;
    st->MPI_SOURCE = s->source;
    st->MPI_TAG = s->tag;
    abi_status_set_bytes(st, s->bytes, s->cancelled);
}

static inline void api_status_empty(MPI_Status *st)
{
    api_status(st, &(struct mr_status){.source = MPI_ANY_SOURCE, .tag = MPI_ANY_TAG});
}

/* Copies src into the user's buffer of cap bytes (with its end); its length without the end in *len. */
void api_string(char *to, size_t cap, const char *src, int *len);

#endif
