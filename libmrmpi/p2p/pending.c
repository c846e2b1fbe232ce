/* SPDX-License-Identifier: BSD-3-Clause */
/* Point-to-point operations that have not met their counterpart, or not ended since, for inquiries: see p2p.h. */
#include <stdio.h>

#include "libmrmpi/p2p/internal.h"
#include "libmrmpi/p2p/rndv/protocols.h"

struct listing {
    void (*tell)(const struct mr_pending *p, void *arg);
    void *arg;
};

static void tell_receive(struct mr_match_entry *e, void *arg)
{
    const struct listing *l = arg;
    const struct mr_request *r = e->owner;

    if (r->given_up)
        return;
    l->tell(&(struct mr_pending){.kind = MR_PENDING_RECV,
                                 .comm = r->comm,
                                 .ctx = r->ctx,
                                 .peer = r->peer,
                                 .tag = r->tag,
                                 .bytes = r->type ? r->count * r->type->size : 0},
            l->arg);
}

static void tell_send(const struct listing *l, const struct mr_request *r, const char *state)
{
    l->tell(&(struct mr_pending){.kind = MR_PENDING_SEND,
                                 .comm = r->comm,
                                 .ctx = r->ctx,
                                 .peer = r->peer,
                                 .tag = r->tag,
                                 .bytes = r->type ? r->count * r->type->size : 0,
                                 .state = state},
            l->arg);
}

/* A receive that is still posted, though announced, is told as such. */
static void tell_moving(const struct listing *l, const struct mr_rndv *r)
{
    const struct mr_request *req = r->req;
    char state[64];

    if (req->match.queue || !r->by)
        return;
    snprintf(state, sizeof(state), "under way, by %s", r->by->name);
    if (mr_rndv_sends(r)) {
        tell_send(l, req, state);
        return;
    }
    l->tell(&(struct mr_pending){.kind = MR_PENDING_RECV,
                                 .comm = req->comm,
                                 .ctx = req->ctx,
                                 .peer = req->status.source,
                                 .tag = req->status.tag,
                                 .bytes = r->total,
                                 .state = state},
            l->arg);
}

static void tell_transfers(const struct listing *l)
{
    for (uint32_t i = 0; i < mr_rndvs.used; i++) {
        const struct mr_rndv *r = mr_rndvs.table[i];

        if (r->state == MR_RNDV_MOVING)
            tell_moving(l, r);
        else if (mr_rndv_is_unmet(r))
            tell_send(l, r->req, "no receive has met it");
    }
}

static void tell_held(const struct listing *l)
{
    for (struct mr_vc *vc = mr_pt2pt.holding; vc; vc = mr_flow_of(vc)->next)
        for (const struct mr_request *r = mr_flow_of(vc)->held; r; r = r->held_next)
            tell_send(l, r, "waits for room on the way to this peer");
}

/* Each message has four entries, and is told at the one under its own key. */
static void tell_message(struct mr_match_entry *e, void *arg)
{
    const struct listing *l = arg;
    const struct mr_message *m = e->owner;

    if (e == &m->match.e[0])
        l->tell(&(struct mr_pending){.kind = MR_PENDING_MESSAGE,
                                     .ctx = m->hdr.ctx,
                                     .peer = m->hdr.rank,
                                     .tag = m->hdr.tag,
                                     .bytes = m->hdr.len},
                l->arg);
}

void mr_pt2pt_each_pending(void (*tell)(const struct mr_pending *p, void *arg), void *arg)
{
    struct listing l = {tell, arg};

    mr_match_each(&mr_pt2pt.posted, tell_receive, &l);
    tell_transfers(&l);
    tell_held(&l);
    mr_match_each(&mr_pt2pt.unexpected, tell_message, &l);
}
