/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of arguments, and statuses: part of api.h. */
#ifndef MRMPI_API_ARGUMENTS_H
#define MRMPI_API_ARGUMENTS_H

#include "libmrmpi/api/handles.h"

enum mr_err api_bad_count(long count, const char *name);
enum mr_err api_bad_type(const struct mr_type *t, const char *name);
enum mr_err api_bad_buffer(const void *buf, int64_t count, const char *name, const char *count_name);
enum mr_err api_bad_rank(const struct mr_comm *c, int rank, bool receive, const char *name); /* rank: of core/ */
enum mr_err api_bad_tag(int tag, const char *name);                                          /* tag: the program's */
enum mr_err api_null(const char *name);
int api_null_ever(const char *name, const char *function); /* the function's result */
/* An operation, and whether it may be applied to t (op.c). */
enum mr_err api_op_on(MPI_Op op, struct mr_op **o, const struct mr_type *t);

enum mr_err api_intra(const struct mr_comm *c); /* an error if c is an intercommunicator */
enum mr_err api_inter(const struct mr_comm *c); /* an error for other communicators */

#define api_buffer(buf, count, t) api_buffer_named(buf, count, t, #buf, #count, "datatype")
/* The variables become core/'s numbers; of a send, the rank only. */
#define api_dest(c, rank, tag) ((rank) = abi_rank_in(rank), api_dest_named(c, rank, tag, #rank, #tag))
#define api_source(c, rank, tag)                                                                                       \
    ((rank) = abi_rank_in(rank), (tag) = abi_tag_in(tag), api_source_named(c, rank, tag, #rank, #tag))

/* A buffer of count elements. A null pointer is fine for nothing, and for types that carry addresses. */
static inline enum mr_err api_buffer_named(const void *buf, int64_t count, const struct mr_type *t, const char *name,
                                           const char *count_name, const char *type_name)
{
    if (unlikely(count < 0) && mr_config.check_args)
        return api_sure(api_bad_count(count, count_name));
    if (unlikely(!t->committed) && mr_config.check_args)
        return api_sure(api_bad_type(t, type_name));
    if (unlikely(abi_no_address(buf)) && count && (buf || (t->size && t->builtin)) && mr_config.check_args)
        return api_sure(api_bad_buffer(buf, count, name, count_name));
    return MR_SUCCESS;
}

/* All bytes from the first of the data to the last are data. */
static inline bool api_solid(const struct mr_type *t, size_t count)
{
    return t->contiguous || (count == 1 && t->size == (size_t)t->true_extent);
}

/*
 * True if two buffers that must be disjoint surely overlap: their data begins at the same byte, or neither has gaps and
 * one begins within the other. Data in the gaps of the other's type is allowed.
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
    if (unlikely((unsigned)rank >= (unsigned)c->num_peers) && rank != MR_PROC_NULL && mr_config.check_args)
        return api_sure(api_bad_rank(c, rank, false, name));
    if (unlikely(tag < 0 || tag > MR_TAG_UB) && mr_config.check_args)
        return api_sure(api_bad_tag(tag, tag_name));
    return MR_SUCCESS;
}

static inline enum mr_err api_source_named(const struct mr_comm *c, int rank, int tag, const char *name,
                                           const char *tag_name)
{
    if (unlikely((unsigned)rank >= (unsigned)c->num_peers) && rank != MR_PROC_NULL && rank != MR_ANY_SOURCE &&
        mr_config.check_args)
        return api_sure(api_bad_rank(c, rank, true, name));
    if (unlikely((tag < 0 || tag > MR_TAG_UB) && tag != MR_ANY_TAG) && mr_config.check_args)
        return api_sure(api_bad_tag(abi_tag_out(tag), tag_name));
    return MR_SUCCESS;
}

#define NOT_NULL(p)                                                                                                    \
    do {                                                                                                               \
        if (unlikely(!(p)))                                                                                            \
            CHECK(api_sure(api_null(#p)));                                                                             \
    } while (0)

/*
 * Checks in collective functions of a communicator, a window or a file: the first error is kept in `wrong`, and goes
 * down, where the others learn of it. A function that returned instead would leave the others waiting.
 */
#define ALSO(expr)                                                                                                     \
    do {                                                                                                               \
        if (likely(!wrong))                                                                                            \
            wrong = (expr);                                                                                            \
    } while (0)
#define ALSO_NOT_NULL(p) ALSO(likely((p) != NULL) ? MR_SUCCESS : api_null(#p))

/* An argument that must be a status or MPI_STATUS_IGNORE, and an array of statuses. */
#define NOT_MISSING(status)                                                                                            \
    do {                                                                                                               \
        if (unlikely(abi_no_status(status)))                                                                           \
            CHECK(api_sure(api_null(#status)));                                                                        \
    } while (0)
#define ALSO_NOT_MISSING(status) ALSO(unlikely(abi_no_status(status)) ? api_null(#status) : MR_SUCCESS)

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
    abi_status_set_peer(st, s->source, s->tag);
    abi_status_set_bytes(st, s->bytes, s->cancelled);
}

static inline void api_status_empty(MPI_Status *st)
{
    api_status(st, &(struct mr_status){.source = MR_ANY_SOURCE, .tag = MR_ANY_TAG});
}

/* Copies src into the user's buffer of cap bytes (with its end); its length without the end in *len. */
void api_string(char *to, size_t cap, const char *src, int *len);

#endif
