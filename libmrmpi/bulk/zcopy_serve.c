/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams: queue pairs for those that wait for one, if need be from senders that do not use theirs. */
#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/bulk/zcopy.h"

#define RECALL_NS 2000000ull /* a sender that is silent for so long loses one that others wait for */

/*
 * A sender that has been cleared but does not look at the network keeps a queue pair from those that do. It is taken
 * away, and all of its messages wait until it says what it has to say in any case: that this one is written.
 */
static void recall_from(struct mr_peer *p, uint64_t now_ns)
{
    bool some = false;

    if (now_ns - p->heard_ns < RECALL_NS)
        return;
    for (struct mr_inflow *f = mr_bulk_of(p)->inflows; f; f = f->next)
        for (struct mr_intake *in = f->intakes; in; in = in->next) {
            struct mr_hdr hdr = {.kind = ZCOPY_RECALL, .ctx = f->serial, .tag = in->q->turn, .rreq = in->q->qpn};

            if (in->came || in->written || in->stopped || now_ns - in->begun_ns < RECALL_NS)
                continue;
            mr_bulk_say(p, &hdr, NULL, 0);
            in->recalled = some = true;
            mr_stat_add(MR_STAT_UD_RECALLED, 1);
            mr_intake_stop(in);
        }
    for (struct mr_inflow *f = mr_bulk_of(p)->inflows; f && some; f = f->next) {
        f->asleep = !f->intakes;
        mr_inflow_count(f);
    }
}

static void recall(uint64_t now_ns)
{
    for (int r = 0; r < mr_peers.launch->size; r++)
        if (mr_peers.peer[r] && mr_bulk_of(mr_peers.peer[r])->inflows)
            recall_from(mr_peers.peer[r], now_ns);
}

uint64_t mr_zcopy_serve(void)
{
    struct mr_inflow *next;
    uint64_t now;

    if (mr_bulk.serve_due) {
        mr_bulk.serve_due = false;
        for (struct mr_inflow *f = mr_bulk.starved; f; f = next) {
            next = f->next_starved;
            mr_inflow_feed(f);
        }
    }
    if (!mr_bulk.starved)
        return 0;
    now = mr_clock_ns();
    if (now - mr_bulk.served_ns < RECALL_NS / 4)
        return now;
    mr_bulk.served_ns = now;
    mr_bulk.serve_due = true;
    recall(now);
    return now;
}
