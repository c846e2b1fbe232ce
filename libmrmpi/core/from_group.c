/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators without a parent: from groups of a session. Their members meet on a context that nothing else uses, with
 * tags made of the name that the program gave the creation, so that creations under different names keep apart.
 */
#include "libmrmpi/core/comm.h"

static uint32_t hash_of(const char *name)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h ^ h >> 23;
}

/* The members of g on the common context. */
static struct mr_comm *meet(struct mr_group *g, uint32_t name)
{
    struct mr_comm *c = mr_comm_passing(mr_comm_world, g, (name & 0x3fffff) << 8);
    if (c)
        c->context = MR_CONTEXT_NO_PARENT;
    return c;
}

enum mr_err mr_comm_create_from_group(struct mr_group *g, const char *name, struct mr_comm **out)
{
    *out = NULL;
    struct mr_comm *c = meet(g, hash_of(name));
    if (!c)
        return MR_ERR_NO_MEM;
    struct mr_agreement a = mr_agreement_of(c);
    a.key = (uint64_t)c->context << 32 | c->coll_base;
    enum mr_err err = mr_agreement_run(&a);
    if (!err)
        err = mr_comm_make(a.ids[0], mr_group_get(g), NULL, out);
    mr_comm_put(c);
    return err;
}

enum mr_err mr_intercomm_create_from_groups(struct mr_group *local, int leader, struct mr_group *remote,
                                            int remote_leader, const char *name, struct mr_comm **out)
{
    *out = NULL;
    uint32_t h = hash_of(name);
    struct mr_comm *mine = meet(local, h), *all = meet(mr_comm_world->group, h);
    enum mr_err err = mine && all ? MR_SUCCESS : MR_ERR_NO_MEM;
    if (!err) /* the leaders find each other by their places in the world */
        err = mr_intercomm_create(mine, leader, all, remote ? remote->world[remote_leader] : 0, (int)(h & 0xfffffff), out);
    if (mine)
        mr_comm_put(mine);
    if (all)
        mr_comm_put(all);
    return err;
}
