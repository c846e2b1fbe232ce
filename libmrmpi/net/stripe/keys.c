/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subchannels for a large message: those allowed by the policy, and for whose rails its memory has keys at both
 * ends. Registering memory takes as long with each device, one after the other, and at both ends one after the other.
 * While one rail carries more than a processor copies, this takes longer than another rail saves: 512 KiB from and to
 * memory not used before went over one, two, three and four HDR rails at 24.1, 15.8, 10.7 and 8.0 GB/s (simulated). So
 * the sender registers with one device first, in turn, and with the others when the memory is used again. The receiver
 * does the same among the sender's keys. If no rail with a key is left, the receiver asks for the bytes in packets
 * (p2p/rndv/read.c).
 */
#include <errno.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/base/model.h"
#include "libmrmpi/net/stripe/keys.h"
#include "libmrmpi/net/stripe/renew.h"
#include "libmrmpi/net/stripe/wlist.h"
#include "libmrmpi/verbs/verbs.h"

#define FIRST_USES 4 /* of a buffer: message and bounce buffer, or messages to several ranks */

uint32_t mr_stripe_excluded(const struct mr_peer *p)
{
    uint32_t up = 0, all = (uint32_t)((1ull << p->num_now) - 1);

    if (mr_peers.policy[MR_POLICY_LARGE].kind->where == MR_WHERE_ALL && !mr_peers.unwell)
        return ~p->rdma & all;
    for (unsigned i = 0; i < p->num_now; i++)
        up |= (uint32_t)p->load[i].up << i;
    return ~mr_spread_narrow(p, MR_POLICY_LARGE, p->rdma & up) & all;
}

static uint32_t pair_rate(const struct mr_sub *sub)
{
    uint32_t ours = sub->rail->rate_mbps, theirs = sub->peer->address->rail[sub->remote_rail].rate_mbps;

    return ours < theirs ? ours : theirs;
}

/* Subchannels for large messages now; those whose remote rail is in the set `without` are excluded. */
static uint32_t stripe_subs(const struct mr_peer *p, uint32_t without)
{
    uint32_t set = p->rdma;

    for (unsigned i = 0; i < p->num_now; i++)
        if (!p->load[i].up || without >> p->now[i].remote_rail & 1)
            set &= ~(1u << i);
    return set & ~mr_stripe_excluded(p);
}

struct mr_bulk_rails mr_bulk_rails_to(const struct mr_peer *p, uint32_t without)
{
    uint32_t subs = stripe_subs(p, 0);
    struct mr_bulk_rails r = {0};

    if (!subs)
        return (struct mr_bulk_rails){((1u << mr_verbs.num_rails) - 1) & ~without, (1u << p->address->num_rails) - 1};
    for (unsigned i = 0; i < p->num_now; i++) {
        if (!(subs >> i & 1) || without >> p->now[i].rail->index & 1)
            continue;
        r.here |= 1u << p->now[i].rail->index;
        r.there |= 1u << p->now[i].remote_rail;
    }
    return r;
}

/* Devices of the fastest in a set of subchannels; 0: a processor copies more than one of these carries. */
static uint32_t fastest_devices(const struct mr_peer *p, uint32_t subs)
{
    uint32_t best = mr_model.outrun_mbps, set = 0;

    for (unsigned i = 0; i < p->num_now; i++) {
        uint32_t rate = subs >> i & 1 ? pair_rate(&p->now[i]) : 0;

        if (rate < best)
            continue;
        set = (rate > best ? 0 : set) | 1u << p->now[i].rail->dev->index;
        best = rate;
    }
    return set;
}

/* One of them, in turn. */
static uint32_t next_of(uint32_t devices)
{
    uint32_t later = devices & ~((2u << mr_bulk.home) - 1), next = later ? later : devices;

    mr_bulk.home = (unsigned)__builtin_ctz(next);
    return 1u << mr_bulk.home;
}

bool mr_bulk_one_suffices(const struct mr_peer *p)
{
    return mr_bulk.few && fastest_devices(p, stripe_subs(p, 0));
}

unsigned mr_bulk_least_devices(void)
{
    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        if (mr_bulk.few && mr_verbs.rail[i].rate_mbps >= mr_model.outrun_mbps)
            return 1;
    return mr_verbs.num_devices ? mr_verbs.num_devices : 1;
}

static uint32_t devices_of(const struct mr_peer *p, uint32_t subs)
{
    uint32_t set = 0;

    for (unsigned i = 0; i < p->num_now; i++)
        set |= (subs >> i & 1) << p->now[i].rail->dev->index;
    return set;
}

/* Not cut; or hardly worth a cut, whose second part would wait for a slow rail. */
static bool goes_unstriped(size_t len, bool alike)
{
    return len < mr_config.stripe_min || (len == mr_config.stripe_min && !alike);
}

/*
 * The last part of a message is read, too, and a message is sent to several ranks at a time. But a buffer may also be
 * used again and again before its first transfer has ended, without end.
 */
static bool is_in_first_use(const void *buf, size_t len)
{
    const struct mr_reg *r = mr_regs_find(buf, len);

    return r && r->refs && r->uses < FIRST_USES;
}

/* A message of len bytes is read: over all of these subchannels, or over one at first. */
static struct mr_reg_wish wish_for(const struct mr_peer *p, uint32_t subs, const void *buf, size_t len)
{
    uint32_t all = devices_of(p, subs), fastest = mr_bulk.few ? fastest_devices(p, subs) : 0;

    if (fastest && (goes_unstriped(len, fastest == all) || is_in_first_use(buf, len) || !mr_regs_know(buf, len)))
        return (struct mr_reg_wish){.devices = fastest, .first = next_of(fastest)};
    return (struct mr_reg_wish){.devices = all};
}

int mr_bulk_register_source(const struct mr_peer *p, void *buf, size_t len, struct mr_reg **out)
{
    uint32_t subs = stripe_subs(p, 0);
    struct mr_reg_wish wish = wish_for(p, subs, buf, len);

    if (!wish.first)
        return mr_regs_get(buf, len, MR_ACCESS_SOURCE, false, out);
    return mr_regs_get_with(buf, len, MR_ACCESS_SOURCE, false, wish, out);
}

int mr_bulk_register_sink(const struct mr_peer *p, void *buf, size_t len, uint32_t without, struct mr_reg **out)
{
    uint32_t subs = stripe_subs(p, without);

    if (!subs)
        return -ENOKEY;
    return mr_regs_get_with(buf, len, MR_ACCESS_TARGET, false, wish_for(p, subs, buf, len), out);
}

/* The set of the peer's rails that have no key. */
static uint32_t rails_without_key(const struct mr_transfer *transfer)
{
    return (transfer->partial ? transfer->remote.token : 0) | mr_renew_lacking(transfer->peer, &transfer->remote);
}

uint32_t mr_bulk_lacking(const struct mr_transfer *transfer)
{
    const struct mr_peer *p = transfer->peer;
    uint32_t set = 0, without;

    if (!mr_bulk_may_lack(transfer))
        return 0;
    without = rails_without_key(transfer);
    for (unsigned i = 0; i < p->num_now; i++)
        if (without >> p->now[i].remote_rail & 1 ||
            (transfer->reg && !mr_memory_is_on(&transfer->reg->memory, p->now[i].rail)))
            set |= 1u << i;
    return set;
}

bool mr_bulk_is_of_attached(const struct mr_transfer *transfer)
{
    return transfer->list ? transfer->list->attached : transfer->move && transfer->move->attached;
}

/* Only rails without a key there are left. */
static bool is_given_up(const struct mr_transfer *transfer)
{
    if (transfer->read && !transfer->move)
        return true;
    return mr_bulk_is_of_attached(transfer) && mr_renew_is_withdrawn(transfer->peer, &transfer->remote);
}

bool mr_bulk_is_unreachable(const struct mr_transfer *transfer)
{
    const struct mr_peer *p = transfer->peer;

    if (!mr_bulk_may_lack(transfer) || !stripe_subs(p, 0))
        return false; /* waits for any */
    if (stripe_subs(p, rails_without_key(transfer)) & ~mr_bulk_lacking(transfer))
        return false;
    if (!stripe_subs(p, rails_without_key(transfer)))
        return is_given_up(transfer); /* others wait for new keys, or another rail */
    if (transfer->reg && !mr_odp_owns(transfer->reg) &&
        !mr_regs_extend(transfer->reg, (struct mr_reg_wish){.devices = mr_regs_devices()}))
        return false;
    return transfer->read &&
           !transfer->move; /* no packets would take its place: others give memory back, or the rail comes up */
}

bool mr_bulk_copies(const struct mr_peer *p, const void *buf, size_t len)
{
    bool one = (mr_bulk.few || mr_verbs.num_devices == 1) && fastest_devices(p, stripe_subs(p, 0));
    size_t least = one ? mr_model.read_at : (size_t)mr_model.register_at * mr_verbs.num_devices;

    return len < least && !mr_odp_comes_first() && !mr_regs_know(buf, len);
}

const struct mr_memory *mr_bulk_borrow(const struct mr_peer *p, const void *buf, size_t len)
{
    uint32_t fastest = mr_bulk.few ? fastest_devices(p, stripe_subs(p, 0)) : 0;
    struct mr_reg_wish wish = {.devices = fastest, .first = fastest ? next_of(fastest) : 0};
    struct mr_reg *r;

    if (!fastest)
        wish.devices = mr_regs_devices();
    return mr_regs_get_with((void *)buf, len, MR_ACCESS_SOURCE, false, wish, &r) ? NULL : &r->memory;
}

void mr_bulk_give_back(const struct mr_memory *m)
{
    mr_regs_release(container_of((struct mr_memory *)m, struct mr_reg, memory));
}
