/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions, for functions outside of session.c with a session argument. */
#ifndef MRMPI_API_SESSION_H
#define MRMPI_API_SESSION_H

#include "libmrmpi/api/api.h"

struct session;

enum mr_err api_session(MPI_Session h, struct session **s); /* of the argument `session` */
struct mr_bsend **api_session_buffer(struct session *s);    /* the place of its attached buffer */
struct mr_group *api_pset(const char *name);                /* a process set; NULL: there is none of this name */
/* The way out through the session's handler; without a session through the world's. */
int api_fail_session(struct session *s, enum mr_err err, const char *function);

#define API_LEAVE_SESSION(s)                                                                                           \
    goto out;                                                                                                          \
    out:                                                                                                               \
    if (unlikely(err))                                                                                                 \
        return api_fail_session(s, err, __func__ + 1);                                                                 \
    api_unlock();                                                                                                      \
    return MPI_SUCCESS

#endif
