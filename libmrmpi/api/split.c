/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of a communicator by resources shared by their processes (MPI-4.1 section 7.4.2): a node or its hardware, a
 * process set, or a directory.
 */
#include "libmrmpi/api/hardware.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libmrmpi/api/session.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/launch/launch.h"

static const char resource_key[] = "mpi_hw_resource_type", resource_node[] = "mpi_shared_memory";
static const char pset_key[] = "mpi_pset_name";

/* The hints of info, NULL if there are none; the handle has been checked. */
static const char *hint(MPI_Info info, const char *key)
{
    struct mr_info *i;
    return info == MPI_INFO_NULL || api_info(info, &i) ? NULL : mr_info_find(i, key);
}

/*
 * Processes that share hardware of the kind in the hint: the node by the standard's name, or a resource of
 * MPI_Get_hw_resource_info. Another value names nothing, and so does no value. Nodes are separated first, because
 * numbers of resources are unique within a node only.
 */
static enum mr_err by_hardware(struct mr_comm *c, MPI_Info info, int key, struct mr_comm **out)
{
    const char *what = hint(info, resource_key);
    struct mr_comm *node;
    int instance;
    enum mr_err err = mr_comm_split_node(c, what != NULL, key, &node);
    *out = node;
    if (err || !node || strcmp(what, resource_node) == 0)
        return err;
    err = mr_comm_split(node, api_hardware_instance(what, &instance) ? instance : MR_UNDEFINED, key, MR_SUCCESS, out);
    mr_comm_put(node);
    return err;
}

/* Jobs number their processes alike: in a communicator of several jobs the first rank in the set stands for the set. */
static int color_of_pset(const struct mr_comm *c, const struct mr_group *g)
{
    int first = 0;
    if (!mr_comm_is_mixed(c))
        return g->world[0];
    while (mr_group_find(g, c->group->world[first]) == MR_UNDEFINED)
        first++;
    return 2 * first + (mr_comm_is_inter(c) && mr_guest_compare(c->group->world[0], mr_comm_peers(c)->world[0]) > 0);
}

/* Processes in the process set of the hint. */
static enum mr_err by_pset(struct mr_comm *c, const char *name, int key, struct mr_comm **out)
{
    struct mr_group *g = api_pset(name);
    return mr_comm_split(c, g ? color_of_pset(c, g) : MR_UNDEFINED, key, MR_SUCCESS, out);
}

static enum mr_err by_resource(struct mr_comm *c, MPI_Info info, int key, struct mr_comm **out)
{
    const char *pset = hint(info, pset_key);
    return pset ? by_pset(c, pset, key, out) : by_hardware(c, info, key, out);
}

/* One step down from the communicator: to its nodes if it has more than one, and then to nothing. */
static enum mr_err unguided(struct mr_comm *c, MPI_Info info, int key, struct mr_comm **out)
{
    bool nodes = !mr_comm_on_one_node(c);
    struct mr_info *i;
    *out = NULL;
    if (nodes && info != MPI_INFO_NULL && !api_info(info, &i) && !mr_info_set(i, resource_key, resource_node))
        return MR_ERR_NO_MEM;
    return mr_comm_split_node(c, nodes, key, out);
}

/* ---- a directory: MPICH's neighbourhoods ---- */

static uint64_t hash_text(const char *text)
{
    uint64_t h = 0xcbf29ce484222325; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3;
    return h;
}

static enum mr_err min_of_all(struct mr_comm *c, uint64_t *values, size_t n)
{
    struct mr_schedule *s = NULL;
    enum mr_err err =
        mr_coll_allreduce(MR_IN_PLACE, values, n, &mr_type_basic[MR_BASIC_UINT64_T], &mr_op_builtin[MR_OP_MIN], c, &s);
    return mr_coll_run(err, s);
}

/* True if all see a file made there by the first process: they have the same directory. */
static enum mr_err seen_by_all(struct mr_comm *c, const char *dir, bool *all)
{
    char path[4096];
    uint64_t there;
    int fd = -1;
    const bool fits = snprintf(path, sizeof(path), "%s/.mrmpi-%016" PRIx64 "-%" PRIx32, dir,
                               hash_text(mr_launch_info()->job_id), c->context) < (int)sizeof(path);
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
 * Of the processes in c, those that share the directory in the hint: all of them, or else those of a node. NULL for all
 * without the hint, or if they name different directories. Questions by the network's topology are unknown.
 */
static enum mr_err by_directory(struct mr_comm *c, const char *dir, int key, struct mr_comm **out)
{
    uint64_t h = dir ? hash_text(dir) : 0, same[3] = {h, ~h, dir != NULL};
    bool all = false;
    *out = NULL;
    enum mr_err err = min_of_all(c, same, 3);
    if (!err && same[0] == h && same[1] == ~h && same[2])
        err = seen_by_all(c, dir, &all);
    else
        dir = NULL;
    if (err || !dir)
        return err;
    return all ? mr_comm_split(c, 0, key, MR_SUCCESS, out) : mr_comm_split_node(c, true, key, out);
}

/* Processes that give MPI_UNDEFINED take part in the first split only. */
static enum mr_err neighborhood(struct mr_comm *c, MPI_Info info, int key, struct mr_comm **out)
{
    struct mr_info *i = NULL;
    struct mr_comm *asked;
    enum mr_err err = info == MPI_INFO_NULL ? MR_SUCCESS : api_info(info, &i);
    *out = NULL;
    if (!err)
        err = mr_comm_split(c, 0, key, MR_SUCCESS, &asked);
    if (err)
        return err;
    err = by_directory(asked, i ? mr_info_find(i, "nbhd_common_dirname") : NULL, key, out);
    mr_comm_put(asked);
    return err;
}

/* ---- all of them ---- */

/*
 * Programs compiled with MPICH 4.2 or later have the numbers of two types exchanged. The hints show the intended type;
 * without hints there is no guidance.
 */
static bool by_hints(MPI_Info info)
{
    return hint(info, resource_key) || hint(info, pset_key);
}

/* All types begin with a split of the whole communicator: all members learn of errors there. */
static enum mr_err split_by(struct mr_comm *c, int split_type, int key, MPI_Info info, enum mr_err wrong,
                            struct mr_comm **out)
{
    if (wrong)
        return mr_comm_split(c, MR_UNDEFINED, key, wrong, out);
    switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
        return mr_comm_split_node(c, true, key, out);
    case MPI_COMM_TYPE_HW_GUIDED:
        return by_hardware(c, info, key, out);
    case MPI_COMM_TYPE_HW_UNGUIDED:
        return unguided(c, info, key, out);
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
    case ABI_SPLIT_NEIGHBORHOOD:
        if (by_hints(info))
            return by_resource(c, info, key, out);
        return neighborhood(c, info, key, out);
    case MPI_UNDEFINED:
        return mr_comm_split_node(c, false, key, out);
    default:
        return MR_ERR_INTERN; /* may_split_by() has refused it */
    }
}

static enum mr_err may_split_by(const struct mr_comm *c, int split_type, MPI_Info info)
{
    switch (split_type) {
    case MPI_COMM_TYPE_SHARED:
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_HW_UNGUIDED:
    case MPI_UNDEFINED:
        return MR_SUCCESS;
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
    case ABI_SPLIT_NEIGHBORHOOD:
        if (by_hints(info) || !mr_comm_is_inter(c))
            return MR_SUCCESS;
        return mr_fail(MR_ERR_COMM, "neighbourhoods are found in intracommunicators only");
    default:
        return mr_fail(MR_ERR_ARG, "split_type is %d: MPI_COMM_TYPE_* and MPI_UNDEFINED are known", split_type);
    }
}

MPI_FN(int, Comm_split_type, (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm))
{
    struct mr_comm *c = NULL, *made = NULL;
    enum mr_err wrong = MR_SUCCESS;
    API_ENTER();
    CHECK(api_comm(comm, &c));
    ALSO_NOT_NULL(newcomm);
    ALSO(api_hints(info));
    ALSO(may_split_by(c, split_type, info));
    CHECK(split_by(c, split_type, key, info, wrong, &made));
    *newcomm = MPI_COMM_NULL;
    if (made)
        CHECK(api_set_hints(made, info));
    if (made)
        err = api_new_comm(made, newcomm);
    API_LEAVE(c);
}
