/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a collective is written: a function build_x checks the arguments, whose last are the communicator and the
 * schedule that it gives, and COLLECTIVE makes the MPI functions of it. params is the list of parameters without
 * communicator, what follows the builder their names.
 */
#ifndef MRMPI_API_COLL_H
#define MRMPI_API_COLL_H

#include "libmrmpi/api/api.h"

#define ARGS(...) __VA_ARGS__
/* FN: MPI_FN or MPI_COUNT_FN. The lists here end with a comma, so that they can be empty. */
#define COLLECTIVE_AS(FN, name, iname, params, build, ...)                                                             \
    FN(int, name, (params MPI_Comm comm))                                                                              \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        struct mr_schedule *s = NULL;                                                                                  \
        API_ENTER();                                                                                                   \
        CHECK(api_comm(comm, &c));                                                                                     \
        err = build(__VA_ARGS__ c, &s);                                                                                \
        err = mr_coll_run(err, s);                                                                                     \
        API_LEAVE(c);                                                                                                  \
    }                                                                                                                  \
    FN(int, iname, (params MPI_Comm comm, MPI_Request * request))                                                      \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        struct mr_schedule *s = NULL;                                                                                  \
        struct mr_request *r = NULL;                                                                                   \
        API_ENTER();                                                                                                   \
        NOT_NULL(request);                                                                                             \
        CHECK(api_comm(comm, &c));                                                                                     \
        CHECK(build(__VA_ARGS__ c, &s));                                                                               \
        CHECK(mr_coll_start(s, &r));                                                                                   \
        err = api_new_request(r, request);                                                                             \
        API_LEAVE(c);                                                                                                  \
    }                                                                                                                  \
    FN(int, name##_init, (params MPI_Comm comm, MPI_Info info, MPI_Request * request))                                 \
    {                                                                                                                  \
        struct mr_comm *c = NULL;                                                                                      \
        struct mr_schedule *s = NULL;                                                                                  \
        struct mr_request *r = NULL;                                                                                   \
        API_ENTER();                                                                                                   \
        NOT_NULL(request);                                                                                             \
        CHECK(api_comm(comm, &c));                                                                                     \
        CHECK(api_hints(info));                                                                                        \
        CHECK(build(__VA_ARGS__ c, &s));                                                                               \
        CHECK(mr_coll_keep(s, &r));                                                                                    \
        err = api_new_request(r, request);                                                                             \
        API_LEAVE(c);                                                                                                  \
    }
#define COLLECTIVE(name, iname, params, build, ...)                                                                    \
    COLLECTIVE_AS(MPI_COUNT_FN, name, iname, ARGS(params, ), build, __VA_ARGS__, )

#define TRY(expr)                                                                                                      \
    do {                                                                                                               \
        enum mr_err e_ = (expr);                                                                                       \
        if (unlikely(e_))                                                                                              \
            return e_;                                                                                                 \
    } while (0)

/* A buffer with its type; MPI_IN_PLACE is for the caller to have dealt with. */
static inline enum mr_err api_side(const void *buf, api_count count, MPI_Datatype datatype, struct mr_type **t)
{
    TRY(api_type(datatype, t));
    return api_buffer(buf, count, *t);
}

static inline enum mr_err api_counts(const api_count *counts, int n)
{
    if (!counts)
        return n ? api_null("counts") : MR_SUCCESS;
    for (int i = 0; i < n; i++)
        if (unlikely(counts[i] < 0))
            return mr_fail(MR_ERR_COUNT, "count %d of the array is %lld", i, (long long)counts[i]);
    return MR_SUCCESS;
}

/* n parts of a buffer. A null pointer is fine where a displacement or the type makes an address of it. */
static inline enum mr_err api_vec_buffer(const struct mr_vec *v, int n)
{
    if (likely(v->buf) || !mr_config.check_args)
        return MR_SUCCESS;
    for (int i = 0; i < n; i++)
        if (mr_vec_bytes(v, i) && !mr_vec_part(v, i) && mr_vec_type(v, i)->builtin)
            return mr_fail(MR_ERR_BUFFER, "the buffer is a null pointer, count %d is %zu", i, mr_vec_count(v, i));
    return MR_SUCCESS;
}

/* Counts and displacements of n parts. */
static inline enum mr_err api_vec(struct mr_vec *v, const void *buf, const api_count *counts, const api_displ *displs,
                                  MPI_Datatype datatype, int n)
{
    struct mr_type *t;
    TRY(api_type(datatype, &t));
    if (unlikely(!t->committed))
        return api_bad_type(t);
    if (unlikely(buf == MPI_IN_PLACE))
        return mr_fail(MR_ERR_BUFFER, "MPI_IN_PLACE is not allowed here");
    TRY(api_counts(counts, n));
    if (!displs && n)
        return api_null("displs");
    *v = (struct mr_vec){
        .buf = buf, .counts = counts, .disps = displs, .type = t, .wide = API_WIDE, .wide_disps = API_WIDE};
    return api_vec_buffer(v, n);
}

/* All bytes from the first of the data to the last are data. */
static inline bool api_solid(const struct mr_type *t, size_t count)
{
    return t->contiguous || (count == 1 && t->size == (size_t)t->true_extent);
}

/*
 * An error if the two buffers of an operation surely overlap: their data begins at the same byte, or neither has gaps
 * and one begins within the other. What lies in the gaps of the other's type is allowed.
 */
static inline enum mr_err api_apart(const void *in, size_t icount, const struct mr_type *it, const void *out,
                                    size_t ocount, const struct mr_type *ot)
{
    size_t ibytes = icount * it->size, obytes = ocount * ot->size;
    if (!ibytes || !obytes || !mr_config.check_args)
        return MR_SUCCESS;
    uintptr_t i = (uintptr_t)in + (uintptr_t)it->true_lb, o = (uintptr_t)out + (uintptr_t)ot->true_lb;
    if (likely(i != o) &&
        ((i < o ? o - i >= ibytes : i - o >= obytes) || !api_solid(it, icount) || !api_solid(ot, ocount)))
        return MR_SUCCESS;
    return mr_fail(MR_ERR_BUFFER,
                   "the buffers at %p (%zu bytes) and at %p (%zu bytes) overlap; MPI_IN_PLACE may be what is meant", in,
                   ibytes, out, obytes);
}

/* One buffer and each of n parts. */
static inline enum mr_err api_apart_vec(const void *in, size_t icount, const struct mr_type *it,
                                        const struct mr_vec *out, int n)
{
    for (int i = 0; i < n; i++)
        TRY(api_apart(in, icount, it, mr_vec_part(out, i), mr_vec_count(out, i), mr_vec_type(out, i)));
    return MR_SUCCESS;
}

/* Each of n parts and the part that is exchanged for it. */
static inline enum mr_err api_apart_pairs(const struct mr_vec *in, const struct mr_vec *out, int n)
{
    for (int i = 0; i < n; i++)
        TRY(api_apart(mr_vec_part(in, i), mr_vec_count(in, i), mr_vec_type(in, i), mr_vec_part(out, i),
                      mr_vec_count(out, i), mr_vec_type(out, i)));
    return MR_SUCCESS;
}

static inline enum mr_err api_types(const MPI_Datatype *handles, struct mr_type **types, int n)
{
    if (!handles && n)
        return api_null("types");
    for (int i = 0; i < n; i++) {
        TRY(api_type(handles[i], &types[i]));
        if (unlikely(!types[i]->committed))
            return api_bad_type(types[i]);
    }
    return MR_SUCCESS;
}

/* Counts, displacements (of whatever type) and types of n parts. */
static inline enum mr_err api_parts(const api_count *counts, const void *displs, const MPI_Datatype *handles,
                                    struct mr_type **types, int n)
{
    TRY(api_counts(counts, n));
    if (!displs && n)
        return api_null("displs");
    return api_types(handles, types, n);
}

#endif
