/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: the object. Making one out of another is the business of coll/comm/. */
#include "libmrmpi/base/packet.h"
#include "libmrmpi/core/context.h"
#include "libmrmpi/core/core.h"
#include "libmrmpi/launch/launch.h"

#include <stdlib.h>
#include <string.h>

struct mr_comm *mr_comm_world, *mr_comm_self, *mr_comms;
struct mr_core_upcalls mr_core_up;

/* ---- objects ---- */

enum mr_err mr_comm_make(uint32_t id, struct mr_group *group, const struct mr_comm *parent, struct mr_comm **out)
{
    static uint64_t num_born;
    struct mr_comm *c = *out = group ? calloc(1, sizeof(*c)) : NULL;
    if (!c) {
        if (group)
            mr_group_put(group);
        mr_context_release(id);
        return mr_fail(MR_ERR_NO_MEM, "no memory for a communicator");
    }
    c->refs = 1;
    c->born = ++num_born;
    c->context = id;
    if (parent && group->refs == 1) /* made for this communicator: it comes from the same session */
        mr_group_derive(group, parent->group->session);
    c->group = c->peers = group;
    c->size = c->num_peers = group->size;
    c->rank = group->rank;
    c->errhandler = mr_errhandler_get(parent ? parent->errhandler : &mr_errhandler_fatal);
    c->next_live = mr_comms;
    if (mr_comms)
        mr_comms->prev_live = c;
    mr_comms = c;
    if (mr_core_up.comm_made)
        mr_core_up.comm_made(c);
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
    if (c->next_live)
        c->next_live->prev_live = c->prev_live;
    *(c->prev_live ? &c->prev_live->next_live : &mr_comms) = c->next_live;
    /* Messages of operations that others gave up may still come, and must not meet those of another communicator. */
    if (!c->passing && !c->part && !c->fault && !c->source_revoked)
        mr_context_release(c->context);
    if (c->peers_before) {
        mr_group_put(c->peers);
        c->peers = c->peers_before;
    }
    if (c->local) {
        mr_comm_put(c->local);
        mr_group_put(c->peers);
    }
    mr_group_put(c->group);
    mr_errhandler_put(c->errhandler);
    mr_info_put(c->info);
    mr_topology_put(c->topology);
    if (c->node || c->grid)
        mr_core_up.node_end(c);
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

struct mr_comm *mr_comm_part(const struct mr_comm *c, struct mr_group *g, enum mr_comm_parts which)
{
    struct mr_comm *p;
    if (mr_comm_make(MR_CONTEXT_NONE, g, c, &p))
        return NULL;
    p->context = c->context | (uint32_t)which;
    p->part = true;
    p->whole = c;
    return p;
}

enum mr_err mr_inter_make(const uint32_t *ids, struct mr_group *group, struct mr_group *remote,
                          const struct mr_comm *parent, struct mr_comm **out)
{
    struct mr_comm *local;
    struct mr_session *session = parent ? parent->group->session : NULL;
    if (group && group->refs == 1)
        mr_group_derive(group, session);
    if (remote && remote->refs == 1)
        mr_group_derive(remote, session);
    struct mr_group *same = group ? mr_group_get(group) : NULL;
    enum mr_err err = mr_comm_make(ids[0], group, parent, out);
    enum mr_err local_err = mr_comm_make(ids[1], same, parent, &local);
    if (!err && !local_err && remote) {
        (*out)->local = local;
        (*out)->peers = remote;
        (*out)->num_peers = remote->size;
        if (mr_core_up.comm_made)
            mr_core_up.comm_made(*out);
        return MR_SUCCESS;
    }
    if (!err)
        mr_comm_put(*out);
    if (!local_err)
        mr_comm_put(local);
    if (remote)
        mr_group_put(remote);
    *out = NULL;
    return mr_fail(MR_ERR_NO_MEM, "no memory for an intercommunicator");
}

/* A duplicate has the original's topology; attributes belong to api/, and hints are not inherited. */
enum mr_err mr_comm_make_dup(struct mr_comm *c, const uint32_t *ids, struct mr_comm **out)
{
    enum mr_err err = mr_comm_is_inter(c)
                          ? mr_inter_make(ids, mr_group_get(c->group), mr_group_get(mr_comm_peers(c)), c, out)
                          : mr_comm_make(ids[0], mr_group_get(c->group), c, out);
    if (!err && c->topology)
        (*out)->topology = mr_topology_get(c->topology);
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
        cmp = looser(cmp, mr_group_compare(mr_comm_peers(a), mr_comm_peers(b)));
    return cmp == MR_IDENT ? MR_CONGRUENT : cmp;
}

bool mr_comm_on_one_node(const struct mr_comm *c)
{
    const int *node_of = mr_launch_info()->node_of;
    if (c->group->mixed)
        return false;
    for (int i = 1; i < c->size; i++)
        if (node_of[c->group->world[i]] != node_of[c->group->world[0]])
            return false;
    return true;
}

int mr_comm_node_of(const struct mr_comm *c, int rank)
{
    /* of the group: after a revocation, the number of a rank is that of nobody */
    return c->group->mixed ? rank : mr_launch_info()->node_of[c->group->world[rank]];
}

/* ---- messages by number ---- */

static struct mr_comm *numbered; /* its peers: all numbers so far */

struct mr_comm *mr_comm_for(int number)
{
    struct mr_group *g;
    int *all, end = mr_guest_end();

    if (number < mr_comm_world->size)
        return mr_comm_world;
    if (numbered && number < numbered->num_peers)
        return numbered;
    all = malloc((size_t)end * sizeof(*all));
    for (int i = 0; all && i < end; i++)
        all[i] = i;
    g = all ? mr_group_new(end, all) : NULL;
    free(all);
    if (!g)
        return NULL;
    if (!numbered) {
        if (mr_comm_make(MR_CONTEXT_NONE, g, NULL, &numbered))
            return NULL;
        numbered->rank = MR_RANK_OF_SOURCE;
        return numbered;
    }
    mr_group_put(numbered->group);
    numbered->group = numbered->peers = g;
    numbered->size = numbered->num_peers = g->size;
    return numbered;
}

bool mr_guest_is_named(int number)
{
    return mr_groups_name(number, numbered ? numbered->group : NULL);
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
    if (numbered)
        mr_comm_put(numbered);
    numbered = NULL;
    if (mr_comm_self)
        mr_comm_put(mr_comm_self);
    if (mr_comm_world)
        mr_comm_put(mr_comm_world);
    mr_comm_self = mr_comm_world = NULL;
    mr_context_finalize();
}
