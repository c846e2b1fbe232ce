/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics in a peer's memory, executed by its adapter. An atomic goes over one subchannel, once: if the subchannel
 * breaks, it is unknown here whether the atomic was changed, and its owner is told so when no change can follow any
 * more (net/stripe/moves.c).
 */
#include "libmrmpi/net/bulk/internal.h"

#include <errno.h>
#include <stdlib.h>

/* True if the subchannel leads to the adapter that executes atomics in this memory, over a reliable connection. */
static bool can_do_atomics(const struct mr_sub *sub, const struct mr_remote *remote)
{
    const struct mr_peer *p = sub->peer;

    return sub->state == MR_SUB_OPEN && p->load[mr_sub_place(sub)].up && sub->rail->dev->atomics &&
           mr_kind_is(sub->kind, MR_IS_RELIABLE | MR_IS_READING) && sub->remote_rail < remote->num_keys &&
           !(remote->token >> sub->remote_rail & 1) && mr_renewed_key(p, remote, sub->remote_rail) &&
           p->address->rail[sub->remote_rail].reads;
}

/* The generation is part of the number: atomics over the next connection are not ordered behind those of this one. */
static uint32_t sub_and_generation(const struct mr_sub *sub)
{
    return (uint32_t)(sub - sub->peer->sub + 1) << 8 | sub->generation;
}

/*
 * NULL: no subchannel leads there now, or not the required one. A subchannel whose rails are out of use is the last
 * choice.
 */
static struct mr_sub *find_connection(struct mr_peer *p, const struct mr_remote *remote, uint32_t wanted)
{
    struct mr_sub *rests = NULL;

    if (!p->rdma || p->tracked || (mr_peers.rules.num && !mr_steer_by_rdma(p, sizeof(uint64_t))))
        return NULL;
    for (unsigned i = 0; i < p->num_now; i++) {
        bool well = p->load[i].sick < MR_WEIGHT_MAX;

        if (!can_do_atomics(&p->now[i], remote) || (wanted && sub_and_generation(&p->now[i]) != wanted))
            continue;
        if (wanted || well)
            return &p->now[i];
        rests = rests ? rests : &p->now[i];
    }
    return rests;
}

/* An atomic without room does not wait here: its owner may want something else by then. */
int mr_net_atomic(struct mr_vc *vc, const struct mr_remote *remote, struct mr_vc_atomic *w)
{
    struct mr_peer *p = vc->data;
    int err = mr_bulk_refuses(vc);
    struct mr_sub *sub = !err && remote->num_keys <= MR_RAILS_MAX ? find_connection(p, remote, w->connection) : NULL;
    struct mr_transfer shape = {.peer = p, .local = (unsigned char *)w->atomic.result, .remote = *remote};
    struct mr_stripe plan = {.len = sizeof(uint64_t)};
    struct mr_transfer *transfer;

    if (!err && !sub)
        err = -EOPNOTSUPP;
    if (!err && w->atomic.result)
        err = mr_regs_get(w->atomic.result, sizeof(uint64_t) + w->atomic.peek, MR_ACCESS_TARGET, false, &shape.reg);
    if (err)
        return err;
    plan.sub = mr_sub_place(sub);
    shape.atomic = &w->atomic;
    shape.move = &w->move;
    shape.level = mr_bulk_write_level(sizeof(uint64_t));
    transfer = mr_bulk_make(&shape, &plan, 1);
    err = transfer ? mr_stripe_post(&transfer->stripe[0], 0) : -ENOMEM;
    if (err) {
        if (shape.reg)
            mr_regs_release(shape.reg);
        free(transfer);
        return err;
    }
    w->connection = sub_and_generation(sub);
    mr_bulk_list(transfer);
    return 0;
}
