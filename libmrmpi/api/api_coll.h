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

/* The hints of a persistent collective: none is known, but the handle must be one. */
static inline enum mr_err api_hints(MPI_Info info)
{
    struct mr_info *i;
    return info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &i);
}

/* A buffer with its type; MPI_IN_PLACE is for the caller to have dealt with. */
static inline enum mr_err api_side(const void *buf, api_count count, MPI_Datatype datatype, struct mr_type **t)
{
    TRY(api_type(datatype, t));
    return api_buffer(buf, count, *t);
}

#endif
