/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of a collective: a function build_x checks the arguments, the last of which are the communicator and the
 * resulting schedule, and COLLECTIVE defines the MPI functions. params is the list of parameters without communicator;
 * the arguments behind the builder are their names.
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
        struct mr_schedule *s = MR_COLL_AT_ONCE;                                                                       \
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
#define api_side(buf, count, datatype, t) api_side_named(buf, count, datatype, t, #buf, #count, #datatype)
static inline enum mr_err api_side_named(const void *buf, api_count count, MPI_Datatype datatype, struct mr_type **t,
                                         const char *name, const char *count_name, const char *type_name)
{
    TRY(api_type_named(datatype, t, type_name));
    return api_buffer_named(buf, count, *t, name, count_name, type_name);
}

static inline enum mr_err api_array(const void *array, int n, const char *name)
{
    return unlikely(!array) && n && mr_config.check_args ? api_null(name) : MR_SUCCESS;
}

#define api_counts(counts, n) api_counts_named(counts, n, #counts)
static inline enum mr_err api_counts_named(const api_count *counts, int n, const char *name)
{
    TRY(api_array(counts, n, name));
    for (int i = 0; i < n && mr_config.check_args; i++)
        if (unlikely(counts[i] < 0))
            return mr_fail(MR_ERR_COUNT, "%s[%d] is %lld", name, i, (long long)counts[i]);
    return MR_SUCCESS;
}

/* n parts of a buffer. A null pointer is fine where a displacement or the type makes an address of it. */
static inline enum mr_err api_vec_buffer(const struct mr_vec *v, int n, const char *name, const char *counts_name)
{
    if (likely(v->buf) || !mr_config.check_args)
        return MR_SUCCESS;
    for (int i = 0; i < n; i++)
        if (mr_vec_bytes(v, i) && !mr_vec_part(v, i) && mr_vec_type(v, i)->builtin)
            return mr_fail(MR_ERR_BUFFER, "%s is a null pointer, %s[%d] is %zu", name, counts_name, i,
                           mr_vec_count(v, i));
    return MR_SUCCESS;
}

/* Counts and displacements of n parts. */
#define api_vec(v, buf, counts, displs, datatype, n)                                                                   \
    api_vec_named(v, buf, counts, displs, datatype, n, #buf, #counts, #displs, #datatype)
static inline enum mr_err api_vec_named(struct mr_vec *v, const void *buf, const api_count *counts,
                                        const api_displ *displs, MPI_Datatype datatype, int n, const char *name,
                                        const char *counts_name, const char *displs_name, const char *type_name)
{
    struct mr_type *t;
    TRY(api_type_named(datatype, &t, type_name));
    if (unlikely(!t->committed) && mr_config.check_args)
        return api_bad_type(t, type_name);
    if (unlikely(buf == MPI_IN_PLACE))
        return mr_fail(MR_ERR_BUFFER, "%s is MPI_IN_PLACE, which is not allowed here", name);
    TRY(api_counts_named(counts, n, counts_name));
    TRY(api_array(displs, n, displs_name));
    *v = (struct mr_vec){
        .buf = buf, .counts = counts, .disps = displs, .type = t, .wide = API_WIDE, .wide_disps = API_WIDE};
    return api_vec_buffer(v, n, name, counts_name);
}

/* An error if a send and a receive buffer surely overlap. */
static inline enum mr_err api_apart(const void *in, size_t icount, const struct mr_type *it, const void *out,
                                    size_t ocount, const struct mr_type *ot)
{
    if (likely(!api_overlap(in, icount, it, out, ocount, ot)))
        return MR_SUCCESS;
    return mr_fail(MR_ERR_BUFFER,
                   "sendbuf and recvbuf overlap: %zu bytes at %p and %zu at %p; MPI_IN_PLACE may be what is meant",
                   icount * it->size, in, ocount * ot->size, out);
}

/* One buffer and each of n parts. */
static inline enum mr_err api_apart_vec(const void *in, size_t icount, const struct mr_type *it,
                                        const struct mr_vec *out, int n)
{
    for (int i = 0; i < n; i++)
        TRY(api_apart(in, icount, it, mr_vec_part(out, i), mr_vec_count(out, i), mr_vec_type(out, i)));
    return MR_SUCCESS;
}

/* Each of n parts and its counterpart in the exchange. */
static inline enum mr_err api_apart_pairs(const struct mr_vec *in, const struct mr_vec *out, int n)
{
    for (int i = 0; i < n; i++)
        TRY(api_apart(mr_vec_part(in, i), mr_vec_count(in, i), mr_vec_type(in, i), mr_vec_part(out, i),
                      mr_vec_count(out, i), mr_vec_type(out, i)));
    return MR_SUCCESS;
}

/* A part of no elements may go without a type, as MPICH has it: programs leave MPI_DATATYPE_NULL there. */
static inline enum mr_err api_types(const MPI_Datatype *handles, const api_count *counts, struct mr_type **types, int n,
                                    const char *name)
{
    TRY(api_array(handles, n, name));
    for (int i = 0; i < n; i++) {
        if (handles[i] == MPI_DATATYPE_NULL && !counts[i]) {
            types[i] = mr_type_byte;
            continue;
        }
        TRY(api_type_named(handles[i], &types[i], name));
        if (unlikely(!types[i]->committed) && mr_config.check_args)
            return api_bad_type(types[i], name);
    }
    return MR_SUCCESS;
}

/* Counts, displacements (of any type) and types of n parts. */
#define api_parts(counts, displs, handles, types, n)                                                                   \
    api_parts_named(counts, displs, handles, types, n, #counts, #displs, #handles)
static inline enum mr_err api_parts_named(const api_count *counts, const void *displs, const MPI_Datatype *handles,
                                          struct mr_type **types, int n, const char *counts_name,
                                          const char *displs_name, const char *types_name)
{
    TRY(api_counts_named(counts, n, counts_name));
    TRY(api_array(displs, n, displs_name));
    return api_types(handles, counts, types, n, types_name);
}

#endif
