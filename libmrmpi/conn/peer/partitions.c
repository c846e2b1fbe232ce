/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The partition of a subchannel's two rails (verbs/pkey.c). Our table is known at present; the peer's is known from its
 * address, and from its requests to connect since. So the end whose table changes knows first, and begins. If no
 * partition is left, and ours is in a partition joined after the start of the job, the peer may be in that as well: its
 * reserve is asked.
 */
#include "libmrmpi/conn/peer/internal.h"

#include <errno.h>
#include <stdio.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/verbs/verbs.h"

static uint16_t late_pkey(const struct mr_sub *sub)
{
    const struct mr_address *a = sub->peer->address;

    for (unsigned i = 0; i < sub->rail->num_partitions; i++) {
        const struct mr_rail_partition *in = &sub->rail->partition[i];

        if (in->late && in->now.key && !mr_address_partition(a, sub->remote_rail, in->number) &&
            mr_address_partition(a, sub->remote_rail, 0))
            return in->now.key;
    }
    return 0;
}

uint16_t mr_sub_pkey(const struct mr_sub *sub, unsigned turn)
{
    uint16_t ours[MR_PARTITIONS_MAX], theirs[MR_PARTITIONS_MAX];
    unsigned num_ours = mr_rail_keys(sub->rail, ours);
    unsigned num_theirs = mr_address_keys(sub->peer->address, sub->remote_rail, theirs);
    uint16_t key = mr_pkey_choose(ours, num_ours, theirs, num_theirs, turn);

    return key ? key : late_pkey(sub);
}

unsigned mr_sub_num_pkeys(const struct mr_sub *sub)
{
    uint16_t ours[MR_PARTITIONS_MAX], theirs[MR_PARTITIONS_MAX];
    unsigned num_ours = mr_rail_keys(sub->rail, ours), n = 0;
    unsigned num_theirs = mr_address_keys(sub->peer->address, sub->remote_rail, theirs);

    for (unsigned i = 0; i < num_ours; i++)
        n += mr_pkey_choose(&ours[i], 1, theirs, num_theirs, 0) != 0;
    return n;
}

bool mr_peer_lacks_pkeys(const struct mr_peer *p)
{
    for (unsigned i = 0; i < p->num_subs; i++)
        if (!p->sub[i].spare && mr_sub_pkey(&p->sub[i], 0))
            return false;
    return true;
}

uint16_t mr_sub_answer_pkey(const struct mr_sub *sub, uint16_t theirs)
{
    const struct mr_rail_partition *in = mr_rail_partition(sub->rail, theirs);
    struct mr_partition *known = mr_address_partition(sub->peer->address, sub->remote_rail, theirs);

    if (!known)
        known = mr_address_partition(sub->peer->address, sub->remote_rail, 0);
    if (known && mr_pkey_partition(theirs))
        known->key = theirs; /* its membership may differ now */
    return in && mr_pkey_match(in->now.key, theirs) ? in->now.key : 0;
}

bool mr_sub_keeps_pkey(const struct mr_sub *sub, uint32_t moved)
{
    const struct mr_rail_partition *in = mr_rail_partition(sub->rail, sub->pkey);
    const struct mr_partition *theirs = mr_address_partition(sub->peer->address, sub->remote_rail, sub->pkey);

    if (!in || !in->now.key || moved >> (in - sub->rail->partition) & 1)
        return false;
    return !theirs || mr_pkey_match(in->now.key, theirs->key);
}

uint16_t mr_sub_datagram_pkey(const struct mr_sub *sub, unsigned turn)
{
    return sub->state == MR_SUB_OPEN ? sub->pkey : mr_sub_pkey(sub, turn);
}

int mr_sub_datagram(const struct mr_sub *sub, unsigned turn, uint8_t sl, const void *data, size_t len)
{
    uint16_t pkey = mr_sub_datagram_pkey(sub, turn);
    const struct mr_address *a = sub->peer->address;
    const struct mr_partition *there = mr_address_partition(a, sub->remote_rail, pkey);
    struct mr_ud_route route = {.pkey = pkey, .sl = sl, .path = sub->path, .to = &a->rail[sub->remote_rail]};

    if (!there)
        there = mr_address_partition(a, sub->remote_rail, 0);
    if (!there || !pkey)
        return -ENOKEY;
    route.qpn = there->ud_qpn;
    return mr_ud_send(sub->rail, &route, data, len);
}

const char *mr_sub_pkeys_text(const struct mr_sub *sub, char out[MR_SUB_PKEYS])
{
    uint16_t key[MR_PARTITIONS_MAX];
    char here[MR_SUB_PKEYS / 2 - 16], there[sizeof here];

    mr_pkeys_text(key, mr_rail_keys(sub->rail, key), here, sizeof here);
    mr_pkeys_text(key, mr_address_keys(sub->peer->address, sub->remote_rail, key), there, sizeof there);
    snprintf(out, MR_SUB_PKEYS, "P_Keys here: %s; there: %s", here, there);
    return out;
}

void mr_sub_tell_keyless(const struct mr_sub *sub)
{
    char name[MR_SUB_NAME], keys[MR_SUB_PKEYS];

    mr_log(sub->rail->keyless_told ? MR_LOG_INFO : MR_LOG_WARN,
           "rank %d on %s, %s: not used, since no partition has both as members, and one of them as a full one. %s",
           sub->peer->rank, sub->peer->address->host, mr_sub_name(sub, name), mr_sub_pkeys_text(sub, keys));
    sub->rail->keyless_told = true;
}
