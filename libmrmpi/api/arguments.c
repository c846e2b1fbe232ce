/* SPDX-License-Identifier: BSD-3-Clause */
/* The texts of failed argument checks, which arguments.h makes inline, and strings for the program. */
#include "libmrmpi/api/api.h"

#include <string.h>

enum mr_err api_bad_count(long count, const char *name)
{
    return mr_fail(MR_ERR_COUNT, "%s is %ld", name, count);
}

enum mr_err api_bad_type(const struct mr_type *t, const char *name)
{
    const char *own = mr_type_name(t);
    return mr_fail(MR_ERR_TYPE, "%s 0x%08x%s%s has not been committed: call MPI_Type_commit first", name,
                   (unsigned)t->handle, *own ? ", " : "", own);
}

enum mr_err api_bad_buffer(const void *buf, int64_t count, const char *name, const char *count_name)
{
    return mr_fail(MR_ERR_BUFFER, "%s is %s, %s is %lld", name,
                   buf ? "MPI_IN_PLACE, which is not allowed here" : "a null pointer", count_name, (long long)count);
}

enum mr_err api_bad_rank(const struct mr_comm *c, int rank, bool receive, const char *name)
{
    return mr_fail(MR_ERR_RANK, "%s %d is not in %s%s, which has ranks 0 to %d%s", name, abi_rank_out(rank),
                   mr_comm_is_inter(c) ? "the remote group of " : "", c->name[0] ? c->name : "the communicator",
                   c->num_peers - 1, rank == MR_ANY_SOURCE && !receive ? " (MPI_ANY_SOURCE is for receives)" : "");
}

enum mr_err api_bad_tag(int tag, const char *name)
{
    return mr_fail(MR_ERR_TAG, "%s %d is not in 0 to %d%s", name, tag, MR_TAG_UB,
                   tag == MPI_ANY_TAG ? " (MPI_ANY_TAG is for receives)" : "");
}

enum mr_err api_null(const char *name)
{
    return mr_fail(MR_ERR_ARG, "%s is a null pointer", name);
}

int api_null_ever(const char *name, const char *function)
{
    bool any = api_enter_any();
    return api_fail_any(any, api_null(name), function);
}

enum mr_err api_inter(const struct mr_comm *c)
{
    return mr_comm_is_inter(c) ? MR_SUCCESS : mr_fail(MR_ERR_COMM, "the communicator is not an intercommunicator");
}

enum mr_err api_intra(const struct mr_comm *c)
{
    return mr_comm_is_inter(c) ? mr_fail(MR_ERR_COMM, "the communicator is an intercommunicator") : MR_SUCCESS;
}

void api_string(char *to, size_t cap, const char *src, int *len)
{
    size_t n = strlen(src);
    if (n >= cap)
        n = cap - 1;
    memcpy(to, src, n);
    to[n] = '\0';
    *len = (int)n;
}
