/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams, the receiver's side: assigns blocks to subchannels. */
#include "libmrmpi/net/zcopy/zcopy.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/verbs.h"

uint32_t mr_zcopy_datagram_size(const struct mr_peer *p)
{
    uint32_t size = 0;

    for (unsigned i = 0; i < p->num_now; i++) {
        const struct mr_sub *sub = &p->now[i];
        uint32_t mtu;

        if (!mr_kind_is(sub->kind, MR_IS_DATAGRAM))
            continue;
        mtu = mr_udp_mtu(&sub->rail->addr, &p->address->rail[sub->remote_rail]);
        size = !size || mtu < size ? mtu : size;
    }
    return size < MR_ZCOPY_SIZE_MAX ? size : MR_ZCOPY_SIZE_MAX;
}

static bool part_blocks(const struct mr_dgram_recv *recv, unsigned i, uint32_t *from, uint32_t *to)
{
    *from = (uint32_t)recv->part[i].offset;
    *to = (uint32_t)(recv->part[i].offset + recv->part[i].len);
    return mr_blocks_find(&recv->todo, *from, true) < *to;
}

static uint32_t zcopy_subs(const struct mr_dgram_recv *recv)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < recv->peer->num_now; i++)
        set |= (uint32_t)mr_zcopy_sub_usable(&recv->peer->now[i], recv->size) << i;
    return mr_spread_narrow(recv->peer, MR_POLICY_LARGE, set);
}

/* True if the policy allows this subchannel. An unstriped message stays on its subchannel while that works. */
static bool policy_allows(const struct mr_dgram_recv *recv, const struct mr_sub *sub)
{
    const struct mr_policy_kind *kind = mr_peers.policy[MR_POLICY_LARGE].kind;
    uint32_t set;

    if (kind->stripes && kind->where == MR_WHERE_ALL)
        return true;
    set = zcopy_subs(recv);
    if (!kind->stripes && recv->parts == 1 && set >> recv->part[0].sub & 1)
        return mr_sub_place(sub) == recv->part[0].sub;
    return set >> mr_sub_place(sub) & 1;
}

/* Its own part comes first. Then it helps the others, if enough is left to pay, or no batch is under way. */
bool mr_dgram_recv_choose(const struct mr_dgram_recv *recv, const struct mr_sub *sub, uint32_t *from, uint32_t *to,
                          uint32_t *most)
{
    *most = mr_ud_pool_depth(sub->rail);
    if (!policy_allows(recv, sub))
        return false;
    for (unsigned i = 0; i < recv->parts; i++)
        if (recv->part[i].sub == mr_sub_place(sub) && part_blocks(recv, i, from, to))
            return true;
    if (recv->batches && (uint64_t)recv->todo.count * recv->size < 4 * mr_config.stripe_min)
        return false;
    *from = 0;
    *to = recv->todo.num;
    if (recv->batches && *most > (recv->todo.count + 1) / 2)
        *most = (recv->todo.count + 1) / 2;
    return recv->todo.count;
}

void mr_dgram_recv_plan(struct mr_dgram_recv *recv)
{
    struct mr_peer *p = recv->peer;
    struct mr_load some[MR_SUBS_MAX];
    uint32_t usable = zcopy_subs(recv);

    for (unsigned i = 0; i < p->num_now; i++)
        some[i] = (struct mr_load){.up = usable >> i & 1,
                                   .weight = p->load[i].weight,
                                   .sick = p->load[i].sick,
                                   .queued = mr_bulk_sub_of(&p->now[i])->flows * recv->len};
    recv->parts = mr_sched_plan(&mr_peers.policy[MR_POLICY_LARGE], &mr_bulk_of(p)->dgram_turn, some, p->num_now,
                                recv->len, mr_config.stripe_min, recv->size, recv->part);
    for (unsigned i = 0; i < recv->parts; i++) {
        recv->part[i].len = (recv->part[i].len + recv->size - 1) / recv->size;
        recv->part[i].offset /= recv->size;
    }
}
