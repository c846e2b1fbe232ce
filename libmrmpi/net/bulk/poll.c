/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large messages between calls: events of peers, waiting parts, control messages; the beginning and end of the folder.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/net/bulk/internal.h"
#include "libmrmpi/net/zcopy/zcopy.h"
#include "libmrmpi/launch/launch.h"
#include "libmrmpi/net/stripe/keys.h"
#include "libmrmpi/net/stripe/renew.h"

/* ---- events of peers --------------------------------------------------------------------------------------------- */

static void fail_transfers(struct mr_peer *p)
{
    struct mr_transfer *transfer;

    mr_bulk_of(p)->unassigned = NULL;
    p->needed = false;
    mr_bulk_of(p)->num_unconfirmed = mr_bulk_of(p)->num_refused = 0;
    mr_zcopy_peer_ended(p);
    mr_writers_end(p);
    for (unsigned i = 0; mr_bulk_of(p)->sub && i < p->num_subs; i++) {
        mr_bulk_sub_of(&p->sub[i])->waiting = NULL;
        mr_bulk_sub_of(&p->sub[i])->waiting_end = &mr_bulk_sub_of(&p->sub[i])->waiting;
    }
    while ((transfer = mr_bulk_of(p)->transfers)) {
        transfer->filter.error = p->error;
        mr_bulk_finish(transfer);
    }
}

static int prepare_peer(struct mr_peer *p)
{
    struct mr_bulk_peer *b = mr_bulk_of(p);
    size_t num = p->num_now ? p->num_now : 1, n = num + p->num_spare;

    b->sub = calloc(2 * n, sizeof *b->sub);
    b->stripe_turn.due = calloc(2 * n, sizeof *b->stripe_turn.due);
    if (!b->sub || !b->stripe_turn.due)
        return -ENOMEM;
    b->dgram_turn.due = b->stripe_turn.due + n;
    for (size_t i = 0; i < 2 * n; i++)
        b->sub[i].waiting_end = &b->sub[i].waiting;
    /* of a rank with one message for each of many peers, each message begins with another port */
    b->stripe_turn.next = (unsigned)(mr_peers.launch->rank + p->rank) % (unsigned)num;
    b->stripe_turn.kib_time = b->dgram_turn.kib_time = p->packet_turn.kib_time;
    return 0;
}

static void note_sub_opened(struct mr_sub *sub)
{
    mr_bulk.serve_due = true;
}

static void forget_weights(struct mr_peer *p)
{
    mr_bulk_of(p)->stripe_turn.kib_time = mr_bulk_of(p)->dgram_turn.kib_time = p->packet_turn.kib_time;
    mr_stripes_unmeasure(p);
}

static void free_peer(struct mr_peer *p)
{
    struct mr_bulk_peer *b = mr_bulk_of(p);

    free(b->adapt);
    free(b->feedback);
    mr_renew_free(p);
    mr_zcopy_free_peer(p);
    free(b->stripe_turn.due);
    free(b->sub);
}

static uint64_t queued(const struct mr_sub *sub)
{
    return mr_bulk_sub_of(sub)->queued;
}

static const struct mr_peer_events peer_events = {
    .made = prepare_peer,
    .opened = note_sub_opened,
    .broken = mr_zcopy_sub_broken,
    .drained = mr_stripes_drained,
    .due = mr_stripes_confirm,
    .moved = mr_stripes_move,
    .uses = mr_stripes_use,
    .queued = queued,
    .reweighed = forget_weights,
    .lost = mr_zcopy_peer_lost,
    .ended = fail_transfers,
    .freed = free_peer,
};

/* ---- life -------------------------------------------------------------------------------------------------------- */

void mr_bulk_init(void)
{
    memset(&mr_bulk, 0, sizeof mr_bulk);
    mr_peer_subscribe(&peer_events);
    mr_regs_open();
}

void mr_bulk_finalize(void)
{
    mr_regs_close();
    mr_targets_free(&mr_bulk.targets);
    free(mr_bulk.tracked);
    mr_zcopy_free_posts();
    mr_wlists_free();
    memset(&mr_bulk, 0, sizeof mr_bulk);
}

bool mr_bulk_is_idle(void)
{
    return !mr_bulk.open_transfers;
}

bool mr_bulk_is_late(void)
{
    return mr_bulk.num_late || (mr_bulk.starved && !mr_bulk.serve_due);
}

bool mr_bulk_watch(struct mr_peer *p, bool idle, uint64_t now_ns)
{
    struct mr_bulk_peer *b = mr_bulk_of(p);

    if (idle && b->late_recvs)
        mr_track_poll(p, now_ns);
    if (idle && b->num_late_batches)
        mr_zcopy_poll(p, now_ns);
    return b->late_recvs || b->num_late_batches || b->num_starving;
}

uint64_t mr_bulk_serve(void)
{
    return mr_bulk.starved ? mr_zcopy_serve() : 0;
}

bool mr_bulk_resume(struct mr_peer *p)
{
    bool stripes, datagrams;

    if (mr_bulk_of(p)->collecting)
        mr_writers_post(p);
    stripes = mr_stripes_resume(p);
    datagrams = mr_bulk_of(p)->dgram_sends && mr_zcopy_resume(p);
    return stripes || datagrams;
}

bool mr_bulk_control(struct mr_peer *p, const struct mr_hdr *hdr, const void *payload, size_t len)
{
    return mr_renew_control(p, hdr, payload, len) || mr_track_control(p, hdr, payload, len) ||
           mr_zcopy_out_control(p, hdr, payload, len) || mr_zcopy_in_control(p, hdr) || mr_stripes_control(p, hdr);
}
