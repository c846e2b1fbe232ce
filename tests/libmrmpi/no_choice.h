/* SPDX-License-Identifier: BSD-3-Clause */
/* What subs.c calls to choose among subchannels: no policy, no rules, nobody who hears of it. */
#ifndef NO_CHOICE_H
#define NO_CHOICE_H

#include "libmrmpi/conn/peer/internal.h"

void mr_peer_tell_reweighed(struct mr_peer *p)
{
}

void mr_peer_tell_lossy(struct mr_peer *p)
{
}

void mr_peer_tell_preferred(struct mr_peer *p)
{
}

bool mr_spread_is_far(unsigned rail)
{
    return false;
}

uint32_t mr_spread_narrow(const struct mr_peer *p, enum mr_policy_class c, uint32_t set)
{
    return set;
}

int mr_steer_peer(struct mr_peer *p)
{
    return 0;
}

uint32_t mr_steer_set(struct mr_peer *p, const uint32_t of_kind[MR_LINK_KINDS], uint32_t up)
{
    return 0;
}

#endif
