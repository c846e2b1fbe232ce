/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intercommunicators: a local group, a remote group, one context for the messages between them (each process receives
 * only from the other group, so ranks cannot be mixed up), and an intracommunicator of the local group for its own
 * operations. The groups exchange facts through their leaders.
 */
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/comm/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the two groups tell each other ---- */

static enum mr_err wait_and_put(struct mr_request *r)
{
    mr_wait(r);
    enum mr_err err = r->status.error;
    mr_request_put(r);
    return err;
}

static enum mr_err swap_with_leader(const struct mr_bridge *b, const void *out, size_t out_bytes, void *in,
                                    size_t in_bytes)
{
    struct mr_request *in_req, *out_req;
    enum mr_err err = mr_irecv(in, in_bytes, mr_type_byte, b->remote_leader, b->tag, b->comm, b->context, &in_req);
    if (err)
        return err;
    err = mr_isend(out, out_bytes, mr_type_byte, b->remote_leader, b->tag, b->comm, b->context, MR_SEND_STANDARD,
                   &out_req);
    if (err)
        mr_cancel(in_req);
    else
        err = wait_and_put(out_req);
    enum mr_err in_err = wait_and_put(in_req);
    return err ? err : in_err;
}

/* The leader's data reaches its group. */
static enum mr_err tell_group(const struct mr_bridge *b, void *buf, size_t bytes)
{
    struct mr_schedule *s = NULL;
    enum mr_err err = mr_coll_bcast(buf, bytes, mr_type_byte, b->leader, b->local, &s);
    return mr_coll_run(err, s);
}

/* mine[n] of our leader for theirs[*m] of the other group's, which all members get; the caller frees it. */
static enum mr_err trade_members(const struct mr_bridge *b, const int *mine, int n, int **theirs, int *m)
{
    bool leader = b->local->rank == b->leader;
    struct {
        int error, count;
    } header = {0, 0};
    *theirs = NULL;
    if (leader && swap_with_leader(b, &n, sizeof(n), &header.count, sizeof(header.count)))
        header.error = 1;
    enum mr_err err = tell_group(b, &header, sizeof(header));
    if (err || header.error)
        return err ? err : mr_fail(MR_ERR_OTHER, "the leaders of the two groups did not reach each other");
    int *got = malloc((size_t)header.count * sizeof(*got) + 1);
    if (!got)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the ranks of the remote group");
    if (leader)
        err = swap_with_leader(b, mine, (size_t)n * sizeof(*mine), got, (size_t)header.count * sizeof(*got));
    if (!err)
        err = tell_group(b, got, (size_t)header.count * sizeof(*got));
    if (err) {
        free(got);
        return err;
    }
    *theirs = got;
    *m = header.count;
    return MR_SUCCESS;
}

/* ---- making ---- */

static enum mr_err check_disjoint(const struct mr_group *a, const struct mr_group *b)
{
    for (int i = 0; i < a->size; i++)
        if (mr_group_find(b, a->world[i]) != MR_UNDEFINED)
            return mr_fail(MR_ERR_COMM, "rank %d of the local group is in the remote group, too", i);
    return MR_SUCCESS;
}

static enum mr_err create_intercomm(const struct mr_bridge *b, struct mr_agreement *a, struct mr_comm **out)
{
    int n, *world;
    enum mr_err err = trade_members(b, b->local->group->world, b->local->size, &world, &n);
    if (err)
        return err;
    struct mr_group *remote = mr_group_new(n, world);
    free(world);
    if (!remote)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the remote group");
    if ((err = check_disjoint(b->local->group, remote)) || (err = mr_agreement_run(a))) {
        mr_group_put(remote);
        return err;
    }
    return mr_inter_make(a->ids, mr_group_get(b->local->group), remote, b->local, out);
}

static struct mr_agreement_key key_of(const struct mr_bridge *b)
{
    uint32_t mine = (uint32_t)mr_comm_world->rank, theirs = (uint32_t)mr_comm_world_rank(b->comm, b->remote_leader);
    bool first = mine < theirs;
    return (struct mr_agreement_key){.messages = (uint64_t)b->context << 32 | (uint32_t)b->tag,
                                     .leaders = (uint64_t)(first ? mine : theirs) << 32 | (first ? theirs : mine)};
}

/*
 * An error of one process is an error of its group. The leader need not be known for this, as the leader itself may be
 * wrong.
 */
static enum mr_err agree_in_group(const struct mr_bridge *b, enum mr_err wrong)
{
    uint64_t well = mr_well_but(wrong);
    struct mr_schedule *s = NULL;
    enum mr_err err = mr_coll_allreduce(MR_IN_PLACE, &well, 1, &mr_type_basic[MR_BASIC_UINT64_T],
                                        &mr_op_builtin[MR_OP_BAND], b->local, &s);

    err = mr_coll_run(err, s);
    if (err || wrong || well == UINT64_MAX)
        return wrong ? wrong : err;
    return mr_refused_by_other((enum mr_err)__builtin_ctzll(~well));
}

/* Then the leaders tell each other whether their groups go on. */
enum mr_err mr_inter_connect(const struct mr_bridge *b, enum mr_err wrong, struct mr_comm **out)
{
    struct mr_agreement a = {.local = b->local, .bridge = *b, .want = 2, .take = true};
    struct {
        struct mr_agreement_key key;
        int ours, theirs;
    } hello = {.ours = (int)agree_in_group(b, wrong)};
    const bool leads = b->local->rank == b->leader && b->remote_leader != MR_PROC_NULL;
    enum mr_err err = (enum mr_err)hello.ours;

    if (leads && swap_with_leader(b, &hello.ours, sizeof(int), &hello.theirs, sizeof(int)))
        hello.theirs = MR_ERR_OTHER;
    if (leads)
        hello.key = key_of(b);
    if (!err)
        err = tell_group(b, &hello, sizeof(hello));
    if (err || hello.theirs)
        return err ? err : mr_refused_by_other((enum mr_err)hello.theirs);
    a.key = hello.key;
    return create_intercomm(b, &a, out);
}

enum mr_err mr_intercomm_create(struct mr_comm *local, int leader, struct mr_comm *peer, int remote_leader, int tag,
                                enum mr_err wrong, struct mr_comm **out)
{
    if (!peer) /* not the leader, the only user */
        peer = local;
    struct mr_bridge b = {local, peer, MR_CONTEXT_LEADERS | peer->context, leader, remote_leader, tag};
    *out = NULL;
    return mr_inter_connect(&b, wrong, out);
}

/* The first group: the group that is not high; if both say the same, the group with the lowest first rank. */
static bool comes_first(const struct mr_comm *c, bool high, bool remote_high)
{
    return high != remote_high ? remote_high : c->group->world[0] < c->peers->world[0];
}

enum mr_err mr_intercomm_merge(struct mr_comm *c, bool high, enum mr_err wrong, struct mr_comm **out)
{
    int mine = high, *theirs, m;
    struct mr_bridge b = mr_bridge_of(c);
    *out = NULL;
    enum mr_err err = tell_group(&b, &mine, sizeof(mine)); /* all follow the leader's value */
    if (!err)
        err = trade_members(&b, &mine, 1, &theirs, &m);
    if (err)
        return err;
    bool first = comes_first(c, mine, theirs[0]);
    free(theirs);
    struct mr_agreement a = mr_agreement_of(c);
    a.wrong = wrong;
    if ((err = mr_agreement_run(&a)))
        return err;
    struct mr_group *all = mr_group_union(first ? c->group : c->peers, first ? c->peers : c->group);
    return mr_comm_make(a.ids[0], all, c, out);
}

/* Makes one of the two parts; if either is empty nobody gets any. Takes the groups over. */
static enum mr_err part(struct mr_comm *c, struct mr_group *group, struct mr_group *remote, enum mr_err wrong,
                        struct mr_comm **out)
{
    struct mr_agreement a = mr_agreement_of(c);
    a.want = 2;
    a.wrong = wrong;
    a.take = group && remote && group->rank != MR_UNDEFINED && remote->size;
    enum mr_err err = mr_agreement_run(&a);
    if (!err && a.take)
        return mr_inter_make(a.ids, group, remote, c, out);
    if (!err && !(group && remote))
        err = mr_fail(MR_ERR_NO_MEM, "no memory for a group");
    if (group)
        mr_group_put(group);
    if (remote)
        mr_group_put(remote);
    return err;
}

enum mr_err mr_inter_split(struct mr_comm *c, int color, int key, enum mr_err wrong, struct mr_comm **out)
{
    struct mr_bridge b = mr_bridge_of(c);
    struct mr_schedule *s = NULL;
    int mine[2] = {color, key}, m = 0, *theirs = NULL, (*all)[2] = malloc((size_t)c->size * sizeof(*all));
    if (!all)
        return mr_fail(MR_ERR_NO_MEM, "no memory for MPI_Comm_split");
    enum mr_err err =
        mr_coll_allgather(mine, sizeof(mine), mr_type_byte, all, sizeof(mine), mr_type_byte, c->local, &s);
    err = mr_coll_run(err, s);
    if (!err)
        err = trade_members(&b, all[0], 2 * c->size, &theirs, &m);
    if (!err && (wrong || color == MR_UNDEFINED))
        err = part(c, &mr_group_empty, &mr_group_empty, wrong, out);
    else if (!err)
        err = part(c, mr_group_split(c->group, (const int(*)[2])all, color),
                   mr_group_split(c->peers, (const int(*)[2])theirs, color), wrong, out);
    free(all);
    free(theirs);
    return err;
}

enum mr_err mr_inter_create(struct mr_comm *c, struct mr_group *g, enum mr_err wrong, struct mr_comm **out)
{
    struct mr_bridge b = mr_bridge_of(c);
    int m, *theirs;
    enum mr_err err = trade_members(&b, g->world, g->size, &theirs, &m);
    if (err)
        return err;
    struct mr_group *remote = mr_group_new(m, theirs);
    free(theirs);
    return part(c, mr_group_get(g), remote, wrong, out);
}
