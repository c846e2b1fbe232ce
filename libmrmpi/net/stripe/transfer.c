/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to all large messages: their end, their control messages, the queued bytes of a subchannel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libmrmpi/base/base.h"
#include "libmrmpi/channel/channel.h"
#include "libmrmpi/net/stripe/wlist.h"
#include "libmrmpi/net/stripe/track.h"
#include "libmrmpi/net/stripe/keys.h"

struct mr_bulk mr_bulk;

void mr_bulk_send_control(struct mr_peer *p, struct mr_hdr *hdr, const void *payload, size_t len)
{
    int err = p->error ? 0 : mr_vc_send_control(p->vc, hdr, payload, len);

    if (err)
        mr_peer_lost(p, err);
}

void mr_stripe_queue_on(struct mr_stripe_op *s, struct mr_sub *sub)
{
    if (s->queued)
        mr_bulk_sub_of(s->queued)->queued -= s->len;
    if (sub)
        mr_bulk_sub_of(sub)->queued += s->len;
    s->queued = sub;
}

void mr_bulk_finish(struct mr_transfer *transfer)
{
    struct mr_peer *p = transfer->peer;
    void (*tell)(void *cookie, int error) = transfer->read ? mr_vc_up.read_done : mr_vc_up.put_sent;
    struct mr_vc_move *move = transfer->move;
    void *cookie = transfer->cookie;
    int error = transfer->filter.error;

    *(transfer->prev ? &transfer->prev->next : &mr_bulk_of(p)->transfers) = transfer->next;
    if (transfer->next)
        transfer->next->prev = transfer->prev;
    p->num_large--;
    mr_bulk.open_transfers--;
    if (transfer->track)
        transfer->track->ops->free(transfer);
    if (transfer->reg)
        mr_regs_release(transfer->reg);
    for (unsigned i = 0; i < transfer->num; i++)
        mr_stripe_queue_on(&transfer->stripe[i], NULL);
    if (transfer->list) {
        mr_wlist_end(transfer, error);
        return;
    }
    free(transfer);
    if (move)
        move->done(move, error);
    else
        tell(cookie, error);
}
