/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses that come from other ranks. Pure. */
#include "libmrmpi/conn/route/address.h"

#include <errno.h>

#include "libmrmpi/conn/cm/message.h"

#define MTU_MAX 5 /* 4096 bytes */

struct mr_address mr_address_none;

static bool are_sane_partitions(const struct mr_address *c)
{
    const struct mr_partition *p = mr_address_partitions(c);

    for (unsigned i = 0; i < c->num_partitions; i++)
        if (p[i].rail >= c->num_rails || (p[i].key && !mr_pkey_partition(p[i].key)) || p[i].ud_qpn > 0xffffff)
            return false;
    return true;
}

int mr_address_check(struct mr_address *c, size_t len)
{
    if (len < offsetof(struct mr_address, num_rails) || c->magic != MR_ADDRESS_MAGIC)
        return -EPROTO;
    if (c->version != MR_ADDRESS_VERSION)
        return -EPROTONOSUPPORT;
    if (len < mr_address_length(0, 0) || c->num_rails > MR_RAILS_MAX ||
        c->num_partitions > c->num_rails * MR_PARTITIONS_MAX ||
        len != mr_address_length(c->num_rails, c->num_partitions) || !c->eager_max)
        return -EPROTO;
    if (!are_sane_partitions(c))
        return -EPROTO;
    for (unsigned i = 0; i < c->num_rails; i++) {
        if (c->rail[i].lmc > MR_CM_LMC_MAX || !c->rail[i].mtu || c->rail[i].mtu > MTU_MAX)
            return -EPROTO;
        c->rail[i].device[sizeof c->rail[i].device - 1] = 0;
    }
    c->host[sizeof c->host - 1] = 0;
    return 0;
}
