/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may send how much ahead of bulk to this process, and this process to its peers: see grant.h. Senders are found
 * out from the packets that virtual channels have counted anyway, once in an interval; the path of a packet does
 * nothing for that. What is said goes in packets of the virtual channel, so the last word is the one that holds. Such a
 * word does not count as traffic, or words would be answered by words.
 */
#include "libmrmpi/rail/grant.h"

#include <stdlib.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/rail/net.h"

#define WORD_GRANT (MR_VC_KIND_CHANNEL + 7) /* ctx: kB/s on each level that goes ahead, over all rails; 0: no limit */

/* ---- receiver ---------------------------------------------------------------------------------------------------- */

static uint64_t own_budget(void)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < mr_verbs.num_rails; i++)
        all += mr_net.ahead[i][MR_LEVEL_SMALL].rate;
    return all;
}

/* Those from which packets have come since this was asked last. */
static struct mr_peer *find_active(uint32_t *num)
{
    struct mr_grants *g = &mr_net.grants;
    struct mr_peer *active = NULL;

    *num = 0;
    if (mr_net.arrived == g->arrived)
        return NULL;
    g->arrived = mr_net.arrived;
    g->met = 0;
    for (int r = 0; r < mr_net.launch->size; r++) {
        struct mr_peer *p = mr_net.peer[r];
        uint32_t received;

        if (!p)
            continue;
        g->met++;
        received = mr_vc_received(p->vc);
        if (!p->up || p->error || received == p->grant_seen)
            continue;
        p->grant_seen = received;
        p->next_active = active;
        active = p;
        (*num)++;
    }
    return active;
}

static void tell(struct mr_peer *p, uint32_t kb)
{
    struct mr_hdr hdr = {.kind = WORD_GRANT, .ctx = kb};

    if (kb == p->grant_told || mr_vc_send(p->vc, &hdr, NULL, 0))
        return;
    p->grant_told = kb;
    mr_net.grants.said = true;
}

/* At the end nothing new is said: the peer may have gone. */
void mr_grant_tick(uint64_t now_ns)
{
    struct mr_grants *g = &mr_net.grants;
    struct mr_peer *active;
    uint32_t num, kb;

    if (mr_net.parting || now_ns - g->looked_ns < MR_GRANT_NS + g->met * MR_GRANT_PEER_NS)
        return;
    g->looked_ns = now_ns;
    active = find_active(&num);
    kb = mr_grant_part(own_budget(), mr_grant_count(g, num));
    for (struct mr_peer *p = active; p; p = p->next_active)
        tell(p, kb);
}

/* ---- sender ------------------------------------------------------------------------------------------------------ */

bool mr_grant_word(struct mr_peer *p, const struct mr_hdr *hdr, size_t len)
{
    uint64_t now_ns;

    if (hdr->kind != WORD_GRANT)
        return false;
    p->grant_seen++;
    if (len || hdr->ctx > MR_GRANT_MOST_KB) {
        mr_log(MR_LOG_WARN, "rank %d on %s: a word about a budget that cannot be", p->rank, p->card->host);
        return true;
    }
    if (!p->granted && hdr->ctx)
        p->granted = calloc(MR_LEVEL_PACKETS, sizeof *p->granted);
    if (!p->granted)
        return true; /* no limit, or no memory: then the budgets of the rails alone bind */
    now_ns = mr_clock_ns();
    for (unsigned l = 0; l < MR_LEVEL_PACKETS; l++)
        mr_ahead_set(&p->granted[l], hdr->ctx * 1000ull, now_ns);
    return true;
}
