/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the receiver's side: which subchannel is to bring which blocks. */
#include "libmrmpi/bulk/zcopy.h"

#include "libmrmpi/base/base.h"

/* What every subchannel for datagrams can carry; 0: there is none. */
uint32_t mr_inflow_datagram_size(const struct mr_peer *p)
{
    uint32_t size = 0;

    for (unsigned i = 0; i < p->num_now; i++) {
        const struct mr_sub *sub = &p->now[i];
        uint32_t mtu;

        if (!mr_link_kinds[sub->kind]->run)
            continue;
        mtu = mr_udp_mtu(&sub->rail->addr, &p->address->rail[sub->remote_rail]);
        size = !size || mtu < size ? mtu : size;
    }
    return size < ZCOPY_SIZE_MAX ? size : ZCOPY_SIZE_MAX;
}

static bool in_part(const struct mr_inflow *f, unsigned i, uint32_t *from, uint32_t *to)
{
    *from = (uint32_t)f->part[i].offset;
    *to = (uint32_t)(f->part[i].offset + f->part[i].len);
    return mr_blocks_find(&f->todo, *from, true) < *to;
}

static uint32_t usable_subs(const struct mr_inflow *f)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < f->peer->num_now; i++)
        set |= (uint32_t)mr_inflow_usable(&f->peer->now[i], f->size) << i;
    return mr_spread_narrow(f->peer, MR_POLICY_LARGE, set);
}

/* May the policy have it there? A message that is not striped stays with its subchannel while that one works. */
static bool is_wanted(const struct mr_inflow *f, const struct mr_sub *sub)
{
    const struct mr_policy_kind *kind = mr_peers.policy[MR_POLICY_LARGE].kind;
    uint32_t set;

    if (kind->stripes && kind->where == MR_WHERE_ALL)
        return true;
    set = usable_subs(f);
    if (!kind->stripes && f->parts == 1 && set >> f->part[0].sub & 1)
        return mr_sub_place(sub) == f->part[0].sub;
    return set >> mr_sub_place(sub) & 1;
}

/*
 * The blocks that this subchannel takes next lie in [*from, *to); *most of them. False: none. Its own part comes first;
 * then it helps the others, if there is enough left that this pays, or nobody else is at it.
 */
bool mr_inflow_choose_blocks(const struct mr_inflow *f, const struct mr_sub *sub, uint32_t *from, uint32_t *to,
                          uint32_t *most)
{
    *most = mr_pool_depth(sub->rail);
    if (!is_wanted(f, sub))
        return false;
    for (unsigned i = 0; i < f->parts; i++)
        if (f->part[i].sub == mr_sub_place(sub) && in_part(f, i, from, to))
            return true;
    if (f->intakes && (uint64_t)f->todo.count * f->size < 4 * mr_config.stripe_min)
        return false;
    *from = 0;
    *to = f->todo.num;
    if (f->intakes && *most > (f->todo.count + 1) / 2)
        *most = (f->todo.count + 1) / 2;
    return f->todo.count;
}

void mr_inflow_make_parts(struct mr_inflow *f)
{
    struct mr_peer *p = f->peer;
    struct mr_load some[MR_SUBS_MAX];
    uint32_t usable = usable_subs(f);

    for (unsigned i = 0; i < p->num_now; i++)
        some[i] = (struct mr_load){
            .up = usable >> i & 1, .weight = p->load[i].weight, .queued = mr_bulk_sub_of(&p->now[i])->flows * f->len};
    f->parts = mr_sched_plan(&mr_peers.policy[MR_POLICY_LARGE], &mr_bulk_of(p)->inflow_turn, some, p->num_now, f->len,
                             mr_config.stripe_min, f->size, f->part);
    for (unsigned i = 0; i < f->parts; i++) {
        f->part[i].len = (f->part[i].len + f->size - 1) / f->size;
        f->part[i].offset /= f->size;
    }
}
