/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator out of another: duplicates, parts, subsets (MPI-4.0 section 7.4.2). */
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/comm/internal.h"
#include "libmrmpi/launch/launch.h"

#include <stdlib.h>

enum mr_err mr_comm_dup(struct mr_comm *c, enum mr_err wrong, struct mr_comm **out)
{
    *out = NULL;
    struct mr_agreement a = mr_agreement_of(c);
    a.want = mr_comm_is_inter(c) ? 2 : 1;
    a.wrong = wrong;
    enum mr_err err = mr_agreement_run(&a);
    return err ? err : mr_comm_make_dup(c, a.ids, out);
}

/* Each member's message to all others in a split. */
struct part {
    int color, key, wrong;
    struct mr_context_offer ids;
};

/* The ids offered by all, if all have offered the same. */
static struct mr_context_offer in_common(const struct part *all, int num)
{
    struct mr_context_offer common = all[0].ids;

    for (int i = 1; i < num; i++)
        common.free &= all[i].ids.word == common.word ? all[i].ids.free : 0;
    return common;
}

static enum mr_err exchange_parts(struct mr_comm *c, struct part *mine, struct part *all, struct mr_agreement *a)
{
    struct mr_context_offer common = {0};
    struct mr_schedule *s = NULL;
    enum mr_err err;

    mine->ids = mr_agreement_offer(a);
    err = mr_coll_allgather(mine, sizeof *mine, mr_type_byte, all, sizeof *mine, mr_type_byte, c, &s);
    err = mr_coll_run(err, s);
    if (!err)
        err = (enum mr_err)mine->wrong;
    for (int i = 0; i < c->size && !err; i++)
        if (all[i].wrong)
            err = mr_fail((enum mr_err)all[i].wrong, "rank %d has called with a wrong argument", i);
    if (!err)
        common = in_common(all, c->size);
    mr_agreement_offered(a, common.word, common.free, err);
    return mr_agreement_end(a);
}

/* One exchange does everything, as a rule: the parts, and their id. */
static enum mr_err intra_split(struct mr_comm *c, int color, int key, enum mr_err wrong, struct mr_comm **out)
{
    struct part mine = {.color = color, .key = key, .wrong = (int)wrong}, *all = malloc((size_t)c->size * sizeof *all);
    int(*parts)[2] = malloc((size_t)c->size * sizeof *parts);
    struct mr_agreement a = mr_agreement_of(c);
    enum mr_err err;

    a.take = color != MR_UNDEFINED;
    err = all && parts ? exchange_parts(c, &mine, all, &a) : mr_fail(MR_ERR_NO_MEM, "no memory for MPI_Comm_split");
    for (int i = 0; !err && i < c->size; i++) {
        parts[i][0] = all[i].color;
        parts[i][1] = all[i].key;
    }
    if (!err && a.take)
        err = mr_comm_make(a.ids[0], mr_group_split(c->group, (const int(*)[2])parts, color), c, out);
    free(all);
    free(parts);
    return err;
}

enum mr_err mr_comm_split(struct mr_comm *c, int color, int key, enum mr_err wrong, struct mr_comm **out)
{
    *out = NULL;
    return mr_comm_is_inter(c) ? mr_inter_split(c, color, key, wrong, out) : intra_split(c, color, key, wrong, out);
}

/*
 * The node's number; jobs number nodes differently: among processes of several jobs the first rank there of this job.
 */
static int color_of_node(const struct mr_comm *c)
{
    const struct mr_launch *l = mr_launch_info();
    const int *world = c->group->world, node = l->node_of[l->rank];
    int first = 0;

    if (!mr_comm_is_mixed(c))
        return node;
    while (world[first] >= l->size || l->node_of[world[first]] != node)
        first++;
    return 2 * first + (mr_comm_is_inter(c) && mr_guest_compare(world[0], mr_comm_peers(c)->world[0]) > 0);
}

enum mr_err mr_comm_split_node(struct mr_comm *c, bool in, int key, struct mr_comm **out)
{
    return mr_comm_split(c, in ? color_of_node(c) : MR_UNDEFINED, key, MR_SUCCESS, out);
}

enum mr_err mr_comm_create(struct mr_comm *c, struct mr_group *g, enum mr_err wrong, struct mr_comm **out)
{
    *out = NULL;
    if (wrong)
        g = &mr_group_empty;
    if (mr_comm_is_inter(c))
        return mr_inter_create(c, g, wrong, out);
    struct mr_agreement a = mr_agreement_of(c);
    a.take = g->rank != MR_UNDEFINED;
    a.wrong = wrong;
    enum mr_err err = mr_agreement_run(&a);
    if (!err && a.take)
        err = mr_comm_make(a.ids[0], mr_group_get(g), c, out);
    return err;
}

/* Only the group's members take part, so the agreement runs on a passing communicator of theirs. */
enum mr_err mr_comm_create_group(struct mr_comm *c, struct mr_group *g, int tag, enum mr_err wrong,
                                 struct mr_comm **out)
{
    *out = NULL;
    if (g->rank == MR_UNDEFINED)
        return wrong;
    struct mr_comm *tmp = mr_comm_passing(g, MR_CONTEXT_GROUP | c->context, tag);
    if (!tmp)
        return MR_ERR_NO_MEM;
    struct mr_agreement a = mr_agreement_of(tmp);
    a.wrong = wrong;
    enum mr_err err = mr_agreement_run(&a);
    if (!err)
        err = mr_comm_make(a.ids[0], mr_group_get(g), c, out);
    mr_comm_put(tmp);
    return err;
}
