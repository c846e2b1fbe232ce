/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators without a parent: from groups of a session. Their members meet in a context, and with a tag, made from
 * the program's name for the creation: creations by threads at the same time have different names.
 */
#include "libmrmpi/coll/comm/internal.h"

struct name {
    uint32_t context;
    int tag;
};

/* 57 bits of the name: even thousands of names at a time do not meet by chance. */
static struct name hash_name(const char *name)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a, and a last mixing, since short names differ in few bits */
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
    return (struct name){MR_CONTEXT_NO_PARENT | (uint32_t)(h >> 32 & MR_CONTEXT_NAME_BITS), (int)(h & 0x7fffffff)};
}

enum mr_err mr_comm_create_from_group(struct mr_group *g, const char *name, enum mr_err wrong, struct mr_comm **out)
{
    struct name n = hash_name(name);
    *out = NULL;
    struct mr_comm *c = mr_comm_passing(g, n.context, n.tag);
    if (!c)
        return MR_ERR_NO_MEM;
    struct mr_agreement a = mr_agreement_of(c);
    a.wrong = wrong;
    enum mr_err err = mr_agreement_run(&a);
    if (!err)
        err = mr_comm_make(a.ids[0], mr_group_get(g), NULL, out);
    mr_comm_put(c);
    return err;
}

enum mr_err mr_intercomm_create_from_groups(struct mr_group *local, int leader, struct mr_group *remote,
                                            int remote_leader, const char *name, enum mr_err wrong,
                                            struct mr_comm **out)
{
    struct name n = hash_name(name);
    *out = NULL;
    struct mr_comm *c = mr_comm_passing(local, n.context, n.tag);
    /* the leaders find each other by their numbers */
    int to = remote ? remote->world[remote_leader] : MR_PROC_NULL;
    struct mr_bridge b = {c, c ? mr_comm_for(to) : NULL, MR_CONTEXT_LEADERS | n.context, leader, to, n.tag};
    if (!b.comm) {
        if (c)
            mr_comm_put(c);
        return MR_ERR_NO_MEM;
    }
    enum mr_err err = mr_inter_connect(&b, wrong, out);
    mr_comm_put(c);
    return err;
}
