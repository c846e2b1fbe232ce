/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages as datagrams: which of them have queue pairs of the pools. The first one of each goes before the
 * second one of another; those that have none are served in the order in which they came.
 */
#include "libmrmpi/bulk/zcopy.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"

#define INTAKES_EACH  2     /* queue pairs of a message on a subchannel: one is settled while the other one fills */
#define SHORTEST      16384 /* of messages: shorter ones are a few packets */
#define WORTH_WAITING (128u << 10) /* messages that may wait for a queue pair */

bool mr_inflow_usable(const struct mr_sub *sub, uint32_t size)
{
    const struct mr_peer *p = sub->peer;

    return mr_link_kinds[sub->kind]->run && mr_sub_is_current(sub) && sub->state == MR_SUB_OPEN && !sub->closing &&
           p->load[mr_sub_place(sub)].up && !p->error &&
           mr_udp_mtu(&sub->rail->addr, &p->address->rail[sub->remote_rail]) >= size;
}

/* ---- what a message may have ------------------------------------------------------------------------------------- */

unsigned mr_intakes_on(const struct mr_inflow *f, const struct mr_sub *sub)
{
    unsigned n = 0;

    for (const struct mr_intake *in = f->intakes; in; in = in->next)
        n += in->sub == sub;
    return n;
}

/* Queue pairs of its rails that are free, n at least if that can be; *all: that there are. */
static unsigned prepare_qps(const struct mr_peer *p, unsigned n, unsigned *all)
{
    unsigned ready = 0, seen = 0; /* seen: set of rails */

    *all = 0;
    for (unsigned i = 0; i < p->num_now; i++) {
        struct mr_rail *rail = p->now[i].rail;

        if (!mr_inflow_usable(&p->now[i], 0) || seen >> rail->index & 1)
            continue;
        seen |= 1u << rail->index;
        ready += mr_pool_prepare(rail, n > ready ? n - ready : 1);
        *all += mr_pool_num(rail);
    }
    return ready;
}

bool mr_inflow_may_take(const struct mr_inflow *f, const struct mr_sub *sub)
{
    unsigned taken = mr_pool_num(sub->rail) - mr_pool_prepare(sub->rail, 1), most = (unsigned)mr_config.ud_pool;

    if (!f->intakes)
        return taken < most;
    return taken + mr_bulk.starving + most / 4 < most && mr_intakes_on(f, sub) < INTAKES_EACH;
}

/* ---- who waits for a queue pair ---------------------------------------------------------------------------------- */

void mr_inflow_count(struct mr_inflow *f)
{
    bool starves = f->todo.count && !f->intakes && !f->asleep;

    if (starves == f->starves)
        return;
    f->starves = starves;
    if (starves) {
        f->next_starved = NULL;
        f->at_starved = mr_bulk.starved ? mr_bulk.starved_end : &mr_bulk.starved;
        *f->at_starved = f;
        mr_bulk.starved_end = &f->next_starved;
        mr_bulk.starving++;
        mr_bulk.serve_due = true;
        mr_bulk_of(f->peer)->num_starving++;
        mr_peer_watch(f->peer); /* so that it is served */
        return;
    }
    *f->at_starved = f->next_starved;
    if (f->next_starved)
        f->next_starved->at_starved = f->at_starved;
    else
        mr_bulk.starved_end = f->at_starved;
    mr_bulk.starving--;
    mr_bulk_of(f->peer)->num_starving--;
}

/*
 * A message that finds all queue pairs taken waits for one if it is long: that is faster than packets, which are copied
 * at both ends, and more so with several rails. One that is not so long is there in packets by then.
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
