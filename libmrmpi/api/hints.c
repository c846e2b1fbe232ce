/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hints of communicators (MPI-4.0 section 7.4.4): a program's promises about its use of a communicator. The standard's
 * hints are kept and reported, without effect; others are ignored, as the standard allows and MPICH does. A duplicate
 * begins without the hints of its original.
 */
#include "libmrmpi/api/api.h"

#include <string.h>

static const char *const assertions[] = {"mpi_assert_no_any_tag", "mpi_assert_no_any_source", "mpi_assert_exact_length",
                                         "mpi_assert_allow_overtaking"};
enum { ASSERTIONS = sizeof(assertions) / sizeof(assertions[0]) };

static bool is_truth(const char *value)
{
    return strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
}

/* Existing hints missing in from stay. */
static enum mr_err add(struct mr_comm *c, const struct mr_info *from)
{
    for (int n = 0; n < ASSERTIONS; n++) {
        const char *value = mr_info_find(from, assertions[n]);
        if (!value || !is_truth(value))
            continue;
        if (!c->info && !(c->info = mr_info_new()))
            return MR_ERR_NO_MEM;
        if (!mr_info_set(c->info, assertions[n], value))
            return MR_ERR_NO_MEM;
    }
    return MR_SUCCESS;
}

static enum mr_err add_hints(struct mr_comm *c, MPI_Info info)
{
    struct mr_info *i;
    if (info == MPI_INFO_NULL)
        return MR_SUCCESS;
    enum mr_err err = api_info(info, &i);
    return err ? err : add(c, i);
}

enum mr_err api_set_hints(struct mr_comm *c, MPI_Info info)
{
    mr_info_put(c->info);
    c->info = NULL;
    return add_hints(c, info);
}

MPI_FN(int, Comm_set_info, (MPI_Comm comm, MPI_Info info))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    err = add_hints(c, info);
    API_LEAVE(c);
}

/* All known hints, with the value in force without a setting. */
static struct mr_info *list_comm_hints(const struct mr_comm *c)
{
    struct mr_info *all = mr_info_new();
    for (int n = 0; all && n < ASSERTIONS; n++) {
        const char *said = c->info ? mr_info_find(c->info, assertions[n]) : NULL;
        if (!mr_info_set(all, assertions[n], said ? said : "false")) {
            mr_info_put(all);
            all = NULL;
        }
    }
    return all;
}

MPI_FN(int, Comm_get_info, (MPI_Comm comm, MPI_Info *info_used))
{
    struct mr_comm *c = NULL;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    NOT_NULL(info_used);
    err = api_new_info(list_comm_hints(c), info_used);
    API_LEAVE(c);
}
