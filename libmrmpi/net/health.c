/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Health of rails, as fabricd judges it: our rails' is fabricd's on this host, a peer's rails' is in a message of the
 * peer. Small messages leave a rail that is not healthy, large ones use it by its weight, or not at all; its links stay
 * open, so the rail is back as soon as it is well. A rail that is the only one to lead to a peer is used as it is.
 */
#include "libmrmpi/route/health.h"

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/internal.h"
#include "libmrmpi/verbs/verbs.h"

_Static_assert(MR_HEALTH_BITS *MR_RAILS_MAX <= 32, "the health of all rails fits into a word");
_Static_assert(MR_WEIGHT_MAX == MR_FABRIC_HEALTHY, "the same unit");

static uint32_t our_word(void)
{
    uint32_t word = 0;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        word = mr_health_put(word, i, mr_verbs.rail[i].sick);
    return word;
}

void mr_net_tell_health(struct mr_peer *p)
{
    struct mr_hdr hdr = {.kind = MR_CONTROL_HEALTH, .ctx = our_word()};

    if (p->error || !p->up || hdr.ctx == p->sick_told || mr_channel_up.send(p->vc, &hdr, NULL, 0))
        return;
    p->sick_told = hdr.ctx;
}

void mr_net_take_health(void)
{
    bool changed = false;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++) {
        struct mr_rail *r = &mr_verbs.rail[i];
        const char *state;
        uint32_t sick = MR_WEIGHT_MAX - mr_fabric_health(r->dev->name, r->port, &state);

        if (sick != r->sick && mr_log_for_host())
            mr_log(MR_LOG_INFO, "fabricd: rail %s port %u is %s: %u percent of its weight are left", r->dev->name,
                   r->port, state, (MR_WEIGHT_MAX - sick) * 100 / MR_WEIGHT_MAX);
        changed |= sick != r->sick;
        mr_peers.unwell |= sick != 0;
        r->sick = sick;
    }
    for (int i = 0; changed && i < mr_peers.launch->size; i++) {
        struct mr_peer *p = mr_peers.peer[i];

        if (!p || p->error || !p->num_subs)
            continue;
        mr_peer_take_health(p);
        mr_net_tell_health(p);
    }
}

bool mr_net_health_control(struct mr_peer *p, const struct mr_hdr *hdr)
{
    if (hdr->kind != MR_CONTROL_HEALTH)
        return false;
    p->sick = hdr->ctx;
    mr_peer_take_health(p);
    return true;
}
