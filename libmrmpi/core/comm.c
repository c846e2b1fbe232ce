/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators. A context id is a bit that is free at all members: they AND their masks of free ids. Only one thread
 * of a process may have the mask on offer at a time; the others offer nothing and try again, and the communicator with
 * the lowest context goes first everywhere, so that two creations in two threads cannot starve each other.
 */
#include "libmrmpi/coll/coll.h"
#include "libmrmpi/core/objects.h"
#include "libmrmpi/launch/launch.h"

#include <stdlib.h>
#include <string.h>

enum { CONTEXT_WORDS = 64, CONTEXT_MAX = CONTEXT_WORDS * 64 };

/* Context ids of this process. */
static struct {
    uint64_t free[CONTEXT_WORDS];
    bool offered;      /* a thread has the mask in an agreement */
    uint32_t *waiting; /* contexts of the parents on which a thread of ours creates now */
    int num_waiting, cap_waiting;
} contexts;

struct mr_comm *mr_comm_world, *mr_comm_self;

/* ---- context ids ---- */

static bool context_wait(uint32_t key)
{
    if (contexts.num_waiting == contexts.cap_waiting) {
        int cap = contexts.cap_waiting ? 2 * contexts.cap_waiting : 8;
        uint32_t *w = realloc(contexts.waiting, (size_t)cap * sizeof(*w));
        if (!w)
            return false;
        contexts.waiting = w;
        contexts.cap_waiting = cap;
    }
    contexts.waiting[contexts.num_waiting++] = key;
    return true;
}

static void context_wait_end(uint32_t key)
{
    for (int i = 0; i < contexts.num_waiting; i++) {
        if (contexts.waiting[i] == key) {
            contexts.waiting[i] = contexts.waiting[--contexts.num_waiting];
            return;
        }
    }
}

static bool context_my_turn(uint32_t key)
{
    if (contexts.offered)
        return false;
    for (int i = 0; i < contexts.num_waiting; i++)
        if (contexts.waiting[i] < key)
            return false;
    return true;
}

/* Collective over parent. Members that will not be in the new communicator do not take the id. */
static enum mr_err context_agree(struct mr_comm *parent, uint32_t key, bool take, uint32_t *context)
{
    struct {
        uint64_t all_offer, mask[CONTEXT_WORDS];
    } w;
    enum mr_err err = MR_SUCCESS;
    if (!context_wait(key))
        return MR_ERR_NO_MEM;
    for (;;) {
        bool mine = context_my_turn(key);
        memset(&w, 0, sizeof(w));
        if (mine) {
            contexts.offered = true;
            w.all_offer = 1;
            memcpy(w.mask, contexts.free, sizeof(w.mask));
        }
        struct mr_schedule *s;
        err = mr_coll_allreduce(MR_IN_PLACE, &w, sizeof(w) / sizeof(uint64_t), &mr_type_basic[MR_BASIC_UINT64_T],
                                &mr_op_builtin[MR_OP_BAND], parent, &s);
        err = mr_coll_run(err, s);
        if (mine)
            contexts.offered = false;
        if (err || w.all_offer)
            break;
    }
    context_wait_end(key);
    if (err)
        return err;
    for (int i = 0; i < CONTEXT_WORDS; i++) {
        if (!w.mask[i])
            continue;
        int bit = __builtin_ctzll(w.mask[i]);
        if (take)
            contexts.free[i] &= ~(1ull << bit);
        *context = 2 * (uint32_t)(64 * i + bit);
        return MR_SUCCESS;
    }
    return mr_fail(MR_ERR_OTHER, "no context id is left: more than %d communicators", CONTEXT_MAX);
}

static void context_release(uint32_t context)
{
    contexts.free[context / 2 / 64] |= 1ull << (context / 2 % 64);
}

/* ---- objects ---- */

/* Takes the reference to group over. */
static struct mr_comm *comm_new(uint32_t context, struct mr_group *group, const struct mr_comm *parent)
{
    struct mr_comm *c = calloc(1, sizeof(*c));
    if (!c) {
        mr_group_put(group);
        return NULL;
    }
    c->refs = 1;
    c->context = context;
    c->group = group;
    c->size = group->size;
    c->rank = group->rank;
    c->errhandler = mr_errhandler_get(parent ? parent->errhandler : &mr_errhandler_fatal);
    return c;
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
    if (!c->passing) /* the parent's */
        context_release(c->context);
    mr_group_put(c->group);
    mr_errhandler_put(c->errhandler);
    mr_info_put(c->info);
    mr_cart_free(c->topology);
    free(c);
}

static enum mr_err finish(uint32_t context, struct mr_group *group, const struct mr_comm *parent, struct mr_comm **out)
{
    struct mr_comm *c = group ? comm_new(context, group, parent) : NULL;
    if (!c) {
        context_release(context);
        return mr_fail(MR_ERR_NO_MEM, "no memory for a communicator");
    }
    *out = c;
    return MR_SUCCESS;
}

enum mr_err mr_comm_dup(struct mr_comm *c, struct mr_comm **out)
{
    uint32_t context;
    *out = NULL;
    enum mr_err err = context_agree(c, c->context, true, &context);
    if (!err)
        err = finish(context, mr_group_get(c->group), c, out);
    if (err)
        return err;
    if (c->topology)
        (*out)->topology = mr_cart_dup(c->topology);
    if (c->info)
        (*out)->info = mr_info_dup(c->info);
    return MR_SUCCESS;
}

struct split_entry {
    int color, key, rank;
};

static int by_key(const void *a, const void *b)
{
    const struct split_entry *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank - y->rank;
}

/* The members of one color, in order. */
static struct mr_group *split_group(struct mr_comm *c, struct split_entry *all, int color)
{
    int n = 0, *world = malloc((size_t)c->size * sizeof(*world));
    for (int i = 0; i < c->size; i++) {
        if (all[i].color != color)
            continue;
        all[n] = all[i];
        all[n++].rank = i;
    }
    qsort(all, (size_t)n, sizeof(*all), by_key);
    for (int i = 0; world && i < n; i++)
        world[i] = mr_comm_world_rank(c, all[i].rank);
    struct mr_group *g = world ? mr_group_new(n, world) : NULL;
    free(world);
    return g;
}

enum mr_err mr_comm_split(struct mr_comm *c, int color, int key, struct mr_comm **out)
{
    *out = NULL;
    struct split_entry mine = {color, key, 0}, *all = malloc((size_t)c->size * sizeof(*all));
    if (!all)
        return mr_fail(MR_ERR_NO_MEM, "no memory for MPI_Comm_split");
    struct mr_schedule *s;
    enum mr_err err = mr_coll_allgather(&mine, sizeof(mine), mr_type_byte, all, sizeof(mine), mr_type_byte, c, &s);
    err = mr_coll_run(err, s);
    uint32_t context;
    if (!err)
        err = context_agree(c, c->context, color != MR_UNDEFINED, &context);
    if (!err && color != MR_UNDEFINED)
        err = finish(context, split_group(c, all, color), c, out);
    free(all);
    return err;
}

enum mr_err mr_comm_split_node(struct mr_comm *c, bool in, int key, struct mr_comm **out)
{
    return mr_comm_split(c, in ? mr_core_launch()->node_of[mr_comm_world->rank] : MR_UNDEFINED, key, out);
}

enum mr_err mr_comm_create(struct mr_comm *c, struct mr_group *g, struct mr_comm **out)
{
    *out = NULL;
    uint32_t context;
    enum mr_err err = context_agree(c, c->context, g->rank != MR_UNDEFINED, &context);
    if (!err && g->rank != MR_UNDEFINED)
        err = finish(context, mr_group_get(g), c, out);
    return err;
}

/*
 * Only the group's members take part, so the agreement runs on a passing communicator of theirs: the parent's context,
 * ranks of the group, and tags that collectives of the parent do not use.
 */
enum mr_err mr_comm_create_group(struct mr_comm *c, struct mr_group *g, int tag, struct mr_comm **out)
{
    *out = NULL;
    if (g->rank == MR_UNDEFINED)
        return MR_SUCCESS;
    struct mr_comm *tmp = comm_new(c->context, mr_group_get(g), c);
    if (!tmp)
        return mr_fail(MR_ERR_NO_MEM, "no memory for a communicator");
    tmp->coll_base = 0x40000000u | ((uint32_t)tag << 4 & 0x3fffffff);
    uint32_t context;
    enum mr_err err = context_agree(tmp, c->context, true, &context);
    if (!err)
        err = finish(context, mr_group_get(g), c, out);
    tmp->passing = true;
    mr_comm_put(tmp);
    return err;
}

enum mr_compare mr_comm_compare(const struct mr_comm *a, const struct mr_comm *b)
{
    if (a == b)
        return MR_IDENT;
    enum mr_compare cmp = mr_group_compare(a->group, b->group);
    return cmp == MR_IDENT ? MR_CONGRUENT : cmp;
}

/* ---- the two that are always there ---- */

int mr_comm_init(const struct mr_launch *launch)
{
    memset(contexts.free, 0xff, sizeof(contexts.free));
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
    mr_comm_world = comm_new(0, world, NULL);
    mr_comm_self = comm_new(2, self, NULL);
    if (!mr_comm_world || !mr_comm_self)
        return -1;
    contexts.free[0] &= ~3ull;
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
    free(contexts.waiting);
    memset(&contexts, 0, sizeof(contexts));
}
