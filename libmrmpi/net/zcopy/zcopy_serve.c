/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages as datagrams: queue pairs for waiting receives, recalled from silent senders if necessary. */
#include "libmrmpi/base/base.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/zcopy/zcopy.h"

#define RECALL_NS 2000000ull /* a sender silent for this time loses a queue pair that others wait for */

/*
 * A cleared sender that does not poll keeps a queue pair from senders that do. RECALL takes the queue pair away, and
 * all messages of that sender wait until it answers WRITTEN, as after each CLEAR.
 */
static void recall_from_peer(struct mr_peer *p, uint64_t now_ns)
{
    bool some = false;

    if (now_ns - p->heard_ns < RECALL_NS)
        return;
    for (struct mr_dgram_recv *recv = mr_bulk_of(p)->dgram_recvs; recv; recv = recv->next)
        for (struct mr_dgram_batch *batch = recv->batches; batch; batch = batch->next) {
            struct mr_hdr hdr = {
                .kind = MR_ZCOPY_RECALL, .ctx = recv->serial, .tag = batch->q->turn, .rreq = batch->q->qpn};

            if (batch->came || batch->written || batch->stopped || now_ns - batch->begun_ns < RECALL_NS)
                continue;
            mr_bulk_send_control(p, &hdr, NULL, 0);
            batch->recalled = some = true;
            mr_stat_add(MR_STAT_UD_RECALLED, 1);
            mr_dgram_batch_stop(batch);
        }
    for (struct mr_dgram_recv *recv = mr_bulk_of(p)->dgram_recvs; recv && some; recv = recv->next) {
        recv->asleep = !recv->batches;
        mr_dgram_recv_queue(recv);
    }
}

static void recall_silent(uint64_t now_ns)
{
    for (int r = 0; r < mr_peers_end(); r++)
        if (mr_peers.peer[r] && mr_bulk_of(mr_peers.peer[r])->dgram_recvs)
            recall_from_peer(mr_peers.peer[r], now_ns);
}

uint64_t mr_zcopy_serve(void)
{
    struct mr_dgram_recv *next;
    uint64_t now;

    if (mr_bulk.serve_due) {
        mr_bulk.serve_due = false;
        for (struct mr_dgram_recv *recv = mr_bulk.starved; recv; recv = next) {
            next = recv->next_starved;
            mr_dgram_recv_clear(recv);
        }
    }
    if (!mr_bulk.starved)
        return 0;
    now = mr_clock_ns();
    if (now - mr_bulk.served_ns < RECALL_NS / 4)
        return now;
    mr_bulk.served_ns = now;
    mr_bulk.serve_due = true;
    recall_silent(now);
    return now;
}
