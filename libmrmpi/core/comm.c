/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: the object, and making one out of another. Context ids are in context.c, two groups in intercomm.c. */
#include "libmrmpi/core/comm.h"
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/launch/launch.h"

#include <stdlib.h>
#include <string.h>

struct mr_comm *mr_comm_world, *mr_comm_self;

/* ---- objects ---- */

enum mr_err mr_comm_make(uint32_t id, struct mr_group *group, const struct mr_comm *parent, struct mr_comm **out)
{
    struct mr_comm *c = *out = group ? calloc(1, sizeof(*c)) : NULL;
    if (!c) {
        if (group)
            mr_group_put(group);
        mr_context_release(id);
        return mr_fail(MR_ERR_NO_MEM, "no memory for a communicator");
    }
    c->refs = 1;
    c->context = id;
    if (parent && group->refs == 1) /* made for this communicator: it comes from the same session */
        mr_group_derive(group, parent->group->session);
    c->group = c->peers = group;
    c->size = c->num_peers = group->size;
    c->rank = group->rank;
    c->errhandler = mr_errhandler_get(parent ? parent->errhandler : &mr_errhandler_fatal);
    return MR_SUCCESS;
}

struct mr_comm *mr_comm_get(struct mr_comm *c)
{
    c->refs++;
    return c;
}

void mr_comm_put(struct mr_comm *c)
{
    if (--c->refs > 0)
        return;
    if (!c->passing)
        mr_context_release(c->context);
    if (c->local) {
        mr_comm_put(c->local);
        mr_group_put(c->peers);
    }
    mr_group_put(c->group);
    mr_errhandler_put(c->errhandler);
    mr_info_put(c->info);
    mr_topology_put(c->topology);
    free(c->place);
    free(c);
}

struct mr_comm *mr_comm_passing(struct mr_group *g, uint32_t context, int tag)
{
    struct mr_comm *p;
    if (mr_comm_make(MR_CONTEXT_NONE, mr_group_get(g), NULL, &p))
        return NULL;
    p->context = context;
    p->passing_tag = tag;
    p->passing = true;
    return p;
}

/* ---- making ---- */

/* What a duplicate has of the original is the topology; attributes are the api's, and hints are not inherited. */
enum mr_err mr_comm_make_dup(struct mr_comm *c, const uint32_t *ids, struct mr_comm **out)
{
    enum mr_err err = mr_comm_is_inter(c) ? mr_inter_make(ids, mr_group_get(c->group), mr_group_get(c->peers), c, out)
                                          : mr_comm_make(ids[0], mr_group_get(c->group), c, out);
    if (!err && c->topology)
        (*out)->topology = mr_topology_get(c->topology);
    return err;
}

enum mr_err mr_comm_dup(struct mr_comm *c, struct mr_comm **out)
{
    *out = NULL;
    struct mr_agreement a = mr_agreement_of(c);
    a.want = mr_comm_is_inter(c) ? 2 : 1;
    enum mr_err err = mr_agreement_run(&a);
    return err ? err : mr_comm_make_dup(c, a.ids, out);
}

struct split_entry {
    int key, rank;
};

static int by_key(const void *a, const void *b)
{
    const struct split_entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank - y->rank;
}

struct mr_group *mr_split_group(const struct mr_group *g, const int (*entries)[2], int color)
{
    int n = 0, *world = malloc((size_t)g->size * sizeof(*world));
    struct split_entry *members = malloc((size_t)g->size * sizeof(*members));
    struct mr_group *made = NULL;
    if (world && members) {
        for (int i = 0; i < g->size; i++)
            if (entries[i][0] == color)
                members[n++] = (struct split_entry){entries[i][1], i};
        qsort(members, (size_t)n, sizeof(*members), by_key);
        for (int i = 0; i < n; i++)
            world[i] = g->world[members[i].rank];
        made = mr_group_new(n, world);
    }
    free(world);
    free(members);
    return made;
}

static enum mr_err intra_split(struct mr_comm *c, int color, int key, struct mr_comm **out)
{
    int mine[2] = {color, key}, (*all)[2] = malloc((size_t)c->size * sizeof(*all));
    if (!all)
        return mr_fail(MR_ERR_NO_MEM, "no memory for MPI_Comm_split");
    struct mr_schedule *s;
    enum mr_err err = mr_coll_allgather(mine, sizeof(mine), mr_type_byte, all, sizeof(mine), mr_type_byte, c, &s);
    err = mr_coll_run(err, s);
    struct mr_agreement a = mr_agreement_of(c);
    a.take = color != MR_UNDEFINED;
    if (!err)
        err = mr_agreement_run(&a);
    if (!err && a.take)
        err = mr_comm_make(a.ids[0], mr_split_group(c->group, (const int(*)[2])all, color), c, out);
    free(all);
    return err;
}

enum mr_err mr_comm_split(struct mr_comm *c, int color, int key, struct mr_comm **out)
{
    *out = NULL;
    return mr_comm_is_inter(c) ? mr_inter_split(c, color, key, out) : intra_split(c, color, key, out);
}

enum mr_err mr_comm_split_node(struct mr_comm *c, bool in, int key, struct mr_comm **out)
{
    return mr_comm_split(c, in ? mr_core_launch()->node_of[mr_comm_world->rank] : MR_UNDEFINED, key, out);
}

bool mr_comm_on_one_node(const struct mr_comm *c)
{
    const int *node_of = mr_core_launch()->node_of;
    for (int i = 1; i < c->size; i++)
        if (node_of[c->group->world[i]] != node_of[c->group->world[0]])
            return false;
    return true;
}

enum mr_err mr_comm_create(struct mr_comm *c, struct mr_group *g, struct mr_comm **out)
{
    *out = NULL;
    if (mr_comm_is_inter(c))
        return mr_inter_create(c, g, out);
    struct mr_agreement a = mr_agreement_of(c);
    a.take = g->rank != MR_UNDEFINED;
    enum mr_err err = mr_agreement_run(&a);
    if (!err && a.take)
        err = mr_comm_make(a.ids[0], mr_group_get(g), c, out);
    return err;
}

/* Only the group's members take part, so the agreement runs on a passing communicator of theirs. */
enum mr_err mr_comm_create_group(struct mr_comm *c, struct mr_group *g, int tag, struct mr_comm **out)
{
    *out = NULL;
    if (g->rank == MR_UNDEFINED)
        return MR_SUCCESS;
    struct mr_comm *tmp = mr_comm_passing(g, MR_CONTEXT_GROUP | c->context, tag);
    if (!tmp)
        return MR_ERR_NO_MEM;
    struct mr_agreement a = mr_agreement_of(tmp);
    enum mr_err err = mr_agreement_run(&a);
    if (!err)
        err = mr_comm_make(a.ids[0], mr_group_get(g), c, out);
    mr_comm_put(tmp);
    return err;
}

static enum mr_compare looser(enum mr_compare a, enum mr_compare b)
{
    return a > b ? a : b;
}

enum mr_compare mr_comm_compare(const struct mr_comm *a, const struct mr_comm *b)
{
    if (a == b)
        return MR_IDENT;
    if (mr_comm_is_inter(a) != mr_comm_is_inter(b))
        return MR_UNEQUAL;
    enum mr_compare cmp = mr_group_compare(a->group, b->group);
    if (mr_comm_is_inter(a))
        cmp = looser(cmp, mr_group_compare(a->peers, b->peers));
    return cmp == MR_IDENT ? MR_CONGRUENT : cmp;
}

/* ---- the two that are always there ---- */

int mr_comm_init(const struct mr_launch *launch)
{
    mr_context_init();
    int *all = malloc((size_t)launch->size * sizeof(*all));
    if (!all)
        return -1;
    for (int i = 0; i < launch->size; i++)
        all[i] = i;
    struct mr_group *world = mr_group_new(launch->size, all), *self = mr_group_new(1, &launch->rank);
    free(all);
    if (!world || !self)
        return -1;
    world->rank = launch->rank;
    self->rank = 0;
    if (mr_comm_make(0, world, NULL, &mr_comm_world) || mr_comm_make(2, self, NULL, &mr_comm_self))
        return -1;
    strcpy(mr_comm_world->name, "MPI_COMM_WORLD");
    strcpy(mr_comm_self->name, "MPI_COMM_SELF");
    return 0;
}

void mr_comm_finalize(void)
{
    if (mr_comm_self)
        mr_comm_put(mr_comm_self);
    if (mr_comm_world)
        mr_comm_put(mr_comm_world);
    mr_comm_self = mr_comm_world = NULL;
    mr_context_finalize();
    mr_idup_finalize();
}
