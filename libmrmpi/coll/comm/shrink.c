/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A communicator of the living members of another: one agreement, whose decision names the failed members, and the
 * context, or the first of the two contexts of an intercommunicator. Its number is the largest that a member has not
 * used. Two communicators made at a time could get the same number from different members, so a process offers a number
 * in one agreement at a time; where a member has not offered, the members agree again. Of several the lowest context
 * goes first, everywhere.
 */
#include <stdlib.h>

#include "libmrmpi/coll/coll.h"
#include "libmrmpi/coll/comm/internal.h"

struct shrink {
    struct shrink *next;
    struct mr_comm *parent, **out;
    struct mr_request *req;
    uint32_t nth, again; /* of the communicator's agreements; further ones */
    bool offers;
};

static struct {
    struct shrink *active; /* the oldest first */
    bool offered;
    uint32_t next_number;
} shrinks;

void mr_shrinks_finalize(void)
{
    shrinks.active = NULL;
    shrinks.offered = false;
    shrinks.next_number = 0;
}

static bool may_offer(const struct shrink *s)
{
    if (shrinks.offered)
        return false;
    for (const struct shrink *o = shrinks.active; o; o = o->next)
        if (o->parent->context < s->parent->context)
            return false;
    for (const struct shrink *o = shrinks.active; o != s; o = o->next)
        if (o->parent == s->parent)
            return false;
    return true;
}

static void end_shrink(struct shrink *s, enum mr_err err)
{
    struct shrink **at = &shrinks.active;

    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    s->req->status.error = err;
    mr_request_complete(s->req);
    mr_request_put(s->req);
    mr_comm_put(s->parent);
    free(s);
}

/* The members of g that live, in its order. NULL: no memory. */
static struct mr_group *living(const struct mr_group *g, const struct mr_agreed *d)
{
    int *world = malloc((size_t)g->size * sizeof(*world) + 1), n = 0;
    struct mr_group *made;

    if (!world)
        return NULL;
    for (int i = 0; i < g->size; i++)
        if (!mr_agreed_failed(d, mr_group_find(d->group, g->world[i])))
            world[n++] = g->world[i];
    made = mr_group_new(n, world);
    free(world);
    return made;
}

/* Of two groups; none where nobody lives in one of them. */
static enum mr_err make_inter(const struct shrink *s, const struct mr_agreed *d, const uint32_t *ids)
{
    struct mr_group *g = living(s->parent->group, d), *peers = living(mr_comm_peers(s->parent), d);

    if (!g || !peers || peers->size)
        return mr_inter_make(ids, g, peers, s->parent, s->out);
    mr_group_put(g);
    mr_group_put(peers);
    return MR_SUCCESS;
}

static uint32_t contexts_of(const struct mr_comm *parent)
{
    return mr_comm_is_inter(parent) ? 2 : 1;
}

static enum mr_err make_shrunken(const struct shrink *s, const struct mr_agreed *d)
{
    uint32_t ids[2] = {MR_CONTEXT_ONCE + 2 * d->number, MR_CONTEXT_ONCE + 2 * (d->number + 1)};

    if (d->number + contexts_of(s->parent) > MR_CONTEXT_ONCE_NUM)
        return mr_fail(MR_ERR_OTHER, "no context is left: more than %d communicators of living members",
                       MR_CONTEXT_ONCE_NUM);
    if (mr_comm_is_inter(s->parent))
        return make_inter(s, d, ids);
    return mr_comm_make(ids[0], living(d->group, d), s->parent, s->out);
}

static enum mr_err vote(struct shrink *s);

static void decided(const struct mr_agreed *d, void *arg)
{
    struct shrink *s = arg;
    enum mr_err err = MR_SUCCESS;

    if (s->offers)
        shrinks.offered = false;
    if (d->flags) {
        uint32_t next = d->number + contexts_of(s->parent);

        if (shrinks.next_number < next)
            shrinks.next_number = next;
        err = make_shrunken(s, d);
    } else {
        if (!s->again++)
            s->nth = d->nth;
        err = vote(s);
        if (!err)
            return;
    }
    end_shrink(s, err);
}

static enum mr_err vote(struct shrink *s)
{
    struct mr_vote v = {.number = shrinks.next_number, .common = true};

    if (s->again)
        v.again = ((uint64_t)s->nth << 32 | s->again) + 1;
    v.flags = s->offers = may_offer(s);
    if (s->offers)
        shrinks.offered = true;
    return mr_agree(s->parent, s->parent->context, v, decided, s);
}

enum mr_err mr_comm_ishrink(struct mr_comm *c, struct mr_comm **out, struct mr_request **req)
{
    struct shrink *s = calloc(1, sizeof(*s)), **last = &shrinks.active;
    enum mr_err err;

    *out = NULL;
    *req = s ? mr_request_new(MR_REQ_COLL, c) : NULL;
    if (!*req) {
        free(s);
        return mr_fail(MR_ERR_NO_MEM, "no memory for a communicator");
    }
    *s = (struct shrink){.parent = mr_comm_get(c), .out = out, .req = mr_request_get(*req)};
    while (*last)
        last = &(*last)->next;
    *last = s;
    err = vote(s);
    if (err) {
        mr_request_put(*req);
        *req = NULL;
        end_shrink(s, err);
    }
    return err;
}

enum mr_err mr_comm_shrink(struct mr_comm *c, struct mr_comm **out)
{
    struct mr_request *req;
    enum mr_err err = mr_comm_ishrink(c, out, &req);

    if (err)
        return err;
    err = mr_wait(req);
    mr_request_put(req);
    return err;
}
