/* SPDX-License-Identifier: BSD-3-Clause */
/* Error handler objects. The shell (api/error.c) calls them. */
#include "libmrmpi/core/core.h"

#include <stdlib.h>

struct mr_errhandler mr_errhandler_fatal = {.refs = 1, .kind = MR_ERRHANDLER_FATAL};
struct mr_errhandler mr_errhandler_throw = {.refs = 1, .kind = MR_ERRHANDLER_RETURN};
struct mr_errhandler mr_errhandler_return = {.refs = 1, .kind = MR_ERRHANDLER_RETURN};
struct mr_errhandler mr_errhandler_abort = {.refs = 1, .kind = MR_ERRHANDLER_ABORT};

struct mr_errhandler *mr_errhandler_new(void)
{
    struct mr_errhandler *h = calloc(1, sizeof(*h));
    if (h)
        *h = (struct mr_errhandler){.refs = 1, .kind = MR_ERRHANDLER_USER};
    return h;
}

struct mr_errhandler *mr_errhandler_get(struct mr_errhandler *h)
{
    if (h->kind == MR_ERRHANDLER_USER)
        h->refs++;
    return h;
}

void mr_errhandler_put(struct mr_errhandler *h)
{
    if (h->kind == MR_ERRHANDLER_USER && --h->refs == 0)
        free(h);
}
