/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages as datagrams: the assignment of the pools' queue pairs. The first queue pair of each message goes
 * before the second of another; messages without one are served in the order of their beginning.
 */
#include "libmrmpi/net/zcopy/zcopy.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/verbs/verbs.h"

#define BATCHES_EACH  2            /* batches of a message on a subchannel: one is settled while the other fills */
#define SHORTEST      16384        /* bytes; shorter messages are a few packets */
#define WORTH_WAITING (128u << 10) /* bytes of a message that waits for a queue pair */

bool mr_zcopy_sub_usable(const struct mr_sub *sub, uint32_t size)
{
    const struct mr_peer *p = sub->peer;

    return mr_kind_is(sub->kind, MR_IS_DATAGRAM) && mr_sub_is_current(sub) && sub->state == MR_SUB_OPEN &&
           !sub->closing && p->load[mr_sub_place(sub)].up && !p->error &&
           mr_udp_mtu(&sub->rail->addr, &p->address->rail[sub->remote_rail]) >= size;
}

/* ---- the limit of a message -------------------------------------------------------------------------------------- */

unsigned mr_dgram_batches_on(const struct mr_dgram_recv *recv, const struct mr_sub *sub)
{
    unsigned n = 0;

    for (const struct mr_dgram_batch *batch = recv->batches; batch; batch = batch->next)
        n += batch->sub == sub;
    return n;
}

/* Makes queue pairs until n are free on the peer's rails, if possible. Number of free ones; *all: of all. */
static unsigned prepare_qps(const struct mr_peer *p, unsigned n, unsigned *all)
{
    unsigned ready = 0, seen = 0; /* seen: set of rails */

    *all = 0;
    for (unsigned i = 0; i < p->num_now; i++) {
        struct mr_rail *rail = p->now[i].rail;

        if (!mr_zcopy_sub_usable(&p->now[i], 0) || seen >> rail->index & 1)
            continue;
        seen |= 1u << rail->index;
        ready += mr_ud_pool_prepare(rail, n > ready ? n - ready : 1);
        *all += mr_ud_pool_num(rail);
    }
    return ready;
}

bool mr_dgram_recv_may_take(const struct mr_dgram_recv *recv, const struct mr_sub *sub)
{
    unsigned taken = mr_ud_pool_num(sub->rail) - mr_ud_pool_prepare(sub->rail, 1), most = (unsigned)mr_config.ud_pool;

    if (!recv->batches)
        return taken < most;
    return taken + mr_bulk.starving + most / 4 < most && mr_dgram_batches_on(recv, sub) < BATCHES_EACH;
}

/* ---- messages waiting for a queue pair --------------------------------------------------------------------------- */

void mr_dgram_recv_queue(struct mr_dgram_recv *recv)
{
    bool starves = recv->todo.count && !recv->batches && !recv->asleep;

    if (starves == recv->starves)
        return;
    recv->starves = starves;
    if (starves) {
        recv->next_starved = NULL;
        recv->at_starved = mr_bulk.starved ? mr_bulk.starved_end : &mr_bulk.starved;
        *recv->at_starved = recv;
        mr_bulk.starved_end = &recv->next_starved;
        mr_bulk.starving++;
        mr_bulk.serve_due = true;
        mr_bulk_of(recv->peer)->num_starving++;
        mr_peer_watch(recv->peer); /* so that it is served */
        return;
    }
    *recv->at_starved = recv->next_starved;
    if (recv->next_starved)
        recv->next_starved->at_starved = recv->at_starved;
    else
        mr_bulk.starved_end = recv->at_starved;
    mr_bulk.starving--;
    mr_bulk_of(recv->peer)->num_starving--;
}

/*
 * If all queue pairs are taken, a long message waits for one: this is faster than packets, which are copied at both
 * ends, and more so with several rails. A shorter message has arrived in packets by then.
 */
bool mr_zcopy_can(const struct mr_peer *p, uint64_t len)
{
    unsigned all;

    if (len < SHORTEST || !p->up || p->error || !p->sub || !mr_config.ud_pool)
        return false;
    if (prepare_qps(p, mr_bulk.starving + 1, &all) > mr_bulk.starving)
        return true;
    mr_stat_add(MR_STAT_UD_NO_QP, 1);
    return len >= WORTH_WAITING && all > 1;
}
