/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intercommunicators: a local group, a remote group, one context for the messages between them (each process receives
 * only from the other group, so ranks cannot be mixed up), and an intracommunicator of the local group for its own
 * operations. The groups exchange facts through their leaders.
 */
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/comm/internal.h"
#include "libmrmpi/launch/launch.h"

#include <errno.h>
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

enum mr_err mr_send_to_leader(const struct mr_bridge *b, const void *data, size_t bytes)
{
    struct mr_request *req;
    enum mr_err err =
        mr_isend(data, bytes, mr_type_byte, b->remote_leader, b->tag, b->comm, b->context, MR_SEND_STANDARD, &req);

    return err ? err : wait_and_put(req);
}

enum mr_err mr_receive_from_leader(const struct mr_bridge *b, void *data, size_t bytes)
{
    struct mr_request *req;
    enum mr_err err = mr_irecv(data, bytes, mr_type_byte, b->remote_leader, b->tag, b->comm, b->context, &req);

    return err ? err : wait_and_put(req);
}

/* The leader's data reaches its group. */
static enum mr_err tell_group(const struct mr_bridge *b, void *buf, size_t bytes)
{
    struct mr_schedule *s = NULL;
    enum mr_err err = mr_coll_bcast(buf, bytes, mr_type_byte, b->leader, b->local, &s);
    return mr_coll_run(err, s);
}

/*
 * bytes of our leader for those of the other group's leader, which all members get; the caller frees them. each: of the
 * things that are traded.
 */
static enum mr_err trade_bytes(const struct mr_bridge *b, const void *mine, int n, size_t each, void **theirs, int *m)
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
    if (header.count < 0)
        return mr_fail(MR_ERR_OTHER, "the other group's leader has sent an impossible number of ranks");
    void *got = malloc((size_t)header.count * each + 1);
    if (!got)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the ranks of the remote group");
    if (leader)
        err = swap_with_leader(b, mine, (size_t)n * each, got, (size_t)header.count * each);
    if (!err)
        err = tell_group(b, got, (size_t)header.count * each);
    if (err) {
        free(got);
        return err;
    }
    *theirs = got;
    *m = header.count;
    return MR_SUCCESS;
}

/* The same with mine[n] and theirs[*m]. */
static enum mr_err trade_members(const struct mr_bridge *b, const int *mine, int n, int **theirs, int *m)
{
    void *got;
    enum mr_err err = trade_bytes(b, mine, n, sizeof(*mine), &got, m);
    *theirs = got;
    return err;
}

/* ---- groups of several jobs ---- */

/*
 * The cards of the local group, at the leader, in the order of its ranks; a card without job: an error of its process.
 */
static enum mr_err gather_cards(const struct mr_bridge *b, struct mr_card *all)
{
    struct mr_card mine;
    struct mr_schedule *s = NULL;
    if (mr_guest_open(&mine))
        mine = (struct mr_card){0};
    enum mr_err err =
        mr_coll_gather(&mine, sizeof(mine), mr_type_byte, all, sizeof(mine), mr_type_byte, b->leader, b->local, &s);
    return mr_coll_run(err, s);
}

/*
 * Jobs number processes differently, so the members of a group are described by their cards. *world: the remote group
 * in our numbers. Returns an error of this process alone as *wrong.
 */
static enum mr_err trade_cards(const struct mr_bridge *b, int **world, int *num, enum mr_err *wrong)
{
    struct mr_card *mine = calloc((size_t)b->local->size, sizeof(*mine)), *theirs = NULL;
    void *got = NULL;
    enum mr_err err = mine ? gather_cards(b, mine) : mr_fail(MR_ERR_NO_MEM, "no memory for the processes of a group");
    if (!err)
        err = trade_bytes(b, mine, b->local->size, sizeof(*mine), &got, num);
    free(mine);
    theirs = got;
    *world = err ? NULL : calloc((size_t)*num + 1, sizeof(**world));
    if (!err && !*world)
        *wrong = mr_fail(MR_ERR_NO_MEM, "no memory for the remote group");
    for (int i = 0; !err && !*wrong && i < *num; i++) {
        int number = theirs[i].job ? mr_guest_meet(&theirs[i]) : -EADDRNOTAVAIL;
        if (number < 0)
            *wrong = mr_fail(MR_ERR_OTHER, "rank %d of the remote group: %s", i, strerror(-number));
        else
            (*world)[i] = number;
    }
    free(got);
    return err;
}

/* ---- making ---- */

static enum mr_err check_disjoint(const struct mr_group *a, const struct mr_group *b)
{
    for (int i = 0; i < a->size; i++)
        if (mr_group_find(b, a->world[i]) != MR_UNDEFINED)
            return mr_fail(MR_ERR_COMM, "rank %d of the local group is in the remote group, too", i);
    return MR_SUCCESS;
}

/* cards: processes of several jobs take part. */
static enum mr_err create_intercomm(const struct mr_bridge *b, struct mr_agreement *a, bool cards, struct mr_comm **out)
{
    int n, *world;
    enum mr_err err = cards ? trade_cards(b, &world, &n, &a->wrong)
                            : trade_members(b, b->local->group->world, b->local->size, &world, &n);
    if (err)
        return err;
    struct mr_group *remote = world ? mr_group_new(n, world) : NULL;
    free(world);
    if (!remote && !cards)
        return mr_fail(MR_ERR_NO_MEM, "no memory for the remote group");
    if (!remote) /* others may have memory */
        a->wrong = MR_ERR_NO_MEM;
    if (remote && !a->wrong)
        a->wrong = cards ? check_disjoint(b->local->group, remote) : MR_SUCCESS;
    if ((!cards && (err = check_disjoint(b->local->group, remote))) || (err = mr_agreement_run(a))) {
        if (remote)
            mr_group_put(remote);
        return err;
    }
    if (cards)
        mr_guests_greet(remote);
    return mr_inter_make(a->ids, mr_group_get(b->local->group), remote, b->local, out);
}

static struct mr_agreement_key key_of(const struct mr_bridge *b)
{
    int to = mr_comm_world_rank(b->comm, b->remote_leader);
    bool guest = to > mr_comm_world->size; /* both leaders must have the same key */
    uint32_t mine = guest ? (uint32_t)mr_guest_name(mr_comm_world->rank) : (uint32_t)mr_comm_world->rank;
    uint32_t theirs = guest ? (uint32_t)mr_guest_name(to) : (uint32_t)to;
    bool first = mine < theirs;
    return (struct mr_agreement_key){.messages = (uint64_t)b->context << 32 | (uint32_t)b->tag,
                                     .leaders = (uint64_t)(first ? mine : theirs) << 32 | (first ? theirs : mine)};
}

enum mr_err mr_agree_in_group(struct mr_comm *c, enum mr_err wrong)
{
    uint64_t well = mr_well_but(wrong);
    struct mr_schedule *s = NULL;
    enum mr_err err =
        mr_coll_allreduce(MR_IN_PLACE, &well, 1, &mr_type_basic[MR_BASIC_UINT64_T], &mr_op_builtin[MR_OP_BAND], c, &s);

    err = mr_coll_run(err, s);
    if (err || wrong || well == UINT64_MAX)
        return wrong ? wrong : err;
    return mr_refused_by_other((enum mr_err)__builtin_ctzll(~well));
}

/* Then the leaders tell each other whether their groups go on. */
enum mr_err mr_inter_connect(const struct mr_bridge *b, enum mr_err wrong, struct mr_comm **out)
{
    struct mr_agreement a = {.local = b->local, .bridge = *b, .want = 2, .take = true};
    struct greeting {
        uint16_t error, cards;
    };
    struct {
        struct mr_agreement_key key;
        struct greeting ours, theirs;
    } hello = {.ours.error = (uint16_t)mr_agree_in_group(b->local, wrong)};
    const bool leads = b->local->rank == b->leader && b->remote_leader != MR_PROC_NULL;
    enum mr_err err = (enum mr_err)hello.ours.error;

    if (leads)
        hello.ours.cards =
            b->local->group->mixed || mr_comm_world_rank(b->comm, b->remote_leader) > mr_comm_world->size;
    if (leads && swap_with_leader(b, &hello.ours, sizeof(hello.ours), &hello.theirs, sizeof(hello.theirs)))
        hello.theirs.error = MR_ERR_OTHER;
    if (leads)
        hello.key = key_of(b);
    if (!err)
        err = tell_group(b, &hello, sizeof(hello));
    if (err || hello.theirs.error)
        return err ? err : mr_refused_by_other((enum mr_err)hello.theirs.error);
    a.key = hello.key;
    return create_intercomm(b, &a, hello.ours.cards || hello.theirs.cards, out);
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
    return high != remote_high ? remote_high : mr_guest_compare(c->group->world[0], c->peers->world[0]) < 0;
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
    int m, *theirs, *ranks = malloc((size_t)g->size * sizeof(*ranks) + 1);
    if (!ranks)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a group");
    for (int i = 0; i < g->size; i++) /* ranks of the local group: the other group may number processes differently */
        ranks[i] = mr_group_find(c->group, g->world[i]);
    enum mr_err err = trade_members(&b, ranks, g->size, &theirs, &m);
    free(ranks);
    if (err)
        return err;
    struct mr_group *remote = NULL, *all = mr_comm_peers(c);
    bool all_there = true;
    for (int i = 0; i < m; i++) {
        all_there &= theirs[i] >= 0 && theirs[i] < all->size;
        theirs[i] = all_there ? all->world[theirs[i]] : 0;
    }
    if (all_there)
        remote = mr_group_new(m, theirs);
    free(theirs);
    return part(c, mr_group_get(g), remote, wrong, out);
}
