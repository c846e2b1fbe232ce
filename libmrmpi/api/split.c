/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of a communicator by what their processes share (MPI-4.0 section 7.4.2): a node, or a directory. */
#include "libmrmpi/api/api.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/launch/launch.h"

/*
 * What hardware a part shares: a node, by its name of the standard, is all that is known. A value that says something
 * else names nothing, and so does no value.
 */
static const char resource_key[] = "mpi_hw_resource_type", resource_node[] = "mpi_shared_memory";

static enum mr_err guided_by(MPI_Info info, bool *node)
{
    struct mr_info *i = NULL;
    enum mr_err err = info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &i);
    const char *what = i ? mr_info_find(i, resource_key) : NULL;
    *node = what && strcmp(what, resource_node) == 0;
    return err;
}

/* One step down from the communicator: to its nodes if it has more than one, and then to nothing. */
static enum mr_err unguided(const struct mr_comm *c, MPI_Info info, bool *node)
{
    struct mr_info *i;
    *node = !mr_comm_on_one_node(c);
    if (info == MPI_INFO_NULL)
        return MR_SUCCESS;
    enum mr_err err = api_info(info, &i);
    if (!err && *node && !mr_info_set(i, resource_key, resource_node))
        err = MR_ERR_NO_MEM;
    return err;
}

/* ---- a directory: MPICH's neighbourhoods ---- */

static uint64_t hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3;
    return h;
}

static enum mr_err min_of_all(struct mr_comm *c, uint64_t *values, size_t n)
{
    struct mr_schedule *s;
    enum mr_err err =
        mr_coll_allreduce(MR_IN_PLACE, values, n, &mr_type_basic[MR_BASIC_UINT64_T], &mr_op_builtin[MR_OP_MIN], c, &s);
    return mr_coll_run(err, s);
}

/* A file that the first makes there is what all see if they have the same directory. */
static enum mr_err seen_by_all(struct mr_comm *c, const char *dir, bool *all)
{
    char path[4096];
    uint64_t there;
    int fd = -1;
    const bool fits = snprintf(path, sizeof(path), "%s/.mrmpi-%016" PRIx64 "-%" PRIx32, dir,
                               hash(mr_core_launch()->job_id), c->context) < (int)sizeof(path);
    if (c->rank == 0 && fits)
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    there = c->rank || fd >= 0;
    enum mr_err err = min_of_all(c, &there, 1);
    if (!err && there) {
        there = fits && access(path, F_OK) == 0;
        err = min_of_all(c, &there, 1);
    }
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    *all = there;
    return err;
}

/*
 * Of the processes in c, those that share the directory named by the hint: all of them, or else those of a node. NULL
 * for all without the hint, or if they name different ones. What is asked by way of the network's topology is not
 * known.
 */
static enum mr_err by_directory(struct mr_comm *c, const char *dir, int key, struct mr_comm **out)
{
    uint64_t h = dir ? hash(dir) : 0, same[3] = {h, ~h, dir != NULL};
    bool all = false;
    *out = NULL;
    enum mr_err err = min_of_all(c, same, 3);
    if (!err && same[0] == h && same[1] == ~h && same[2])
        err = seen_by_all(c, dir, &all);
    else
        dir = NULL;
    if (err || !dir)
        return err;
    return all ? mr_comm_split(c, 0, key, out) : mr_comm_split_node(c, true, key, out);
}

/* Processes that give MPI_UNDEFINED take part in the first split only. */
static enum mr_err neighborhood(struct mr_comm *c, MPI_Info info, int key, struct mr_comm **out)
{
    struct mr_info *i = NULL;
    struct mr_comm *asked;
    enum mr_err err = info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &i);
    *out = NULL;
    if (!err)
        err = mr_comm_split(c, 0, key, &asked);
    if (err)
        return err;
    err = by_directory(asked, i ? mr_info_find(i, "nbhd_common_dirname") : NULL, key, out);
    mr_comm_put(asked);
    return err;
}

/* ---- all of them ---- */

MPI_FN(int, Comm_split_type, (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL, *made;
    struct mr_info *i;
    bool in = false;
    API_ENTER();
    NOT_NULL(newcomm);
    CHECK(api_comm(comm, &c));
    if (info != MPI_INFO_NULL)
        CHECK(api_info(info, &i));
    if (split_type == MPI_COMM_TYPE_SHARED)
        in = true;
    else if (split_type == MPI_COMM_TYPE_HW_GUIDED)
        CHECK(guided_by(info, &in));
    else if (split_type == MPI_COMM_TYPE_HW_UNGUIDED)
        CHECK(unguided(c, info, &in));
    else if (split_type == MPIX_COMM_TYPE_NEIGHBORHOOD && mr_comm_is_inter(c))
        CHECK(mr_fail(MR_ERR_COMM, "neighbourhoods are found in intracommunicators only"));
    else if (split_type != MPIX_COMM_TYPE_NEIGHBORHOOD && split_type != MPI_UNDEFINED)
        CHECK(mr_fail(MR_ERR_ARG, "split_type is %d: MPI_COMM_TYPE_* and MPI_UNDEFINED are known", split_type));
    if (split_type == MPIX_COMM_TYPE_NEIGHBORHOOD)
        CHECK(neighborhood(c, info, key, &made));
    else
        CHECK(mr_comm_split_node(c, in, key, &made));
    if (made)
        CHECK(api_set_hints(made, info));
    *newcomm = MPI_COMM_NULL;
    if (made)
        err = api_new_comm(made, newcomm);
    API_LEAVE(c);
}
